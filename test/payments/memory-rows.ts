import type {
  PaymentsState,
  Payment,
  PaymentRows,
  Purchase,
  PendingStripeHint,
} from "../../src/money/payments/purchase.ts";
import { isPurchaseEnded } from "../../src/money/payments/purchase.ts";

/** `PaymentRows` in memory. Writes are immediate and permanent. */
export class MemoryRows implements PaymentRows {
  #head: PaymentsState;
  readonly #purchases = new Map<string, Purchase>();
  readonly #payments = new Map<string, Payment>();
  readonly #waiting = new Map<string, PendingStripeHint>();
  readonly #eventIds = new Set<string>();

  constructor(orgId: string) {
    const nobody = { orgName: orgId, customer: null, customers: 0, card: null };
    this.#head = { orgId, ...nobody, reading: 0, walletMadeAt: null };
  }

  head(): PaymentsState {
    return this.#head;
  }

  setHead(head: PaymentsState): void {
    this.#head = head;
  }

  purchase(id: string): Purchase | null {
    return this.#purchases.get(id) ?? null;
  }

  purchaseByStripeId(object: string): Purchase | null {
    const isIts = ({ sessionId, invoiceId, paymentId }: Purchase): boolean =>
      [sessionId, invoiceId, paymentId].includes(object);
    return this.all().find(isIts) ?? null;
  }

  putPurchase(purchase: Purchase): void {
    this.#purchases.set(purchase.id, purchase);
  }

  all(): readonly Purchase[] {
    return [...this.#purchases.values()];
  }

  openPurchases(): readonly Purchase[] {
    return this.all().filter(
      (one) => !isPurchaseEnded(one) || one.nextAt !== null || one.tellAt !== null,
    );
  }

  purchasesSince(ms: number): readonly Purchase[] {
    return this.all().filter(({ createdAt }) => createdAt >= ms);
  }

  payment(id: string): Payment | null {
    return this.#payments.get(id) ?? null;
  }

  payments(): readonly Payment[] {
    return [...this.#payments.values()];
  }

  putPayment(payment: Payment): void {
    this.#payments.set(payment.id, payment);
  }

  waitingHints(): readonly PendingStripeHint[] {
    return [...this.#waiting.values()];
  }

  putWaitingHint(hint: PendingStripeHint): void {
    this.#waiting.set(hint.eventId, hint);
  }

  markHintProcessed({ eventId }: PendingStripeHint): void {
    this.#waiting.delete(eventId);
    this.#eventIds.add(eventId);
  }

  isHintProcessed(eventId: string): boolean {
    return this.#eventIds.has(eventId);
  }
}
