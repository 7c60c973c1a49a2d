import type { StripeHint, TopUpRequest } from "../../shared/contracts/payments.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import { logAlert } from "../../shared/log.ts";
import {
  tryWalletCall,
  creditWalletStep,
  sendRefundsToWallet,
  resendPaymentsToWallet,
} from "./crediting.ts";
import { processStripeHint } from "./hints.ts";
import { endPurchase, moveToPurchaseStep, storePurchase } from "./purchase-transitions.ts";
import { purchaseRetryDelayMs } from "./payment-rules.ts";
import { isPurchaseEnded } from "./purchase.ts";
import type { Purchase, PurchaseStep, PendingStripeHint, PaymentDeps } from "./purchase.ts";
import {
  createCustomerStep,
  finalizeInvoiceStep,
  createInvoiceStep,
  addInvoiceItemStep,
  payInvoiceStep,
  createCheckoutStep,
} from "./steps.ts";
import type { PurchaseStepFunction } from "./steps.ts";
import {
  discardInvoiceStep,
  expireCheckoutStep,
  readPurchaseStep,
  voidInvoiceStep,
} from "./read-purchase.ts";

const STEPS: Readonly<Record<PurchaseStep, PurchaseStepFunction>> = {
  customer: createCustomerStep,
  session: createCheckoutStep,
  invoice: createInvoiceStep,
  item: addInvoiceItemStep,
  finalize: finalizeInvoiceStep,
  pay: payInvoiceStep,
  read: readPurchaseStep,
  expire: expireCheckoutStep,
  void: voidInvoiceStep,
  discard: discardInvoiceStep,
  credit: creditWalletStep,
};

const STEPS_MAX = 30;
const CONCURRENCY_MAX = 8;

export function createPendingPurchase(
  of: Pick<Purchase, "id" | "method" | "amountMicro" | "saveCard" | "returnUrl" | "actor">,
  nowMs: number,
): Purchase {
  return {
    ...of,
    state: "wanted",
    step: "customer",
    sent: null,
    tries: 0,
    anew: 0,
    nextAt: nowMs,
    createdAt: nowMs,
    updatedAt: nowMs,
    expiresAt: null,
    customerId: null,
    paymentMethod: null,
    sessionId: null,
    invoiceId: null,
    paymentId: null,
    url: null,
    ending: null,
    error: null,
    card: null,
    requestId: null,
    untold: [],
    tellAt: null,
  };
}

/** Failed attempts to process a hint (about an hour) before the first alert. */
const STUCK_TRIES = 12;
const STUCK_AGAIN_TRIES = 144;

function logStuckHint({ orgId, eventId, kind, object, tries }: PendingStripeHint): void {
  if (tries % STUCK_AGAIN_TRIES !== STUCK_TRIES) return;
  logAlert("payment_hint_stuck", { org_id: orgId, event_id: eventId, kind, object, tries });
}

/**
 * Runs purchases step by step. Stores each step before running it. Steps of one purchase never
 * overlap.
 */
export class PurchaseRunner {
  readonly #deps: PaymentDeps;
  readonly #queues = new QueuesByName();

  constructor(deps: PaymentDeps) {
    this.#deps = deps;
  }

  startTopUp({ id, amountMicro }: TopUpRequest): void {
    const { rows, now } = this.#deps;
    if (rows.purchase(id) !== null) return;
    const auto = { id, method: "auto", amountMicro, saveCard: false, returnUrl: "" } as const;
    rows.putPurchase(createPendingPurchase({ ...auto, actor: SYSTEM_ACTOR }, now()));
  }

