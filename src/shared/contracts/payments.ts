import type { Actor, NewEvent } from "../event.ts";
import type { Result } from "../failure.ts";
import type { Idempotency } from "../idempotency.ts";
import type { Micros } from "../money.ts";

/** Prefix of a purchase's ID. */
export const PURCHASE_ID = "pur_";

/** The way of paying: Stripe's page, the saved card, or an automatic charge of it. */
export type PurchaseMethod = "checkout" | "card" | "auto";

/**
 * The state of a purchase. `wanted`: not sent to Stripe. `asked`: in progress. `unknown`: a response is
 * missing. `needs_customer`: the customer must act at `url`. `paid`: the money arrived. The last three are
 * final. Money that arrives after `declined` or `expired` is still credited.
 */
export type PurchaseState =
  | "wanted"
  | "asked"
  | "unknown"
  | "needs_customer"
  | "paid"
  | "credited"
  | "declined"
  | "expired";

/** The reason a purchase ended without payment. */
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

/** A card for display. */
export type Card = {
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: number;
  readonly expYear: number;
};

/** A purchase. Times are Unix ms, amounts micro-credits. */
export type PurchaseRecord = {
  readonly id: string;
  readonly method: PurchaseMethod;
  readonly amountMicro: Micros;
  readonly state: PurchaseState;
  readonly saveCard: boolean;
  /** URL where the customer pays or confirms, while needed. */
  readonly url: string | null;
  readonly error: PurchaseError | null;
  /** Credited amount, net of tax and fee; null before. */
  readonly creditedMicro: Micros | null;
  readonly returnedMicro: Micros;
  readonly card: Card | null;
  readonly actor: Actor;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Deadline for the customer; null if no action is needed. */
  readonly expiresAt: number | null;
  readonly customerId: string | null;
  readonly sessionId: string | null;
  readonly invoiceId: string | null;
  readonly paymentId: string | null;
  readonly step: string | null;
  readonly tries: number;
  readonly nextAt: number | null;
  readonly requestId: string | null;
};

export type PurchasePage = {
  readonly purchases: readonly PurchaseRecord[];
  readonly nextAfter: string | null;
};

/** The buyer, the organization and the return URL. */
export type Buying = {
  readonly orgId: string;
  readonly orgName: string;
  /** Creation time of the organization (Unix ms). */
  readonly orgCreatedAt: number;
  readonly amountMicro: Micros;
  readonly method: "checkout" | "card";
  readonly saveCard: boolean;
  /** The console page of this purchase, without its ID. */
  readonly returnUrl: string;
  readonly idempotency: Idempotency;
  readonly actor: Actor;
  /** A person in the console, who isn't bound by the card's daily limit. */
  readonly isPerson: boolean;
};

/** An automatic purchase that a wallet requests. */
export type TopUpRequest = {
  readonly orgId: string;
  readonly id: string;
  readonly amountMicro: Micros;
  readonly wantedAt: number;
};

/** A possible change at Stripe. It is verified by reading the object. */
export type Hint = {
  readonly eventId: string;
  readonly orgId: string;
  readonly kind: "session" | "invoice" | "intent" | "back" | "warning" | "detached";
  /** The ID of a session, invoice, payment intent or payment method. */
  readonly object: string;
};

/** The reasons of a refund, as Stripe names them. */
export const REFUND_REASONS = ["duplicate", "fraudulent", "requested_by_customer"] as const;
/** A refund. `amountCents` null refunds the rest. `name` makes it idempotent. */
export type RefundAsk = {
  readonly purchase: string;
  readonly amountCents: number | null;
  readonly reason?: (typeof REFUND_REASONS)[number] | null;
  readonly name: string;
  readonly actor: Actor;
};

