import type {
  DisabledReason,
  PaymentRefunded,
  PaymentCredit,
  PurchaseOutcome,
} from "../../shared/contracts/payments.ts";
import type { Result } from "../../shared/failure.ts";
import type { PaymentRows } from "./purchase.ts";
import type { Stripe } from "./stripe.ts";

/** What the wallet of the organization is asked; each may fail, and is repeated then. */
export type PayingWallet = {
  creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>>;
  setBack(back: PaymentRefunded): Promise<Result<null>>;
  tellPurchase(told: PurchaseOutcome): Promise<Result<null>>;
  disableTopUp(reason: DisabledReason): Promise<Result<null>>;
};

/** What the book is asked; throws when D1 does. */
type PayingBook = {
  /** Whose customer it is, durable before anything can be paid under it. */
  addCustomer(customerId: string, orgId: string): Promise<void>;
  /** In how many organizations a card was seen, this one among them. */
  addCard(fingerprint: string, orgId: string): Promise<number>;
};

/** What the machine works with. `now`: Unix ms. */
export type PaymentDeps = {
  readonly rows: PaymentRows;
  readonly stripe: Stripe;
  readonly wallet: PayingWallet;
  readonly book: PayingBook;
  readonly now: () => number;
  readonly region: string;
  readonly isLive: boolean;
  readonly hasTax: boolean;
  readonly taxCode: string | null;
};
