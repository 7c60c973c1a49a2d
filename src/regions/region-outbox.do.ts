import { DurableObject } from "cloudflare:workers";
import { configOf } from "../shared/config/config.ts";
import { assert } from "../shared/assert.ts";
import { elapsedMs, now } from "../shared/clock.ts";
import { mintId } from "../shared/id.ts";
import { objectsOf } from "../shared/contracts/objects.ts";
import { logWarning, reasonOf } from "../shared/log.ts";
import { makeTables } from "../shared/tables.do.ts";
import { within } from "../shared/timers.ts";
import {
  firstOfEachId,
  outcomesToPeer,
  revocationsToPeer,
  DELIVER_NOWHERE,
  toOwnWallets,
} from "./outbox-delivery.ts";
import type { Post } from "./outbox-delivery.ts";
import { outcomeMessage, revocationMessage } from "./outbox-message.ts";
import type { Deliver, Delivery, Message } from "./outbox-message.ts";
import type { RevocationItem, OutcomeItem, Depth } from "../shared/contracts/outbox.ts";
import { outboxTarget, BACKOFF_MAX_MS } from "./outbox-schedule.ts";
import type { OutboxTarget } from "./outbox-schedule.ts";
import { callPeer } from "./peer-call.ts";
import { OUTBOX_TABLES, OutboxQueue } from "./region-outbox-queue.do.ts";
import type { Region } from "../shared/regions.ts";

/**
 * How long a peer may take for all of a request. A new revocation waits at most this long for the one
 * before it; a hundred outcomes may find slow wallets.
 */
const PEER_BUDGET_MS = { outcomes: 5000, revocations: 2000 } as const;
const ENQUEUE_MAX = 1000;
/** Least pause after an alarm that failed as a whole, so that it never spins. */
const RETRY_MS = 1000;
/** Outcomes gather for so long after the first: one signed request, and one round of alarm, for all of them. */
const GATHER_MS = 100;
/** An alarm that was set this long ago and has not come is set again. */
const ARMED_MS = 1000;
/** An alarm this long overdue was lost, not merely about to run. */
const STALE_MS = 60_000;

/**
 * A durable queue of what another object must still hear, one object per shard: `own/0` to `own/15`
 * for this region's wallets, `{peer}/0` to `{peer}/15` for a peer's, `{peer}/revocations` for the keys
 * it must refuse. What was enqueued is delivered at least once; the receiver takes it once. Its calls: `OutboxCalls`.
 */
export class RegionOutbox extends DurableObject<Env> {
  /** What it does is in its name, which it keeps: an alarm need not say whose it is. */
  readonly #name: string;
  #isNameKept: boolean;
  readonly #queue: OutboxQueue;
  /** Ends when nothing is being delivered: one delivery at a time, so that none is sent twice at once. */
  #idle: Promise<unknown> = Promise.resolve();
  /** When the alarm was last set for outcomes to come, until it comes. */
  #armedMs = -Infinity;
  /** The flushes under way, each shared by all who ask for the same receiver. */
  readonly #flushing = new Map<string | null, Promise<void>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    makeTables(ctx.storage, OUTBOX_TABLES);
    const [self] = ctx.storage.sql.exec<{ name: string }>("SELECT name FROM self");
    this.#isNameKept = self !== undefined;
    this.#name = self?.name ?? ctx.id.name ?? "unnamed";
    this.#queue = new OutboxQueue(ctx.storage, this.#name);
    void ctx.blockConcurrencyWhile(() => this.#restoreAlarm());
  }

  async enqueue(items: readonly OutcomeItem[]): Promise<void> {
    this.#mayEnqueue("outcomes", items.length);
    this.#queue.add(items.map(outcomeMessage), now(this.env));
    this.#keepName();
    await this.#armSoon();
  }

  async enqueueRevocations(items: readonly RevocationItem[]): Promise<void> {
    this.#mayEnqueue("revocations", items.length);
    this.#queue.addAtOnce(items.map(revocationMessage), now(this.env));
    this.#keepName();
    await this.#arm();
  }

