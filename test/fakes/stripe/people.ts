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
  readonly #world: StripeState;

  constructor(world: StripeState) {
    this.#world = world;
  }

  /** Pays a session and saves the card if requested. Returns the payment's ID. */
  pay(session: string): string {
    return payOnPage(this.#world, session, "ok").id;
  }

  /** Tries a card that the bank declines. The session stays open. */
  decline(session: string, decline_code = "insufficient_funds"): string {
    return payOnPage(this.#world, session, { decline_code }).id;
  }

  /** Tries a card whose bank requires approval. */
  asks(session: string): string {
    return payOnPage(this.#world, session, "asks").id;
  }

  /** Approves the payment at the bank. */
  approve(session: string): string {
    return answerBank(this.#world, session, true).id;
  }

  refuse(session: string): string {
    return answerBank(this.#world, session, false).id;
  }

  /** Pays an open invoice on its page, with the bank's approval if needed. */
  payInvoice(invoice: string): string {
    return payOnInvoicePage(this.#world, invoice).id;
  }
}

/** Banks, networks and users of Stripe's Dashboard. Amounts are in cents. */
export class Bank {
  readonly #world: StripeState;

  constructor(world: StripeState) {
    this.#world = world;
  }

  /** Sets a saved card's behavior. */
  card(method: string, behavior: CardBehavior): void {
    this.#world.cards.set(method, behavior);
  }

  /** Sets the behavior of the next charge of any saved card. Several calls queue. */
  next(behavior: CardBehavior): void {
    this.#world.nextCharges.push(behavior);
  }

  /** Refunds a payment, by default everything left. Returns the refund's ID. */
  refund(intent: string, cents: number | null = null, status: RefundStatus = "succeeded"): string {
    return refund(this.#world, intent, { cents, status }).id;
  }

  moveRefund(id: string, status: RefundStatus): void {
    moveRefund(this.#world, id, status, status === "failed" ? "lost_or_stolen_card" : undefined);
  }

  dispute(
    intent: string,
    {
      cents = null,
      status = "needs_response",
    }: { cents?: number | null; status?: DisputeStatus } = {},
  ): string {
    return dispute(this.#world, intent, cents, status).id;
  }

  /** `reinstated` is the returned part of a won dispute, by default all. */
  moveDispute(id: string, status: DisputeStatus, reinstated: number | null = null): void {
    moveDispute(this.#world, id, status, reinstated);
  }

  /** Sends an early fraud warning. */
  warn(intent: string): void {
    warn(this.#world, intent);
  }

  detach(method: string): void {
    detach(this.#world, method);
  }

  deleteCustomer(id: string): void {
    deleteCustomer(this.#world, id);
  }

  /** Makes a payment by hand in the Dashboard. Returns its ID. */
  handMade(customer: string, cents: number): string {
    const intent = newIntent(this.#world, {
      amount: cents,
      customer: liveCustomer(this.#world, customer).id,
      metadata: {},
      setup_future_usage: null,
    });
    capture(this.#world, intent, newCard(this.#world));
    return intent.id;
  }

  /** Marks an invoice as paid out of band. */
  payElsewhere(invoice: string): void {
    payElsewhere(this.#world, invoice);
  }
}