  /** Cancels a purchase. A payment that arrives meanwhile is credited. */
  cancel(id: string): void {
    const { rows, now } = this.#deps;
    const purchase = rows.purchase(id);
    if (purchase === null || isPurchaseEnded(purchase) || purchase.state === "paid") return;
    const cancelled = { state: "expired", error: "cancelled", isHard: false } as const;
    // A cancellation doesn't replace an ending that turns off automatic top-up, such as a removed
    // card.
    const ending = purchase.ending?.isHard === true ? purchase.ending : cancelled;
    const hasNotStarted = purchase.step === "customer" && purchase.sent === null;
    if (hasNotStarted) endPurchase(this.#deps, purchase, ending);
    else storePurchase(this.#deps, purchase, { ending, nextAt: now() });
  }

  advance(id: string): Promise<void> {
    return this.#queues.run(id, () => this.#runSteps(id));
  }

  refreshPurchase(id: string): Promise<void> {
    return this.#queues.run(id, async () => {
      const { rows } = this.#deps;
      const purchase = rows.purchase(id);
      if (purchase === null) return;
      const isPaid = purchase.state === "credited" || purchase.state === "paid";
      if (!isPaid && purchase.customerId !== null) moveToPurchaseStep(this.#deps, purchase, "read");
      await this.#runSteps(id);
    });
  }

  applyRefunds(paymentId: string): Promise<boolean> {
    return this.#queues.run(paymentId, () => sendRefundsToWallet(this.#deps, paymentId));
  }

  resendPayments(madeAt: number): Promise<boolean> {
    return this.#queues.run("restate", () => resendPaymentsToWallet(this.#deps, madeAt));
  }

  addHint(hint: StripeHint): void {
    const { rows, now } = this.#deps;
    if (rows.isHintProcessed(hint.eventId)) return;
    if (rows.waitingHints().some(({ eventId }) => eventId === hint.eventId)) return;
    rows.putWaitingHint({ ...hint, tries: 0, nextAt: now() });
  }

  async runDueWork(): Promise<void> {
    const { rows, now } = this.#deps;
    const isDue = (at: number | null): boolean => at !== null && at <= now();
    const due = rows.openPurchases().filter(({ nextAt, tellAt }) => isDue(nextAt) || isDue(tellAt));
    const hints = rows.waitingHints().filter(({ nextAt }) => isDue(nextAt));
    const tasks = [
      ...due.map(
        ({ id }) =>
          () =>
            this.advance(id),
      ),
      ...hints.map((hint) => () => this.handleHint(hint)),
    ];
    while (tasks.length > 0) {
      await Promise.all(tasks.splice(0, CONCURRENCY_MAX).map((task) => task()));
    }
  }

  nextAt(): number | null {
    const { rows } = this.#deps;
    const times = [
      ...rows.openPurchases().flatMap(({ nextAt, tellAt }) => [nextAt, tellAt]),
      ...rows.waitingHints().map(({ nextAt }) => nextAt),
    ].filter((at) => at !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Reads the object of a Stripe event. Events about one object share a read. */
  handleHint(hint: PendingStripeHint): Promise<void> {
    const { kind, object } = hint;
    return this.#queues.run(`${kind}:${object}`, async () => {
      const { rows, now } = this.#deps;
      const due = rows.waitingHints().find(({ eventId }) => eventId === hint.eventId);
      if (due === undefined || due.nextAt > now()) return; // an earlier hint already read the object
      const same = rows.waitingHints().filter((one) => one.kind === kind && one.object === object);
      const isDone = await processStripeHint(this.#deps, this, due);
      const tries = due.tries + 1;
      if (!isDone) logStuckHint({ ...due, tries });
      for (const one of same) {
        if (isDone) rows.markHintProcessed(one, now());
        else rows.putWaitingHint({ ...one, tries, nextAt: now() + purchaseRetryDelayMs(tries) });
      }
    });
  }

  async #runSteps(id: string): Promise<void> {
    const { rows, now } = this.#deps;
    for (let step = 0; step < STEPS_MAX; step++) {
      const purchase = rows.purchase(id);
      if (purchase === null) return;
      const { nextAt, step: next, tellAt, untold } = purchase;
      if (untold.length > 0 && (tellAt ?? 0) <= now()) await this.#sendOutcome(purchase);
      else if (next !== null && nextAt !== null && nextAt <= now()) {
        await STEPS[next](this.#deps, purchase);
      } else return;
    }
  }

  async #sendOutcome({ id, untold }: Purchase): Promise<void> {
    const { rows, now, wallet } = this.#deps;
    const [first] = untold;
    if (first === undefined) return;
    const answer = await tryWalletCall(() => wallet.tellPurchase(first));
    const after = rows.purchase(id);
    if (after === null) return;
    if (answer?.ok !== true) {
      return void storePurchase(this.#deps, after, { tellAt: now() + purchaseRetryDelayMs(1) });
    }
    const left = after.untold.slice(1);
    storePurchase(this.#deps, after, { untold: left, tellAt: left.length === 0 ? null : now() });
  }
}

/** Runs work with the same name one at a time and in order. A failure doesn't stop later work. */
class QueuesByName {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(name, settled);
    void this.#forget(name, settled);
    return mine;
  }

  async #forget(name: string, settled: Promise<unknown>): Promise<void> {
    await settled;
    if (this.#last.get(name) === settled) this.#last.delete(name);
  }
}
