import { capture, newCard, newIntent } from "./charging.ts";
import { answerBank, payOnPage } from "./checkout.ts";
import { deleteCustomer, detach } from "./customers.ts";
import { payElsewhere, payOnInvoicePage } from "./invoices.ts";
import type { CardBehavior, DisputeStatus, RefundStatus } from "./objects.ts";
import { dispute, moveDispute, moveRefund, refund, warn } from "./returns.ts";
import { liveCustomer } from "./state.ts";
import type { StripeState } from "./state.ts";

/** A buyer on Stripe's pages. */
export class Person {
  readonly #state: StripeState;

  constructor(state: StripeState) {
    this.#state = state;
  }

  /** Pays a session and saves the card if requested. Returns the payment's ID. */
  pay(session: string): string {
    return payOnPage(this.#state, session, "ok").id;
  }

  /** Tries a card that the bank declines. The session stays open. */
  decline(session: string, decline_code = "insufficient_funds"): string {
    return payOnPage(this.#state, session, { decline_code }).id;
  }

  /** Tries a card whose bank requires approval. */
  asks(session: string): string {
    return payOnPage(this.#state, session, "asks").id;
  }

  /** Approves the payment at the bank. */
  approve(session: string): string {
    return answerBank(this.#state, session, true).id;
  }

  refuse(session: string): string {
    return answerBank(this.#state, session, false).id;
  }

  /** Pays an open invoice on its page, with the bank's approval if needed. */
  payInvoice(invoice: string): string {
    return payOnInvoicePage(this.#state, invoice).id;
  }
}

/** Banks, networks and users of Stripe's Dashboard. Amounts are in cents. */
export class Bank {
  readonly #state: StripeState;

  constructor(state: StripeState) {
    this.#state = state;
  }

  /** Sets a saved card's behavior. */
  card(method: string, behavior: CardBehavior): void {
    this.#state.cards.set(method, behavior);
  }

  /** Sets the behavior of the next charge of any saved card. Several calls queue. */
  next(behavior: CardBehavior): void {
    this.#state.nextCharges.push(behavior);
  }

  /** Refunds a payment, by default everything left. Returns the refund's ID. */
  refund(intent: string, cents: number | null = null, status: RefundStatus = "succeeded"): string {
    return refund(this.#state, intent, { cents, status }).id;
  }

  moveRefund(id: string, status: RefundStatus): void {
    moveRefund(this.#state, id, status, status === "failed" ? "lost_or_stolen_card" : undefined);
  }

  dispute(
    intent: string,
    {
      cents = null,
      status = "needs_response",
    }: { cents?: number | null; status?: DisputeStatus } = {},
  ): string {
    return dispute(this.#state, intent, cents, status).id;
  }

  /** `reinstated` is the returned part of a won dispute, by default all. */
  moveDispute(id: string, status: DisputeStatus, reinstated: number | null = null): void {
    moveDispute(this.#state, id, status, reinstated);
  }

  /** Sends an early fraud warning. */
  warn(intent: string): void {
    warn(this.#state, intent);
  }

  detach(method: string): void {
    detach(this.#state, method);
  }

  deleteCustomer(id: string): void {
    deleteCustomer(this.#state, id);
  }

  /** Makes a payment by hand in the Dashboard. Returns its ID. */
  handMade(customer: string, cents: number): string {
    const intent = newIntent(this.#state, {
      amount: cents,
      customer: liveCustomer(this.#state, customer).id,
      metadata: {},
      setup_future_usage: null,
    });
    capture(this.#state, intent, newCard(this.#state));
    return intent.id;
  }

  /** Marks an invoice as paid out of band. */
  payElsewhere(invoice: string): void {
    payElsewhere(this.#state, invoice);
  }
}
