import * as z from "zod/mini";
import { mapConcurrently } from "../shared/map-concurrently.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { withTimeout } from "../shared/timers.ts";
import type { StubGetters } from "../shared/contracts/objects.ts";
import { SweepMetrics, sweepTotalsSchema } from "./sweep-metrics.ts";
import {
  storeUnavailableWalletIds,
  UNAVAILABLE_WALLETS_MAX,
  listUnavailableWallets,
} from "./unavailable-wallets.store.ts";
import { deleteOldIdempotencyKeys } from "../accounts/keys/insert-once.store.ts";
import type { RegionOutboxMethods } from "../shared/contracts/outbox.ts";
import { deleteOldOperatorEvents } from "./operator-events.store.ts";

const USED_WITHIN_MS = 2 * 24 * 60 * 60 * 1000;
const PAGE_ROWS = 500;
const CONCURRENT_MAX = 6;
/**
 * Timeout of one call in ms. If all calls of a page time out, the page takes 14 minutes, less than
 * the lease.
 */
const POKE_TIMEOUT_MS = 5000;
const LEASE_MS = 15 * 60_000;
/** Maximum calls in one invocation. The platform allows 10,000. */
const POKES_MAX = 8000;
const ROUND = "round";

/** The objects that a sweep wakes. */
export type SweepTargets = StubGetters<"wallet" | "deliveries", "poke">;

/**
 * A running sweep of all organizations, stored in `cursors`. Only the invocation with the lease
 * continues it.
 */
const roundSchema = z.object({
  after: z.string(),
  /** End of the lease (Unix ms), or 0 without one. */
  leaseMs: z.number(),
  found: sweepTotalsSchema,
  closed: z.array(z.string()),
});
type Round = z.infer<typeof roundSchema>;

/** Starts a sweep of wallets, unless the previous one is incomplete. */
export async function startSweep(db: D1Database): Promise<void> {
  const round: Round = { after: "", leaseMs: 0, found: new SweepMetrics().found(), closed: [] };
  await db
    .prepare("INSERT INTO cursors (name, after) VALUES (?, ?) ON CONFLICT (name) DO NOTHING")
    .bind(ROUND, JSON.stringify(round))
    .run();
}

/**
 * Continues the sweep, and returns its totals once it is complete. Wakes recently used wallets and
 * the deliveries of organizations with a webhook. If one object fails, the others still run.
 */
export async function continueSweep(
  db: D1Database,
  clock: () => number,
  targets: SweepTargets,
): Promise<SweepMetrics | null> {
  const round = await takeRound(db, clock());
  return round === null ? null : new Sweep(db, clock, targets, round).run();
}

class Sweep {
  readonly #db: D1Database;
  readonly #clock: () => number;
  readonly #targets: SweepTargets;
  readonly #depths: SweepMetrics;
  readonly #unavailableIds: string[];
  #round: Round;
  #callCount = 0;

  constructor(db: D1Database, clock: () => number, targets: SweepTargets, round: Round) {
    this.#db = db;
    this.#clock = clock;
    this.#targets = targets;
    this.#depths = new SweepMetrics(round.found);
    this.#unavailableIds = [...round.closed];
    this.#round = round;
  }