/** The calls of an organization's payments object, named by the organization's ID. */
export type PaymentsCalls = {
  /** Buys credits once per `idempotency`. Responds within about 1.5 s. */
  buy(buying: Buying): Promise<Result<PurchaseRecord>>;
  /** Returns a purchase by its ID, or by Stripe's ID of its session, invoice or payment. */
  purchase(name: string): Promise<Result<PurchaseRecord>>;
  purchases(limit: number, after: string | null): Promise<Result<PurchasePage>>;
  cancel(id: string): Promise<Result<PurchaseRecord>>;
  /** Returns a short-lived link to Stripe's page for cards, addresses and invoices. */
  portal(
    buyer: Pick<Buying, "orgId" | "orgName" | "returnUrl">,
  ): Promise<Result<{ readonly url: string }>>;
  savedCard(): Promise<Result<Card | null>>;
  /** Starts a top-up for the wallet. Repeats change nothing. */
  topUp(wish: TopUpRequest): Promise<Result<null>>;
  hint(hint: Hint): Promise<Result<null>>;
  refund(asked: RefundAsk): Promise<Result<PurchaseRecord>>;
  /** Returns the tax in micro-credits of each of these payments that it knows. */
  taxes(paymentIds: readonly string[]): Promise<Result<Readonly<Record<string, Micros>>>>;
  /** Restores a lost alarm and resends payments to a rebuilt wallet. */
  poke(): Promise<Result<null>>;
};

/** A payment to credit. `topUp`: it belongs to an automatic purchase. */
export type PaymentCredit = {
  readonly paymentId: string;
  readonly purchaseId: string;
  readonly method: PurchaseMethod;
  readonly netMicro: Micros;
  readonly actor: Actor;
};

/** The refunded amount of a payment, by a numbered reading. */
export type PaymentRefunded = {
  readonly paymentId: string;
  readonly purchaseId: string;
  readonly backMicro: Micros;
  readonly reading: number;
  /** A dispute is taking money, so automatic purchases end. */
  readonly isDisputed: boolean;
};

/** The outcome of a purchase, for the log and the wallet. */
export type PurchaseOutcome = {
  readonly event: NewEvent;
  /** Identify the event, so that it is recorded once. */
  readonly once: readonly string[];
  /** The end of an automatic purchase, which affects the next. */
  readonly topUp: { readonly id: string; readonly end: TopUpEnd } | null;
};
export type TopUpEnd =
  | { readonly kind: "soft" }
  | { readonly kind: "hard"; readonly reason: DisabledReason };

/** Why automatic purchases were disabled. */
export type DisabledReason =
  | "card_declined"
  | "no_saved_card"
  | "card_removed"
  | "address_incomplete"
  | "fraud_warning"
  | "disputed"
  | "wallet_rebuilt";

/** The conditions of automatic purchases. `amount` is in whole dollars. */
export type AutoTopUp = {
  readonly belowMicro: Micros;
  readonly amountMicro: Micros;
  readonly mostPerMonthMicro: Micros;
};

/** The wallet's state of payments. Times are Unix ms. */
export type PaymentsStatus = {
  readonly owedMicro: Micros;
  readonly takenMicro: Micros;
  readonly forgivenMicro: Micros;
  readonly autoTopUp: AutoTopUp | null;
  readonly topUp: {
    readonly purchaseId: string | null;
    readonly monthMicro: Micros;
    readonly pausedUntil: number | null;
    readonly disabledReason: DisabledReason | null;
  };
  readonly madeAt: number;
};

/** A ledger row that isn't a charge. */
export type CreditRow = {
  readonly seq: number;
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  readonly reference: string;
  readonly createdAt: number;
  readonly purchaseId: string | null;
};
export type CreditPage = {
  readonly credits: readonly CreditRow[];
  readonly nextAfter: number | null;
  readonly standing: PaymentsStatus;
  /** The balance and all charges ever, read together. */
  readonly lifetime: { readonly balanceMicro: Micros; readonly usedMicro: Micros };
};

/** The wallet's calls for payments. All can be repeated. */
export type WalletPaymentCalls = {
  /** Credits a payment once. Returns `conflict` if it was credited with another amount. */
  creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>>;
  /** Sets the refunded amount of a payment, unless a later reading did. */
  setBack(back: PaymentRefunded): Promise<Result<null>>;
  tellPurchase(told: PurchaseOutcome): Promise<Result<null>>;
  disableTopUp(reason: DisabledReason): Promise<Result<null>>;
  forgive(asked: {
    readonly amountMicro: Micros;
    readonly reference: string;
    readonly actor: Actor;
  }): Promise<Result<{ readonly owedMicro: Micros }>>;
  payments(): Promise<Result<PaymentsStatus>>;
  creditPage(limit: number, after: number | null): Promise<Result<CreditPage>>;
};
