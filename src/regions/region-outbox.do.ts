import { DurableObject } from "cloudflare:workers";
import { assert } from "../lib/assert.ts";
import { now } from "../lib/clock.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { within } from "../lib/within.ts";
import { deliverOutcome, outcomeMessage } from "./outbox-message.ts";
import type { Deliver, Delivery, Message, OutcomeItem } from "./outbox-message.ts";
import { OutboxQueue } from "./region-outbox-queue.do.ts";
import type { Depth } from "./region-outbox-queue.do.ts";

/** Wallets asked at the same time: the platform lets six calls of one object wait for an answer. */
const CONCURRENCY_MAX = 6;
const DELIVERY_TIMEOUT_MS = 10_000;
const ENQUEUE_MAX = 1000;
/** Least pause after an alarm that failed as a whole, so that it never spins. */
const RETRY_MS = 1000;

/**
 * A durable queue of what another object must still hear, one object per shard (`own/0` to `own/15`
 * for this region's wallets). What was enqueued is delivered at least once; the receiver takes it once.
 */
export class RegionOutbox extends DurableObject<Env> {
  readonly #queue: OutboxQueue;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#queue = new OutboxQueue(ctx.storage, ctx.id.name ?? "unnamed");
  }

  /**
   * Stores outcomes and the alarm that will deliver them, together and durable before it answers;
   * never waits for delivery. The same hold and kind again: stored once. Throws when storage does.
   */
  async enqueue(items: readonly OutcomeItem[]): Promise<void> {
    assert(items.length <= ENQUEUE_MAX, `at most ${ENQUEUE_MAX} items at once`);
    this.#queue.add(items.map(outcomeMessage), now(this.env));
    await this.#arm();
  }

  /** For the cron sweep: an alarm that was lost or is overdue is set again. */
  async poke(): Promise<void> {
    await this.#arm();
  }

  /** What is still here, for operators. */
  depth(): Depth {
    return this.#queue.depth(now(this.env));
  }

  /** Delivers what is due. Catches everything: a throw would use up the platform's six retries. */
  override async alarm(): Promise<void> {
    let leastWaitMs = 0;
    try {
      await this.#deliverDue();
    } catch (error) {
      leastWaitMs = RETRY_MS;
      logWarning("outbox_alarm_failed", { outbox: this.#name(), reason: reasonOf(error) });
    }
    // Last: an alarm set before a throw would replace the platform's retry.
    await this.#arm(leastWaitMs);
  }

  async #deliverDue(): Promise<void> {
    const messages = this.#queue.due(now(this.env));
    const deliver = this.#deliverer();
    for (let start = 0; start < messages.length; start += CONCURRENCY_MAX) {
      const some = messages.slice(start, start + CONCURRENCY_MAX);
      // oxlint-disable-next-line no-await-in-loop -- at most six calls may wait at the same time
      const deliveries = await deliver(some).catch((error: unknown) =>
        some.map((): Delivery => ({ kind: "failed", reason: reasonOf(error) })),
      );
      for (const [i, message] of some.entries()) {
        const delivery = deliveries[i] ?? { kind: "failed", reason: "no answer" };
        this.#queue.resolve(message, delivery, now(this.env));
      }
    }
  }

  /** Who hears the messages of this shard. */
  #deliverer(): Deliver {
    assert(this.#name().startsWith("own/"), `no deliverer for the outbox ${this.#name()}`);
    return (messages) => Promise.all(messages.map((message) => this.#deliverToWallet(message)));
  }

  #deliverToWallet(message: Message): Promise<Delivery> {
    const delivery = deliverOutcome(message, (orgId) => {
      const wallets = inJurisdiction(this.env.WALLET, this.env.JURISDICTION);
      return wallets.getByName(orgId);
    });
    return within(delivery, DELIVERY_TIMEOUT_MS).catch((error: unknown) => ({
      kind: "failed",
      reason: reasonOf(error),
    }));
  }

  /**
   * The alarm is the time of the message that is due first. The clock may be shifted for tests, the
   * platform's alarms are not: what counts is how long it is until then.
   */
  async #arm(leastWaitMs = 0): Promise<void> {
    const dueAt = this.#queue.nextDueAt();
    if (dueAt === null) return;
    await this.ctx.storage.setAlarm(now({}) + Math.max(leastWaitMs, dueAt - now(this.env)));
  }

  #name(): string {
    return this.ctx.id.name ?? "unnamed";
  }
}
