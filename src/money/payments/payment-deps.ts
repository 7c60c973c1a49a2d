import type {
  DisabledReason,
  PaymentRefunded,
  PaymentCredit,
  PurchaseOutcome,
} from "../../shared/contracts/payments.ts";
import type { Result } from "../../shared/failure.ts";
import type { PaymentRows } from "./purchase.ts";
import type { Stripe } from "./stripe.ts";

/** The calls to the organization's wallet. Each can fail and is then retried. */
export type PayingWallet = {
  creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>>;
  setBack(back: PaymentRefunded): Promise<Result<null>>;
  tellPurchase(told: PurchaseOutcome): Promise<Result<null>>;
  disableTopUp(reason: DisabledReason): Promise<Result<null>>;
};

/** The database access of payments. Each call throws when D1 fails. */
type PayingBook = {
  /** Stores the customer's organization before anything can be paid. */
  addCustomer(customerId: string, orgId: string): Promise<void>;
  /** Returns the number of organizations seen with a card, including this one. */
  addCard(fingerprint: string, orgId: string): Promise<number>;
};

/** Dependencies of the payment processor. `now` returns Unix ms. */
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
