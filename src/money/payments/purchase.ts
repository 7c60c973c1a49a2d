import type {
  Card,
  Hint,
  PurchaseMethod,
  PurchaseRecord,
  PurchaseState,
  PurchaseError,
  PurchaseOutcome,
} from "../../shared/contracts/payments.ts";
import type { Actor } from "../../shared/event.ts";
import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { Captured } from "./payment-rules.ts";

/** What a purchase asks of Stripe next: a call, or to read what became of it. Null: nothing. */
export type Step =
  | "customer"
  | "session"
  | "invoice"
  | "item"
  | "finalize"
  | "pay"
  /** Somebody is to act; then its object is read. */
  | "read"
  | "expire"
  | "void"
  | "discard"
  | "credit";

/** A call as it was first sent: a repeat is byte for byte the same. */
type Sent = {
  readonly step: Step;
  readonly path: string;
  readonly body: string;
  readonly key: string;
  readonly firstAt: number;
};

/** A purchase as it is stored: one row, written before each call and after each answer. */
export type Purchase = {
  readonly id: string;
  readonly method: PurchaseMethod;
  readonly amountMicro: Micros;
  readonly saveCard: boolean;
  readonly returnUrl: string;
  readonly actor: Actor;
  readonly state: PurchaseState;
  readonly step: Step | null;
  readonly sent: Sent | null;
  /** Calls of this step without an answer, one after the other. */
  readonly tries: number;
  /** How often a step that moves no money was begun anew, under another key. */
  readonly anew: number;
  /** When it goes on, Unix ms; null: not by itself. */
  readonly nextAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number | null;
  readonly customerId: string | null;
  readonly paymentMethod: string | null;
  readonly sessionId: string | null;
  readonly invoiceId: string | null;
  readonly paymentId: string | null;
  readonly url: string | null;
  /** What it ends as once nothing can be paid any more; null while it may go on. */
  readonly ending: Ending | null;
  readonly error: PurchaseError | null;
  readonly card: Card | null;
  readonly requestId: string | null;
  /** What the wallet is still to hear, in order, and when it is told next. */
  readonly untold: readonly PurchaseOutcome[];
  readonly tellAt: number | null;
};
export type Ending = {
  readonly state: "declined" | "expired";
  readonly error: PurchaseError;
  readonly isHard: boolean;
};

/** A payment that was captured: kept for good. */
export type Payment = Captured & {
  readonly id: string;
  readonly purchaseId: string;
  readonly netMicro: Micros;
  readonly capturedAt: number;
  readonly isCredited: boolean;
  readonly fingerprint: string | null;
  /** Micros that are back of it, by the newest reading. */
  readonly backMicro: Micros;
  readonly reading: number;
};

/** A hint that waits. */
export type WaitingHint = Hint & { readonly tries: number; readonly nextAt: number };

/** What is known beside: one row. */
export type PaymentsHead = {
  readonly orgId: string;
  readonly orgName: string;
  readonly customer: { readonly id: string; readonly isBooked: boolean } | null;
  /** Customers that were made before. */
  readonly customers: number;
  readonly card: (Card & { readonly paymentMethod: string }) | null;
  /** The newest reading that began. */
  readonly reading: number;
  /** When the wallet was made that has all of it; null: not known. */
  readonly walletMadeAt: number | null;
};

/** The rows of one organization's payments. Every call is over when it returns, and all writes of one turn stand or fall together. */
export type PaymentRows = {
  head(): PaymentsHead;
  setHead(head: PaymentsHead): void;
  purchase(id: string): Purchase | null;
  /** By what Stripe calls its session, invoice or payment. */
  purchaseOf(object: string): Purchase | null;
  put(purchase: Purchase): void;
  /** Those that are not over, or of which something is still to be done, oldest first. */
  open(): readonly Purchase[];
  since(ms: number): readonly Purchase[];
  payment(id: string): Payment | null;
  payments(): readonly Payment[];
  putPayment(payment: Payment): void;
  waiting(): readonly WaitingHint[];
  putWaiting(hint: WaitingHint): void;
  /** Done: kept for a while, so that its event is not looked into again. */
  heard(hint: WaitingHint, at: number): void;
  wasHeard(eventId: string): boolean;
};

export const isOver = ({ state }: Purchase): boolean =>
  state === "credited" || state === "declined" || state === "expired";

/** The purchase as others see it. */
export function recordOf(purchase: Purchase, payment: Payment | null): PurchaseRecord {
  const {
    sent: _sent,
    anew: _anew,
    untold: _untold,
    tellAt: _tellAt,
    ending: _ending,
    paymentMethod: _method,
    returnUrl: _url,
    ...shown
  } = purchase;
  return {
    ...shown,
    creditedMicro: payment?.isCredited === true ? payment.netMicro : null,
    returnedMicro: payment?.backMicro ?? micros(0),
  };
}
