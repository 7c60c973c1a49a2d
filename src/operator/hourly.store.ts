import { deleteOldIdempotencyKeys } from "../accounts/keys/insert-once.store.ts";
import { mapConcurrently } from "../shared/map-concurrently.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { withTimeout } from "../shared/timers.ts";
import type { OutboxCalls } from "../shared/contracts/outbox.ts";
import type { SweepMetrics } from "./sweep-metrics.ts";
import { deleteOldOperatorEvents } from "./operator-events.store.ts";
import { startSweep, continueSweep } from "./sweep.store.ts";
import type { SweepTargets } from "./sweep.store.ts";

const CONCURRENT_MAX = 6;
const POKE_TIMEOUT_MS = 5000;
const EXPIRY_NOTICE_MS = 7 * 24 * 60 * 60 * 1000;

type HourlyTargets = SweepTargets & { readonly outboxes: readonly Pick<OutboxCalls, "poke">[] };

/**
 * Restores lost alarms of outboxes, deletes old Idempotency-Keys, records keys that expire soon,
 * and starts a sweep of all wallets. If one step fails, the others still run. Returns the totals if
 * the sweep finishes.
 */
export async function sweepHourly(
  db: D1Database,
  clock: () => number,
  targets: HourlyTargets,
): Promise<SweepMetrics | null> {
  await mapConcurrently(CONCURRENT_MAX, targets.outboxes, (outbox) =>
    logFailure(() => withTimeout(outbox.poke(), POKE_TIMEOUT_MS)),
  );
  await logFailure(() => deleteOldIdempotencyKeys(db, clock()));
  await logFailure(() => recordExpiringKeys(db, clock()));
  await logFailure(() => deleteOldOperatorEvents(db, clock()));
  await startSweep(db);
  return continueSweep(db, clock, targets);
}

async function logFailure(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    logWarning("sweep_failed", { reason: errorMessageOf(error) });
  }
}

const EXPIRING_CURSOR = "expiring";

/**
 * Records an event for each key that came within a week of its expiry since the last run. Keys
 * created with a shorter lifetime are excluded.
 */
async function recordExpiringKeys(db: D1Database, nowMs: number): Promise<void> {
  const until = nowMs + EXPIRY_NOTICE_MS;
  const last = await db
    .prepare("SELECT after FROM cursors WHERE name = ?")
    .bind(EXPIRING_CURSOR)
    .first<string>("after");
  const since = Number(last ?? until);
  await db.batch([
    db
      .prepare(
        // The event ID is derived from key and expiry, so a repeated event is ignored.
        `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
         SELECT 'evt_' || substr(key_id, -16) || printf('%08x', expires_at / 1000), key_terms.org_id,
           'key.expiring', 'system', NULL, key_id,
           json_object('expires_at', strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1000.0, 'unixepoch')), ?3
         FROM key_terms JOIN keys ON keys.id = key_id
         WHERE expires_at > ?1 AND expires_at <= ?2 AND revoked_at IS NULL
         ON CONFLICT (id) DO NOTHING`,
      )
      .bind(since, until, nowMs),
    db
      .prepare("INSERT OR REPLACE INTO cursors (name, after) VALUES (?, ?)")
      .bind(EXPIRING_CURSOR, String(Math.max(since, until))),
  ]);
}
