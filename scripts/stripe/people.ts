import { capture, newCard, newIntent } from "./charging.ts";
import { answerBank, payOnPage } from "./checkout.ts";
import { deleteCustomer, detach } from "./customers.ts";
import { payElsewhere, payOnInvoicePage } from "./invoices.ts";
import type { CardBehavior, DisputeStatus, RefundStatus } from "./objects.ts";
import { dispute, moveDispute, moveRefund, refund, warn } from "./returns.ts";
import { liveCustomer } from "./world.ts";
import type { World } from "./world.ts";

/** What a buyer does on Stripe's pages. */
export class Person {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Pays a session; the card is kept where the session asked for that. Returns the intent's id. */
  pay(session: string): string {
    return payOnPage(this.#world, session, "ok").id;
  }

  /** Tries a card that the bank declines; the session stays open. */
  decline(session: string, decline_code = "insufficient_funds"): string {
    return payOnPage(this.#world, session, { decline_code }).id;
  }

  /** Tries a card whose bank wants to see its customer first. */
  asks(session: string): string {
    return payOnPage(this.#world, session, "asks").id;
  }

  /** The bank has asked: the buyer approves, or does not. */
  approve(session: string): string {
    return answerBank(this.#world, session, true).id;
  }

  refuse(session: string): string {
    return answerBank(this.#world, session, false).id;
  }

  /** Completes an open invoice on its page, before the bank where that asks. */
  payInvoice(invoice: string): string {
    return payOnInvoicePage(this.#world, invoice).id;
  }
}

/** What banks, networks and whoever works in Stripe's Dashboard do. Amounts are cents. */
export class Bank {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** How a kept card behaves from now on. */
  card(method: string, behavior: CardBehavior): void {
    this.#world.cards.set(method, behavior);
  }

  /** How the next charge of a kept card goes, whichever it is; several calls stand in a row. */
  next(behavior: CardBehavior): void {
    this.#world.nextCharges.push(behavior);
  }

  /** Gives money back, all that is left where no amount is said. Returns the refund's id. */
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

  /** `reinstated`: what of a won dispute comes back; all of it where nothing is said. */
  moveDispute(id: string, status: DisputeStatus, reinstated: number | null = null): void {
    moveDispute(this.#world, id, status, reinstated);
  }

  /** An early fraud warning. */
  warn(intent: string): void {
    warn(this.#world, intent);
  }

  detach(method: string): void {
    detach(this.#world, method);
  }

  deleteCustomer(id: string): void {
    deleteCustomer(this.#world, id);
  }

  /** A payment made by hand in the Dashboard, for which nobody has ordered anything. Returns the intent's id. */
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
