import type { LedgerRow } from "./wallet-pages.ts";
import type { Actor, NewEvent } from "../event.ts";
import type { Result } from "../failure.ts";
import type { IdempotencyHashes } from "../idempotency.ts";
import { dollarsOf } from "../money.ts";
import type { Micros } from "../money.ts";

export const PURCHASE_ID_PREFIX = "pur_";

/** The payment method: Stripe's page, the saved card or automatic top-up. */
export type PurchaseMethod = "checkout" | "card" | "auto";

/**
 * The state of a purchase. `wanted`: not sent to Stripe. `asked`: in progress. `unknown`: a step
 * got no response and is retried. `needs_customer`: the customer must act at `url`. `expired`:
 * abandoned or cancelled.
 */
export type PurchaseState = (typeof PURCHASE_STATES)[number];
export const PURCHASE_STATES = [
  "wanted",
  "asked",
  "unknown",
  "needs_customer",
  "paid",
  "credited",
  "declined",
  "expired",
] as const;

export type PurchaseError =
  | "card_declined"
  | "insufficient_funds"
  | "expired_card"
  | "authentication_failed"
  | "no_saved_card"
  | "card_removed"
  | "address_incomplete"
  | "customer_gone"
  | "processing_error"
  | "cancelled"
  | "abandoned"
  | "misconfigured";

export type SavedCard = {
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: number;
  readonly expYear: number;
};

export type PurchaseRecord = {
  readonly id: string;
  readonly method: PurchaseMethod;
  readonly amountMicro: Micros;
  readonly state: PurchaseState;
  readonly saveCard: boolean;
  /** Stripe's page for payment or confirmation. */
  readonly url: string | null;
  readonly error: PurchaseError | null;
  /** The credited amount without tax, or null until the payment. */
  readonly creditedMicro: Micros | null;
  /** Credits that refunds and disputes have taken back. */
  readonly returnedMicro: Micros;
  readonly card: SavedCard | null;
  readonly actor: Actor;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number | null;
  readonly customerId: string | null;
  readonly sessionId: string | null;
  readonly invoiceId: string | null;
  readonly paymentId: string | null;
  readonly step: string | null;
  readonly tries: number;
  /** Time of the next step or check (Unix ms), or null after the last step. */
  readonly nextAt: number | null;
  readonly requestId: string | null;
};

export type PurchasePage = {
  readonly purchases: readonly PurchaseRecord[];
  readonly nextAfter: string | null;
};

export type PurchaseRequest = {
  readonly orgId: string;
  readonly orgName: string;
  readonly orgCreatedAt: number;
  readonly amountMicro: Micros;
  readonly method: "checkout" | "card";
  readonly saveCard: boolean;
  /**
   * The console page to which Stripe returns the customer. The gateway appends the purchase's ID.
   */
  readonly returnUrl: string;
  readonly idempotency: IdempotencyHashes;
  readonly actor: Actor;
  /** Whether a person buys in the console. People have no daily limit for a saved card. */
  readonly isPerson: boolean;
};

export type TopUpRequest = {
  readonly orgId: string;
  readonly id: string;
  readonly amountMicro: Micros;
  readonly wantedAt: number;
};

/** A Stripe object to read again, because it may have changed. `back` is a refund or dispute. */
export type StripeHint = {
  readonly eventId: string;
  readonly orgId: string;
  readonly kind: "session" | "invoice" | "intent" | "back" | "warning" | "detached";
  readonly object: string;
};

export const REFUND_REASONS = ["duplicate", "fraudulent", "requested_by_customer"] as const;
/** A refund request. A null `amountCents` refunds the rest. `name` is the idempotency key. */
export type RefundRequest = {
  readonly purchase: string;
  readonly amountCents: number | null;
  readonly reason?: (typeof REFUND_REASONS)[number] | null;
  readonly name: string;
  readonly actor: Actor;
};

