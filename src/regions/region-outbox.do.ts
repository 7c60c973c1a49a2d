import { DurableObject } from "cloudflare:workers";
import { configOf } from "../shared/config/config.ts";
import { assert } from "../shared/assert.ts";
import { elapsedMs, now } from "../shared/clock.ts";
import { mintId } from "../shared/id.ts";
import { objectsOf } from "../shared/contracts/objects.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { createOrMigrateTables } from "../shared/tables.do.ts";
import { withTimeout } from "../shared/timers.ts";
import {
  dropRepeatedIds,
  DELIVER_NOWHERE,
  createWalletDeliverer,
  deliverToPeer,
} from "./outbox-delivery.ts";
import type { PostToPeer } from "./outbox-delivery.ts";
import { createOutcomeMessage, createRevocationMessage } from "./outbox-format.ts";
import type { DeliverMessages, DeliveryResult, OutboxMessage } from "./outbox-format.ts";
import type { RevocationItem, OutcomeItem, OutboxState } from "../shared/contracts/outbox.ts";
import { outboxTarget, RETRY_DELAY_MAX_MS } from "./outbox-schedule.ts";
import type { OutboxTarget } from "./outbox-schedule.ts";
import { callPeer } from "./peer-call.ts";
import { OUTBOX_TABLES, OutboxQueue } from "./region-outbox-queue.do.ts";
import type { Region } from "../shared/regions.ts";

/**
 * Maximum ms of a call: long for slow wallets, short for revocations, because new ones wait for the
 * running call.
 */
const PEER_BUDGET_MS = { outcomes: 5000, revocations: 2000 } as const;
const ENQUEUE_MAX = 1000;
const RETRY_MS = 1000;
/** Time in ms for collecting outcomes into one call. */
const GATHER_MS = 100;
const ALARM_GAP_MS = 1000;
const OVERDUE_MS = 60_000;

/**
 * A durable message queue. Its objects are `own/0` to `own/15` for this region's wallets,
 * `{peer}/0` to `{peer}/15` for the other region's, and `{peer}/revocations`. Delivers at least
 * once.
 */
export class RegionOutbox extends DurableObject<Env> {
  /** The object's name, stored because an alarm may run without it. */
  readonly #name: string;
  #isNameStored: boolean;
  readonly #queue: OutboxQueue;
  /**
   * Resolves when the last delivery ends. Deliveries run one by one, so that none sends a message
   * twice.
   */
  #lastDelivery: Promise<unknown> = Promise.resolve();
  #alarmSetMs = -Infinity;
  /** Running flushes by receiver. Concurrent callers share a flush. */
  readonly #flushing = new Map<string | null, Promise<void>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    createOrMigrateTables(ctx.storage, OUTBOX_TABLES);
    const [self] = ctx.storage.sql.exec<{ name: string }>("SELECT name FROM self");
    this.#isNameStored = self !== undefined;
    this.#name = self?.name ?? ctx.id.name ?? "unnamed";
    this.#queue = new OutboxQueue(ctx.storage, this.#name);
    void ctx.blockConcurrencyWhile(() => this.#restoreAlarm());
  }

  async enqueue(items: readonly OutcomeItem[]): Promise<void> {
    this.#assertCanEnqueue("outcomes", items.length);
    this.#queue.add(items.map(createOutcomeMessage), now(this.env));
    this.#storeName();
    await this.#setAlarmSoon();
  }

  async enqueueRevocations(items: readonly RevocationItem[]): Promise<void> {
    this.#assertCanEnqueue("revocations", items.length);
    this.#queue.addDueNow(items.map(createRevocationMessage), now(this.env));
    this.#storeName();
    await this.#setAlarm();
  }

