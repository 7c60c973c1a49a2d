import type {
  DisabledReason,
  PaymentReversal,
  PaymentCredit,
  PurchaseOutcome,
} from "../../shared/contracts/payments.ts";
import type { Result } from "../../shared/failure.ts";
import type { PaymentRows } from "./purchase.ts";
import type { Stripe } from "./stripe.ts";

export type PayingWallet = {
  creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>>;
  setBack(back: PaymentReversal): Promise<Result<null>>;
  tellPurchase(outcome: PurchaseOutcome): Promise<Result<null>>;
  disableTopUp(reason: DisabledReason): Promise<Result<null>>;
};

type PaymentStore = {
  addCustomer(customerId: string, orgId: string): Promise<void>;
  /** Records a card. Returns the number of organizations that use the card, including this one. */
  addCard(fingerprint: string, orgId: string): Promise<number>;
};

export type PaymentDeps = {
  readonly rows: PaymentRows;
  readonly stripe: Stripe;
  readonly wallet: PayingWallet;
  readonly store: PaymentStore;
  readonly now: () => number;
  readonly region: string;
  readonly isLive: boolean;
  readonly hasTax: boolean;
  readonly taxCode: string | null;
};