export type PaymentsMethods = {
  /** Buys credits, once per `idempotency`. Takes at most about 1.5 s. */
  buy(buying: PurchaseRequest): Promise<Result<PurchaseRecord>>;
  /** Returns a purchase by its own ID, or by the ID of its Stripe session, invoice or payment. */
  purchase(name: string): Promise<Result<PurchaseRecord>>;
  purchases(limit: number, after: string | null): Promise<Result<PurchasePage>>;
  cancel(id: string): Promise<Result<PurchaseRecord>>;
  /** Cancels all open purchases of a closed organization. */
  cancelAll(): Promise<Result<null>>;
  portal(
    buyer: Pick<PurchaseRequest, "orgId" | "orgName" | "returnUrl">,
  ): Promise<Result<{ readonly url: string }>>;
  savedCard(): Promise<Result<SavedCard | null>>;
  topUp(request: TopUpRequest): Promise<Result<null>>;
  hint(hint: StripeHint): Promise<Result<null>>;
  refund(request: RefundRequest): Promise<Result<PurchaseRecord>>;
  /** Returns the tax of payments by ID, in micro-credits. Omits unknown payments. */
  taxes(paymentIds: readonly string[]): Promise<Result<Readonly<Record<string, Micros>>>>;
  /** Restores a lost alarm, and resends all payments to a rebuilt wallet. */
  poke(): Promise<Result<null>>;
};

/** A payment's amount, which the wallet credits once. */
export type PaymentCredit = {
  readonly paymentId: string;
  readonly purchaseId: string;
  readonly method: PurchaseMethod;
  readonly netMicro: Micros;
  readonly actor: Actor;
};

/** The refunded or disputed amount of a payment. */
export type PaymentReversal = {
  readonly paymentId: string;
  readonly purchaseId: string;
  readonly backMicro: Micros;
  readonly reading: number;
  readonly isDisputed: boolean;
};

/** The event that reports a purchase's outcome, and the failure of its automatic top-up. */
export type PurchaseOutcome = {
  readonly event: NewEvent;
  /** The values from which the event's ID is derived, so that retries record it once. */
  readonly once: readonly string[];
  readonly topUp: { readonly id: string; readonly end: TopUpFailure } | null;
};
export type TopUpFailure =
  | { readonly kind: "soft" }
  | { readonly kind: "hard"; readonly reason: TopUpDisabledReason };

export type TopUpDisabledReason =
  | "card_declined"
  | "no_saved_card"
  | "card_removed"
  | "address_incomplete"
  | "fraud_warning"
  | "disputed"
  | "wallet_rebuilt";

export type AutoTopUpSettings = {
  readonly belowMicro: Micros;
  readonly amountMicro: Micros;
  readonly mostPerMonthMicro: Micros;
};

/** A wallet's debt after refunds or disputes, and its automatic top-up. */
export type PaymentsStatus = {
  readonly owedMicro: Micros;
  readonly takenMicro: Micros;
  readonly forgivenMicro: Micros;
  readonly autoTopUp: AutoTopUpSettings | null;
  readonly topUp: {
    readonly purchaseId: string | null;
    readonly monthMicro: Micros;
    readonly pausedUntil: number | null;
    readonly disabledReason: TopUpDisabledReason | null;
  };
  readonly madeAt: number;
};

export type CreditRow = Pick<LedgerRow, "seq" | "amountMicro" | "balanceMicro" | "createdAt"> & {
  readonly reference: string;
  readonly purchaseId: string | null;
};

export type CreditPage = {
  readonly credits: readonly CreditRow[];
  readonly nextAfter: number | null;
  readonly standing: PaymentsStatus;
  /** The balance and the sum of all charges, read in one transaction. */
  readonly lifetime: { readonly balanceMicro: Micros; readonly usedMicro: Micros };
};

/** The wallet's methods for payments. All are safe to retry. */
export type WalletPaymentMethods = {
  /** Credits a payment once. Fails with `conflict` if it was credited with a different amount. */
  creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>>;
  /**
   * Sets a payment's refunded or disputed amount. Ignores amounts read from Stripe before the
   * stored one.
   */
  setBack(back: PaymentReversal): Promise<Result<null>>;
  tellPurchase(outcome: PurchaseOutcome): Promise<Result<null>>;
  disableTopUp(reason: TopUpDisabledReason): Promise<Result<null>>;
  forgive(request: {
    readonly amountMicro: Micros;
    readonly reference: string;
    readonly actor: Actor;
  }): Promise<Result<{ readonly owedMicro: Micros }>>;
  payments(): Promise<Result<PaymentsStatus>>;
  creditPage(limit: number, after: number | null): Promise<Result<CreditPage>>;
};

export function autoTopUpView(setting: AutoTopUpSettings | null) {
  if (setting === null) return null;
  return {
    below_dollars: dollarsOf(setting.belowMicro),
    amount_dollars: dollarsOf(setting.amountMicro),
    most_per_month_dollars: dollarsOf(setting.mostPerMonthMicro),
  };
}
