import type {
  SavedCard,
  StripeHint,
  PurchaseRecord,
  PurchaseError,
  PurchaseOutcome,
  WalletPaymentMethods,
} from "../../shared/contracts/payments.ts";
import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { StripeClient } from "./stripe.ts";

export type PurchaseStep =
  | "customer"
  | "session"
  | "invoice"
  | "item"
  | "finalize"
  | "pay"
  | "read"
  | "expire"
  | "void"
  | "discard"
  | "credit";

type SentCall = {
  readonly step: PurchaseStep;
  readonly path: string;
  readonly body: string;
  readonly key: string;
  readonly firstAt: number;
};

/** A purchase, stored before each Stripe call and after each response. */
export type Purchase = Omit<PurchaseRecord, "creditedMicro" | "returnedMicro" | "step"> & {
  readonly returnUrl: string;
  readonly step: PurchaseStep | null;
  readonly sent: SentCall | null;
  /** A counter in the step's idempotency key. Each restart increments it. */
  readonly anew: number;
  readonly paymentMethod: string | null;
  readonly ending: PurchaseEnding | null;
  /**
   * Outcomes that the wallet hasn't received. The next attempt to send them is at `tellAt` (Unix
   * ms).
   */
  readonly untold: readonly PurchaseOutcome[];
  readonly tellAt: number | null;
};

/** The planned end of a purchase, effective once its Stripe object is closed without a payment. */
export type PurchaseEnding = {
  readonly state: "declined" | "expired";
  readonly error: PurchaseError;
  readonly isHard: boolean;
};

export type CapturedPaymentAmounts = {
  readonly receivedCents: number;
  readonly totalCents: number;
  readonly taxCents: number;
};

/** If `isHard`, the wallet turns off automatic top-up. */
export function createDeclinedEnding(error: PurchaseError, isHard = false): PurchaseEnding {
  return { state: "declined", error, isHard };
}

/** A captured payment, which is never deleted. */
export type Payment = CapturedPaymentAmounts & {
  readonly id: string;
  readonly purchaseId: string;
  readonly netMicro: Micros;
  readonly capturedAt: number;
  readonly isCredited: boolean;
  readonly fingerprint: string | null;
  readonly backMicro: Micros;
  readonly reading: number;
};

export type PendingStripeHint = StripeHint & { readonly tries: number; readonly nextAt: number };

/** An organization's Stripe customer, saved card and counters. */
export type PaymentsState = {
  readonly orgId: string;
  readonly orgName: string;
  /** `isBooked`: D1 has the customer, so Stripe's events can be assigned to the organization. */
  readonly customer: { readonly id: string; readonly isBooked: boolean } | null;
  readonly customers: number;
  readonly card: (SavedCard & { readonly paymentMethod: string }) | null;
  readonly reading: number;
  /** Creation time (Unix ms) of the wallet that received all payments. A rebuild changes it. */
  readonly walletMadeAt: number | null;
};

/** Payment tables. Consecutive writes without an `await` commit together. */
export type PaymentRows = {
  head(): PaymentsState;
  setHead(head: PaymentsState): void;
  purchase(id: string): Purchase | null;
  /** Finds a purchase by the Stripe ID of its session, invoice or payment. */
  purchaseByStripeId(object: string): Purchase | null;
  putPurchase(purchase: Purchase): void;
  openPurchases(): readonly Purchase[];
  purchasesSince(ms: number): readonly Purchase[];
  payment(id: string): Payment | null;
  payments(): readonly Payment[];
  putPayment(payment: Payment): void;
  waitingHints(): readonly PendingStripeHint[];
  putWaitingHint(hint: PendingStripeHint): void;
  markHintProcessed(hint: PendingStripeHint, at: number): void;
  isHintProcessed(eventId: string): boolean;
};

export const isPurchaseEnded = ({ state }: Purchase): boolean =>
  state === "credited" || state === "declined" || state === "expired";

export function toPurchaseRecord(purchase: Purchase, payment: Payment | null): PurchaseRecord {
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

export type WalletForPayments = Pick<
  WalletPaymentMethods,
  "creditPayment" | "setBack" | "tellPurchase" | "disableTopUp"
>;

type PaymentStore = {
  addCustomer(customerId: string, orgId: string): Promise<void>;
  addCard(fingerprint: string, orgId: string): Promise<number>;
};

export type PaymentDeps = {
  readonly rows: PaymentRows;
  readonly stripe: StripeClient;
  readonly wallet: WalletForPayments;
  readonly store: PaymentStore;
  readonly now: () => number;
  readonly region: string;
  readonly isLive: boolean;
  readonly hasTax: boolean;
  readonly taxCode: string | null;
};