  async flush(limitMs: number, receiver: string | null = null): Promise<boolean> {
    if (this.#queue.nextDueAt(receiver) === null) return true;
    const deliver = (): Promise<void> => this.#deliverWaiting(limitMs, receiver);
    const flush =
      this.#flushing.get(receiver) ??
      this.#oneAtATime(deliver).finally(() => this.#flushing.delete(receiver));
    this.#flushing.set(receiver, flush);
    try {
      await withTimeout(flush, limitMs);
    } catch (error) {
      logWarning("outbox_flush_failed", { outbox: this.#name, reason: errorMessageOf(error) });
    }
    return this.#queue.nextDueAt(receiver) === null;
  }

  async poke(): Promise<void> {
    this.#queue.retryParked(now(this.env));
    await this.#setAlarm();
  }

  depth(): OutboxState {
    return this.#queue.depth(now(this.env));
  }

  /** Delivers due messages. Never throws, because the platform retries an alarm only six times. */
  override async alarm(): Promise<void> {
    let waitMinMs = 0;
    this.#alarmSetMs = -Infinity; // so that new messages set another alarm
    try {
      if (this.#target().carries === "outcomes") waitMinMs = GATHER_MS;
      const due = (): readonly OutboxMessage[] => this.#queue.due(now(this.env));
      if (!(await this.#oneAtATime(() => this.#deliver(due())))) waitMinMs = RETRY_MS;
    } catch (error) {
      waitMinMs = RETRY_MS;
      logWarning("outbox_alarm_failed", { outbox: this.#name, reason: errorMessageOf(error) });
    }
    // The alarm is set last, because an exception after `setAlarm` would prevent the platform's
    // retry.
    try {
      await this.#setAlarm(waitMinMs);
    } catch (error) {
      logWarning("outbox_alarm_failed", { outbox: this.#name, reason: errorMessageOf(error) });
      await this.ctx.storage.setAlarm(now({}) + RETRY_MS);
    }
  }

  #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    const delivery = this.#lastDelivery.then(work);
    this.#lastDelivery = delivery.catch(() => undefined);
    return delivery;
  }

  /**
   * Delivers up to 100 messages, even before they are due. After a success, continues with all due
   * messages.
   */
  async #deliverWaiting(limitMs: number, receiver: string | null): Promise<void> {
    const untilMs = elapsedMs() + limitMs;
    let messages = this.#queue.waiting(receiver);
    try {
      while (messages.length > 0 && elapsedMs() < untilMs && (await this.#deliver(messages))) {
        messages = this.#queue
          .due(now(this.env))
          .filter((message) => receiver === null || message.receiver === receiver);
      }
    } finally {
      await this.#setAlarm();
    }
  }

  /** Delivers messages. Returns false if no message got a response. */
  async #deliver(all: readonly OutboxMessage[]): Promise<boolean> {
    const messages = dropRepeatedIds(all);
    if (messages.length === 0) return true;
    const deliveries = await this.#deliverFunction()(messages).catch((error: unknown) =>
      messages.map((): DeliveryResult => ({ kind: "failed", reason: errorMessageOf(error) })),
    );
    return this.#storeResults(messages, deliveries);
  }

  #storeResults(
    messages: readonly OutboxMessage[],
    deliveries: readonly DeliveryResult[],
  ): boolean {
    const nowMs = now(this.env);
    const sharedRandom = Math.random(); // with equal delays, unreachable messages are retried together
    for (const [i, message] of messages.entries()) {
      const delivery = deliveries[i] ?? { kind: "failed", reason: "no answer" };
      const random = delivery.kind === "unreachable" ? sharedRandom : Math.random();
      this.#queue.resolve(message, delivery, { nowMs, random });
    }
    const isAnswered = deliveries.some(({ kind }) => kind !== "unreachable" && kind !== "untried");
    if (isAnswered) this.#queue.retryUnreachable(nowMs);
    return isAnswered;
  }

  #deliverFunction(): DeliverMessages {
    const { carries, peer } = this.#target();
    if (peer === null) {
      return createWalletDeliverer(objectsOf(this.env).wallet);
    }
    const post = this.#peerPoster(peer, carries);
    if (post === null) return DELIVER_NOWHERE;
    return (messages) => deliverToPeer(carries, messages, post);
  }

  #peerPoster(region: Region, operation: "outcomes" | "revocations"): PostToPeer | null {
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
      // The call makes one attempt, because the queue retries.
      return callPeer(peer, operation, body, { requestId, now: clock, budgetMs, attempts: 1 });
    };
  }

  async #setAlarmSoon(): Promise<void> {
    const sinceMs = Math.abs(elapsedMs() - this.#alarmSetMs);
    if (sinceMs < ALARM_GAP_MS) return;
    if (await this.#setAlarm(GATHER_MS)) this.#alarmSetMs = elapsedMs();
  }

  /** Sets the next alarm by the platform's clock, which tests can't shift, unlike `now(env)`. */
  async #setAlarm(waitMinMs = 0): Promise<boolean> {
    const nowMs = now(this.env);
    this.#queue.followClock(nowMs);
    const dueAt = this.#queue.nextDueAt();
    if (dueAt === null) return false;
    await this.ctx.storage.setAlarm(now({}) + Math.max(waitMinMs, dueAt - nowMs));
    return true;
  }

  /** Sets the alarm again if it was lost, is overdue or is too far in the future. */
  async #restoreAlarm(): Promise<void> {
    if (this.#queue.nextDueAt() === null) return;
    const alarmAt = await this.ctx.storage.getAlarm();
    const platformMs = now({});
    const isAlarmValid =
      alarmAt !== null &&
      alarmAt >= platformMs - OVERDUE_MS &&
      alarmAt <= platformMs + RETRY_DELAY_MAX_MS;
    if (!isAlarmValid) await this.#setAlarm();
  }

  #assertCanEnqueue(kind: OutboxTarget["carries"], count: number): void {
    assert(this.#target().carries === kind, `${this.#name} carries no ${kind}`);
    assert(count <= ENQUEUE_MAX, `at most ${ENQUEUE_MAX} items at once`);
  }

  #target(): OutboxTarget {
    const target = outboxTarget(this.#name);
    assert(target !== null, `${this.#name} is no outbox`);
    return target;
  }

  #storeName(): void {
    if (this.#isNameStored) return;
    this.ctx.storage.sql.exec("INSERT OR IGNORE INTO self (one, name) VALUES (1, ?)", this.#name);
    this.#isNameStored = true;
  }
}