  async run(): Promise<SweepMetrics | null> {
    const unavailable = new Set(await listUnavailableWallets(this.#db).catch(() => []));
    if (this.#round.after === "") {
      await mapConcurrently(CONCURRENT_MAX, [...unavailable], (id) => this.#pokeWallet(id));
    }
    while (this.#callCount < POKES_MAX) {
      const since = this.#clock() - USED_WITHIN_MS;
      const page = await organizationsDue(this.#db, since, this.#round.after);
      this.#depths.setDatabaseBytes(page.bookBytes);
      await mapConcurrently(CONCURRENT_MAX, page.due, (due) =>
        this.#pokeOrganization(due, unavailable),
      );
      if (!(await this.#saveProgress(page.due.at(-1)?.id ?? this.#round.after))) return null;
      if (page.due.length < PAGE_ROWS) return this.#finish();
    }
    await this.#saveProgress(this.#round.after, 0);
    return null;
  }

  async #pokeOrganization(due: Due, unavailable: ReadonlySet<string>): Promise<void> {
    if (due.wallet === 1 && !unavailable.has(due.id)) await this.#pokeWallet(due.id);
    if (due.deliveries === 1) await this.#pokeDeliveries(due.id);
  }

  async #pokeWallet(id: string): Promise<void> {
    this.#callCount++;
    try {
      const vitals = await withTimeout(this.#targets.wallet(id).poke(), POKE_TIMEOUT_MS);
      if (vitals.ok) return this.#depths.addWallet(id, vitals.value);
    } catch (error) {
      logWarning("sweep_failed", { org_id: id, reason: errorMessageOf(error) });
    }
    this.#depths.countUnavailable();
    if (this.#unavailableIds.length < UNAVAILABLE_WALLETS_MAX) this.#unavailableIds.push(id);
  }

  async #pokeDeliveries(id: string): Promise<void> {
    this.#callCount++;
    try {
      await withTimeout(this.#targets.deliveries(id).poke(), POKE_TIMEOUT_MS);
    } catch (error) {
      logWarning("sweep_failed", { org_id: id, reason: errorMessageOf(error) });
    }
  }

  /** Saves the progress. Returns false if another invocation has taken over. */
  async #saveProgress(after: string, leaseMs = this.#clock() + LEASE_MS): Promise<boolean> {
    const progress = { after, leaseMs, found: this.#depths.found(), closed: this.#unavailableIds };
    const { meta } = await this.#db
      .prepare(
        "UPDATE cursors SET after = ?1 WHERE name = ?2 AND json_extract(after, '$.leaseMs') = ?3",
      )
      .bind(JSON.stringify(progress), ROUND, this.#round.leaseMs)
      .run();
    this.#round = progress;
    return meta.changes === 1;
  }

  async #finish(): Promise<SweepMetrics> {
    await storeUnavailableWalletIds(this.#db, this.#unavailableIds);
    await this.#db.prepare("DELETE FROM cursors WHERE name = ?").bind(ROUND).run();
    return this.#depths;
  }
}

async function takeRound(db: D1Database, nowMs: number): Promise<Round | null> {
  const row = await db
    .prepare(
      `UPDATE cursors SET after = json_set(after, '$.leaseMs', ?1)
       WHERE name = ?2 AND json_extract(after, '$.leaseMs') < ?3 RETURNING after`,
    )
    .bind(nowMs + LEASE_MS, ROUND, nowMs)
    .first<{ after: string }>();
  return row === null ? null : z.parse(roundSchema, JSON.parse(row.after));
}

/** `wallet` and `deliveries` are 1 if the sweep wakes these objects. */
type Due = { readonly id: string; readonly wallet: 0 | 1; readonly deliveries: 0 | 1 };

/** Returns a page of organizations for the sweep to visit, and D1's size in bytes. */
async function organizationsDue(
  db: D1Database,
  since: number,
  after: string,
): Promise<{ readonly due: readonly Due[]; readonly bookBytes: number }> {
  const { results, meta } = await db
    .prepare(
      `SELECT * FROM (SELECT id,
         used_at >= ?1 OR EXISTS (SELECT 1 FROM events WHERE org_id = organizations.id) AS wallet,
         EXISTS (SELECT 1 FROM webhooks
           WHERE org_id = organizations.id AND disabled_reason IS NULL) AS deliveries
         FROM organizations WHERE id > ?2)
       WHERE wallet OR deliveries ORDER BY id LIMIT ?3`,
    )
    .bind(since, after, PAGE_ROWS)
    .all<Due>();
  return { due: results, bookBytes: meta.size_after };
}

const EXPIRY_NOTICE_MS = 7 * 24 * 60 * 60 * 1000;

type HourlyTargets = SweepTargets & {
  readonly outboxes: readonly Pick<RegionOutboxMethods, "poke">[];
};

/**
 * Runs the hourly jobs on D1 and outboxes, and starts a sweep of all wallets. If one step fails,
 * the others still run. Returns the totals if the sweep finishes.
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
 * Records an event for each key that came within a week of its expiry since the last run. Excludes
 * keys with a lifetime of less than a week.
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
        // The event ID is derived from key and expiry, so repeats are ignored.
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
