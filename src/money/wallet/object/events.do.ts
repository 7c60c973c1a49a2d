import { objectsOf } from "../../../shared/contracts/objects.ts";
import { elapsedMs } from "../../../shared/clock.ts";
import { success } from "../../../shared/failure.ts";
import { logWarning, errorMessageOf } from "../../../shared/log.ts";
import { withTimeout } from "../../../shared/timers.ts";
import {
  deleteWaitingEvents,
  readWaitingEvents,
  WAITING_EVENTS_PER_PAGE,
} from "../waiting-events.store.ts";
import {
  flushSuppressedEvents,
  selectRenamedEvents,
  selectUndeliveredEvents,
  storeEvent,
  clearRenamedFlags,
  markEventsDelivered,
} from "./event-log.do.ts";
import type { Decisions } from "./decisions.do.ts";
import { markTopUpDelivered } from "./top-up.do.ts";

const EVENTS_PER_CALL_MAX = 100;
const TAKE_TIMEOUT_MS = 10_000;
const FAILURE_PAUSE_MS = 5000;

/**
 * Sends new events in order to the webhooks object, which ignores duplicates. The next publish
 * retries failures.
 */
export class WebhookFeed {
  readonly #decisions: Decisions;
  readonly #env: () => Env;
  #isDelivering = false;
  #pausedUntil = -Infinity;

  constructor(decisions: Decisions, env: () => Env) {
    this.#decisions = decisions;
    this.#env = env;
  }

  async deliver(): Promise<void> {
    if (this.#isDelivering || elapsedMs() < this.#pausedUntil) return;
    this.#isDelivering = true;
    try {
      while (await this.#deliverPage());
    } catch (error) {
      this.#pausedUntil = elapsedMs() + FAILURE_PAUSE_MS;
      logWarning("events_not_told", { reason: errorMessageOf(error) });
      const memory = this.#decisions.tryOpen()?.memory;
      if (memory !== undefined) memory.hasChanges = true;
    } finally {
      this.#isDelivering = false;
    }
  }

  async #deliverPage(): Promise<boolean> {
    const tx = this.#decisions.tryOpen();
    if (tx === null || !tx.memory.hasUndelivered) return false;
    const { sql, memory } = tx;
    const { orgId } = memory.row;
    const { events, lastSeq } = selectUndeliveredEvents(sql, EVENTS_PER_CALL_MAX);
    const renamed = events.length > 0 ? [] : selectRenamedEvents(sql, EVENTS_PER_CALL_MAX);
    memory.hasUndelivered = events.length + renamed.length > 0;
    if (!memory.hasUndelivered) return false;
    const webhooks = objectsOf(this.#env()).deliveries(orgId);
    const sent = events.length > 0 ? webhooks.take(orgId, events) : webhooks.rename(renamed);
    await withTimeout(sent, TAKE_TIMEOUT_MS);
    return this.#decisions.decideSilently((later) => {
      if (events.length > 0) markEventsDelivered(later.sql, lastSeq);
      else clearRenamedFlags(later.sql, renamed);
      return success(null);
    }).ok;
  }
}

const PAGES_MAX = 20;
const DATABASE_TIMEOUT_MS = 5000;

export function flushSuppressedEventsInTransaction(decisions: Decisions): void {
  decisions.decide((tx) => {
    tx.storage.transactionSync(() => flushSuppressedEvents(tx));
    return success(null);
  });
}

/** Moves events from D1 to the wallet's log. Never throws: events that fail stay in D1. */
export async function takeWaitingEvents(db: D1Database, decisions: Decisions): Promise<void> {
  try {
    const orgId = decisions.tryOpen()?.memory.row.orgId;
    if (orgId === undefined) return;
    flushSuppressedEventsInTransaction(decisions);
    for (let page = 0; page < PAGES_MAX; page++) {
      const waiting = await withTimeout(readWaitingEvents(db, orgId), DATABASE_TIMEOUT_MS);
      if (waiting.length === 0) return;
      const taken = decisions.decide((tx) => {
        tx.storage.transactionSync(() => {
          for (const event of waiting) storeEvent(tx, event);
        });
        return success(null);
      });
      if (!taken.ok) return;
      await withTimeout(deleteWaitingEvents(db, waiting), DATABASE_TIMEOUT_MS);
      if (waiting.length < WAITING_EVENTS_PER_PAGE) return;
    }
  } catch (error) {
    logWarning("events_not_taken", { reason: errorMessageOf(error) });
  }
}

const NOTIFY_TIMEOUT_MS = 10_000;

/** Sends a requested top-up to the payments object. If that fails, the next publish retries. */
export async function notifyTopUp(decisions: Decisions, env: Env): Promise<void> {
  const memory = decisions.tryOpen()?.memory;
  const open = memory?.topUp.open ?? null;
  if (memory === undefined || open === null || open.isTold) return;
  const { orgId } = memory.row;
  const { id, amountMicro, wantedAt } = open;
  try {
    const notifying = objectsOf(env).payments(orgId).topUp({ orgId, id, amountMicro, wantedAt });
    if (!(await withTimeout(notifying, NOTIFY_TIMEOUT_MS)).ok) throw new Error("it was not taken");
    decisions.decideSilently((tx) => {
      markTopUpDelivered(tx, id);
      return success(null);
    });
  } catch (error) {
    logWarning("top_up_not_told", { org_id: orgId, id, reason: errorMessageOf(error) });
    const later = decisions.tryOpen()?.memory;
    if (later !== undefined) later.hasChanges = true;
  }
}