  async flush(limitMs: number, receiver: string | null = null): Promise<boolean> {
    if (this.#queue.nextDueAt(receiver) === null) return true;
    const deliver = (): Promise<void> => this.#deliverWaiting(limitMs, receiver);
    const flushing =
      this.#flushing.get(receiver) ??
      this.#oneAtATime(deliver).finally(() => this.#flushing.delete(receiver));
    this.#flushing.set(receiver, flushing);
    try {
      await within(flushing, limitMs);
    } catch (error) {
      logWarning("outbox_flush_failed", { outbox: this.#name, reason: reasonOf(error) });
    }
    return this.#queue.nextDueAt(receiver) === null;
  }

  async poke(): Promise<void> {
    this.#queue.revive(now(this.env));
    await this.#arm();
  }

  depth(): Depth {
    return this.#queue.depth(now(this.env));
  }

  /** Delivers what is due. Catches everything: a throw would use up the platform's six retries. */
  override async alarm(): Promise<void> {
    let leastWaitMs = 0;
    this.#armedMs = -Infinity; // what comes from here on sets its own
    try {
      if (this.#addressee().carries === "outcomes") leastWaitMs = GATHER_MS;
      const due = (): readonly Message[] => this.#queue.due(now(this.env));
      if (!(await this.#oneAtATime(() => this.#deliver(due())))) leastWaitMs = RETRY_MS;
    } catch (error) {
      leastWaitMs = RETRY_MS;
      logWarning("outbox_alarm_failed", { outbox: this.#name, reason: reasonOf(error) });
    }
    // Last: an alarm set before a throw would replace the platform's retry.
    try {
      await this.#arm(leastWaitMs);
    } catch (error) {
      logWarning("outbox_alarm_failed", { outbox: this.#name, reason: reasonOf(error) });
      await this.ctx.storage.setAlarm(now({}) + RETRY_MS);
    }
  }

  #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#idle.then(work);
    this.#idle = mine.catch(() => undefined);
    return mine;
  }

  /** Up to a hundred whatever their backoff; if they were answered, then all that is due. */
  async #deliverWaiting(limitMs: number, receiver: string | null): Promise<void> {
    const untilMs = elapsedMs() + limitMs;
    let messages = this.#queue.waiting(receiver);
    try {
      // oxlint-disable-next-line no-await-in-loop -- one delivery at a time
      while (messages.length > 0 && elapsedMs() < untilMs && (await this.#deliver(messages))) {
        messages = this.#queue
          .due(now(this.env))
          .filter((message) => receiver === null || message.receiver === receiver);
      }
    } finally {
      await this.#arm();
    }
  }

  /** Delivers some messages and takes in the answers; false when nobody answered for any of them. */
  async #deliver(all: readonly Message[]): Promise<boolean> {
    const messages = firstOfEachId(all);
    if (messages.length === 0) return true;
    const deliveries = await this.#deliverer()(messages).catch((error: unknown) =>
      messages.map((): Delivery => ({ kind: "failed", reason: reasonOf(error) })),
    );
    return this.#takeIn(messages, deliveries);
  }

  #takeIn(messages: readonly Message[], deliveries: readonly Delivery[]): boolean {
    const nowMs = now(this.env);
    const together = Math.random(); // what found nobody comes back in one request
    for (const [i, message] of messages.entries()) {
      const delivery = deliveries[i] ?? { kind: "failed", reason: "no answer" };
      const random = delivery.kind === "unreachable" ? together : Math.random();
      this.#queue.resolve(message, delivery, { nowMs, random });
    }
    const isAnswered = deliveries.some(({ kind }) => kind !== "unreachable" && kind !== "untried");
    if (isAnswered) this.#queue.heard(nowMs);
    return isAnswered;
  }

  /** Who hears the messages of this shard. */
  #deliverer(): Deliver {
    const { carries, peer } = this.#addressee();
    if (peer === null) {
      return toOwnWallets(objectsOf(this.env).wallet);
    }
    const post = this.#postTo(peer, carries);
    if (post === null) return DELIVER_NOWHERE;
    return carries === "outcomes" ? outcomesToPeer(post) : revocationsToPeer(post);
  }

  #postTo(region: Region, operation: "outcomes" | "revocations"): Post | null {
    const parsed = configOf(this.env);
    const peer = parsed.ok ? parsed.config.peers.find((one) => one.region === region) : undefined;
    if (peer === undefined) {
      logWarning("outbox_without_peer", { outbox: this.#name, peer: region });
      return null;
    }
    const clock = (): number => now(this.env);
    const budgetMs = PEER_BUDGET_MS[operation];
    return (body) => {
      const requestId = mintId("req_", clock());
      // one attempt: the queue repeats by itself
      return callPeer(peer, operation, body, { requestId, now: clock, budgetMs, attempts: 1 });
    };
  }

  /** As `#arm`, in a little while, for an alarm that is not set yet. */
  async #armSoon(): Promise<void> {
    const sinceMs = Math.abs(elapsedMs() - this.#armedMs);
    if (sinceMs >= ARMED_MS && (await this.#arm(GATHER_MS))) this.#armedMs = elapsedMs();
  }

  /**
   * The alarm is the time of the message that is due first. The clock may be shifted for tests, the
   * platform's alarms are not: what counts is how long it is until then. False when nothing waits.
   */
  async #arm(leastWaitMs = 0): Promise<boolean> {
    const nowMs = now(this.env);
    this.#queue.followClock(nowMs);
    const dueAt = this.#queue.nextDueAt();
    if (dueAt === null) return false;
    await this.ctx.storage.setAlarm(now({}) + Math.max(leastWaitMs, dueAt - nowMs));
    return true;
  }

  /** What waits must have an alarm: one that was lost, long past or far off is set again. */
  async #restoreAlarm(): Promise<void> {
    if (this.#queue.nextDueAt() === null) return;
    const alarmAt = await this.ctx.storage.getAlarm();
    const platformMs = now({});
    const isSound =
      alarmAt !== null &&
      alarmAt >= platformMs - STALE_MS &&
      alarmAt <= platformMs + BACKOFF_MAX_MS;
    if (!isSound) await this.#arm();
  }

  #mayEnqueue(what: OutboxTarget["carries"], count: number): void {
    assert(this.#addressee().carries === what, `${this.#name} carries no ${what}`);
    assert(count <= ENQUEUE_MAX, `at most ${ENQUEUE_MAX} items at once`);
  }

  #addressee(): OutboxTarget {
    const addressee = outboxTarget(this.#name);
    assert(addressee !== null, `${this.#name} is no outbox`);
    return addressee;
  }

  #keepName(): void {
    if (this.#isNameKept) return;
    this.ctx.storage.sql.exec("INSERT OR IGNORE INTO self (one, name) VALUES (1, ?)", this.#name);
    this.#isNameKept = true;
  }
}
