import type { Actor, NewEvent } from "../event.ts";
import type { Result } from "../failure.ts";
import type { Idempotency } from "../idempotency.ts";
import type { Micros } from "../money.ts";

/** Before the 24 characters of a purchase's id. */
export const PURCHASE_ID = "pur_";

/** How a purchase is paid: on Stripe's page, or by the saved card, which `auto` charges for a top-up. */
export type PurchaseMethod = "checkout" | "card" | "auto";

/**
 * Where a purchase is: `wanted` nothing was asked of Stripe; `asked` it is being; `unknown` an answer is missing;
 * `needs_customer` somebody is to act at `url`; `paid` the money is there; the last three are its ends. Money that
 * comes after `declined` or `expired` is credited all the same.
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

/** Why a purchase ended without money, in a word of ours. */
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

/** A card as it may be shown. */
export type Card = {
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: number;
  readonly expYear: number;
};

/** A purchase; times in Unix ms, money in micros. */
export type PurchaseRecord = {
  readonly id: string;
  readonly method: PurchaseMethod;
  readonly amountMicro: Micros;
  readonly state: PurchaseState;
  readonly saveCard: boolean;
  /** Where the customer pays or confirms, while that is needed. */
  readonly url: string | null;
  readonly error: PurchaseError | null;
  /** What was credited: net of tax and fee. Null before. */
  readonly creditedMicro: Micros | null;
  /** What went back of that. */
  readonly returnedMicro: Micros;
  readonly card: Card | null;
  readonly actor: Actor;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Until when the customer may act; null where nobody is to. */
  readonly expiresAt: number | null;
  /** What operators look at: what Stripe calls it, and where its calls are. */
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

/** Who buys, of what organization, and where the customer comes back to. */
export type Buying = {
  readonly orgId: string;
  readonly orgName: string;
  /** When the organization was made, Unix ms. */
  readonly orgCreatedAt: number;
  readonly amountMicro: Micros;
  readonly method: "checkout" | "card";
  readonly saveCard: boolean;
  /** The console's page of this purchase, up to its id. */
  readonly returnUrl: string;
  readonly idempotency: Idempotency;
  readonly actor: Actor;
  /** By a person in the console, whom the day's cap of the card does not bind. */
  readonly isPerson: boolean;
};

/** An automatic purchase that a wallet wants. */
export type TopUpRequest = {
  readonly orgId: string;
  readonly id: string;
  readonly amountMicro: Micros;
  readonly wantedAt: number;
};

/** What somebody says has changed at Stripe: never believed, looked at. */
export type Hint = {
  readonly eventId: string;
  readonly orgId: string;
  readonly kind: "session" | "invoice" | "intent" | "back" | "warning" | "detached";
  /** The id of a session, an invoice, a payment intent or a payment method. */
  readonly object: string;
};

/** `amountCents` null: all that is left. `name`: the same for a repeat. */
export type RefundAsk = {
  readonly purchase: string;
  readonly amountCents: number | null;
  readonly name: string;
  readonly actor: Actor;
};

/** The calls on the object of an organization's payments, which is named by its id. */
export type PaymentsCalls = {
  /** Once for each `idempotency`; answers as soon as there is something to show, at the latest after some 1.5 s. */
  buy(buying: Buying): Promise<Result<PurchaseRecord>>;
  /** By its own id, or by Stripe's of its session, invoice or payment. */
  purchase(name: string): Promise<Result<PurchaseRecord>>;
  /** Newest first. */
  purchases(limit: number, after: string | null): Promise<Result<PurchasePage>>;
  cancel(id: string): Promise<Result<PurchaseRecord>>;
  /** A link to Stripe's page for cards, addresses and invoices, for a few minutes. */
  portal(
    buyer: Pick<Buying, "orgId" | "orgName" | "returnUrl">,
  ): Promise<Result<{ readonly url: string }>>;
  savedCard(): Promise<Result<Card | null>>;
  /** From the wallet; told again it is the same purchase. */
  topUp(wish: TopUpRequest): Promise<Result<null>>;
  /** Durable before it answers; told again it is one. */
  hint(hint: Hint): Promise<Result<null>>;
  refund(asked: RefundAsk): Promise<Result<PurchaseRecord>>;
  /** Sets a lost alarm again, and restates to a wallet that was made anew what it was paid. */
  poke(): Promise<Result<null>>;
};

/** A payment that is to be credited. `topUp`: it is an automatic purchase's. */
export type PaymentCredit = {
  readonly paymentId: string;
  readonly purchaseId: string;
  readonly method: PurchaseMethod;
  readonly netMicro: Micros;
  readonly actor: Actor;
};

/** How much of a payment is back, by a reading that began after all smaller ones. */
export type PaymentRefunded = {
  readonly paymentId: string;
  readonly purchaseId: string;
  readonly backMicro: Micros;
  readonly reading: number;
  /** A dispute takes money now: automatic purchases end. */
  readonly isDisputed: boolean;
};

/** What has become of a purchase, for the log, and for the wallet that wanted it. */
export type PurchaseOutcome = {
  readonly event: NewEvent;
  /** Words that make the event one. */
  readonly once: readonly string[];
  /** Of an automatic purchase that ended: what that means for the next. */
  readonly topUp: { readonly id: string; readonly end: TopUpEnd } | null;
};
export type TopUpEnd =
  | { readonly kind: "soft" }
  | { readonly kind: "hard"; readonly reason: DisabledReason };

/** Why automatic purchases were switched off. */
export type DisabledReason =
  | "card_declined"
  | "no_saved_card"
  | "card_removed"
  | "address_incomplete"
  | "fraud_warning"
  | "disputed"
  | "wallet_rebuilt";

/** When automatic purchases are made; dollars are whole in `amount`. */
export type AutoTopUp = {
  readonly belowMicro: Micros;
  readonly amountMicro: Micros;
  readonly mostPerMonthMicro: Micros;
};

/** What a wallet knows of payments. Times in Unix ms. */
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
  /** When this wallet was made, or made anew. */
  readonly madeAt: number;
};

/** A row of the ledger that is no charge. */
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
};

/** What a wallet is asked about payments: all of it repeatable. */
export type WalletPaymentCalls = {
  /** Once for each payment; `conflict` where it was credited with another amount. */
  creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>>;
  /** Brings what is back of a payment to this amount, unless a later reading did. */
  setBack(back: PaymentRefunded): Promise<Result<null>>;
  tellPurchase(told: PurchaseOutcome): Promise<Result<null>>;
  disableTopUp(reason: DisabledReason): Promise<Result<null>>;
  /** What is owed is owed no more, as far as said; once for each reference. */
  forgive(asked: {
    readonly amountMicro: Micros;
    readonly reference: string;
    readonly actor: Actor;
  }): Promise<Result<{ readonly owedMicro: Micros }>>;
  payments(): Promise<Result<PaymentsStatus>>;
  /** Newest first, before ledger row `after`. */
  creditPage(limit: number, after: number | null): Promise<Result<CreditPage>>;
};
