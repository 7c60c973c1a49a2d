import type { WalletPaymentCalls } from "../../shared/contracts/payments.ts";
import type { PaymentRows } from "./purchase.ts";
import type { Stripe } from "./stripe.ts";

export type PayingWallet = Pick<
  WalletPaymentCalls,
  "creditPayment" | "setBack" | "tellPurchase" | "disableTopUp"
>;

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
