import { deleteOldIdempotencyKeys } from "../accounts/keys/insert-once.store.ts";
import { atMost } from "../shared/at-most.ts";
import { logWarning, reasonOf } from "../shared/log.ts";
import { within } from "../shared/timers.ts";
import type { Asks } from "../shared/contracts/objects.ts";
import { Depths } from "./depths.ts";
import { keepUnavailable, keptUnavailable } from "./wallets-asked.store.ts";
import type { OutboxCalls } from "../shared/contracts/outbox.ts";

const USED_WITHIN_MS = 2 * 24 * 60 * 60 * 1000;
const PAGE = 500;
/** As many calls of one invocation as the platform lets wait for an answer. */
const AT_ONCE = 6;
/** One that hangs takes a sixth of the sweep for so long. */
const POKE_TIMEOUT_MS = 5000;
/** A Worker invocation may make 10,000 calls; wallets beyond that are poked by the next hour's sweep. */
const WALLETS_MAX = 8000;
/** So many more are poked because events wait for them. */
const WAITING_MAX = 1000;
/** And so many organisations' deliveries, each in its turn. */
const DELIVERIES_MAX = 800;
/** A key's end is told so long before. */
const EXPIRING_MS = 7 * 24 * 60 * 60 * 1000;

/** What a sweep touches: objects that look at their own due work when they are poked. */
type SweepTargets = Asks<"wallet" | "deliveries", "poke"> & {
  readonly outboxes: readonly (readonly [name: string, outbox: SweptOutbox])[];
};
type SweptOutbox = Pick<OutboxCalls, "poke" | "depth">;

/**
 * The hourly watchdog behind the alarms: pokes every outbox, the wallets of organisations used in the last two
 * days and the deliveries of those that have a webhook, used or not, so that an alarm the platform lost is set
 * again, and deletes Idempotency-Keys over a day old. It goes on after the one that was poked last, so that each
 * has its turn however many there are. One that fails stops no other, and is poked each hour until it opens. Answers how many wallets it poked, and what
 * it found.
 */
export async function sweep(
  db: D1Database,
  nowMs: number,
  targets: SweepTargets,
): Promise<{ readonly poked: number; readonly depths: Depths }> {
  const depths = new Depths();
  const closed: string[] = [];
  const sweepOne = async (id: string): Promise<void> => {
    if (!(await sweepWallet(id, targets, depths))) closed.push(id);
  };
  await atMost(AT_ONCE, targets.outboxes, ([name, outbox]) =>
    quietly(() => sweepOutbox(name, outbox, depths)),
  );
  await quietly(() => deleteOldIdempotencyKeys(db, nowMs));
  const before = new Set(await keptUnavailable(db).catch(() => []));
  await atMost(AT_ONCE, [...before], sweepOne);
  const start = await lastPoked(db);
  const isFresh = (id: string): boolean => !before.has(id);
  let [poked, after, isRound] = [0, start, false];
  while (poked < WALLETS_MAX) {
    // oxlint-disable-next-line no-await-in-loop -- one page after another bounds memory
    const page = await organizationsUsed(db, nowMs - USED_WITHIN_MS, after);
    depths.book(page.bookBytes);
    const ids = isRound ? page.ids.filter((id) => id <= start) : page.ids;
    // oxlint-disable-next-line no-await-in-loop -- the same
    await atMost(AT_ONCE, ids.filter(isFresh), sweepOne);
    poked += ids.length;
    after = ids.at(-1) ?? after;
    // oxlint-disable-next-line no-await-in-loop -- kept after each page: a run may be ended in between
    await keepCursor(db, SWEEP, after);
    if (ids.length === PAGE) continue;
    if (isRound || start === "") break;
    [isRound, after] = [true, ""];
  }
  await quietly(() => tellExpiring(db, nowMs));
  const waiting = await organizationsWaiting(db).catch(() => []);
  await atMost(AT_ONCE, waiting.filter(isFresh), sweepOne);
  await quietly(() => keepUnavailable(db, closed));
  await quietly(() => sweepDeliveries(db, targets));
  return { poked, depths };
}

async function sweepDeliveries(db: D1Database, targets: SweepTargets): Promise<void> {
  const ids = await organizationsWithWebhooks(db, (await cursorOf(db, DELIVERIES)) ?? "");
  const last = ids.at(-1);
  if (last !== undefined) await keepCursor(db, DELIVERIES, last);
  const poke = (id: string) => within(targets.deliveries(id).poke(), POKE_TIMEOUT_MS);
  await atMost(AT_ONCE, ids, (id) => quietly(() => poke(id)));
}

async function sweepOutbox(name: string, outbox: SweptOutbox, depths: Depths): Promise<void> {
  await within(outbox.poke(), POKE_TIMEOUT_MS);
  depths.outbox(name, await outbox.depth());
}

/** Whether the wallet opened. */
async function sweepWallet(id: string, targets: SweepTargets, depths: Depths): Promise<boolean> {
  try {
    const vitals = await within(targets.wallet(id).poke(), POKE_TIMEOUT_MS);
    if (vitals.ok) depths.wallet(id, vitals.value);
    else depths.unavailable();
    return vitals.ok;
  } catch (error) {
    logWarning("sweep_failed", { org_id: id, reason: reasonOf(error) });
    depths.unavailable();
    return false;
  }
}

/** A page of organisations, and how large the book is, which D1 says with every answer. */
async function organizationsUsed(
  db: D1Database,
  since: number,
  after: string,
): Promise<{ readonly ids: string[]; readonly bookBytes: number }> {
  const found = await db
    .prepare("SELECT id FROM organizations WHERE used_at >= ?1 AND id > ?2 ORDER BY id LIMIT ?3")
    .bind(since, after, PAGE)
    .all<{ id: string }>();
  return { ids: found.results.map((row) => row.id), bookBytes: found.meta.size_after };
}

const SWEEP = "sweep";
const DELIVERIES = "deliveries";

/** The organisation that the sweep before this one poked last, or "". */
async function lastPoked(db: D1Database): Promise<string> {
  return (await cursorOf(db, SWEEP)) ?? "";
}

async function keepCursor(db: D1Database, name: string, after: string): Promise<void> {
  await db
    .prepare("INSERT OR REPLACE INTO cursors (name, after) VALUES (?, ?)")
    .bind(name, after)
    .run();
}

async function quietly(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    logWarning("sweep_failed", { reason: reasonOf(error) });
  }
}

/** Organisations whose events wait in the book: their wallets may not have been used for long. */
async function organizationsWaiting(db: D1Database): Promise<readonly string[]> {
  const { results } = await db
    .prepare("SELECT DISTINCT org_id FROM events ORDER BY org_id LIMIT ?")
    .bind(WAITING_MAX)
    .all<{ org_id: string }>();
  return results.map((row) => row.org_id);
}

/** Organisations with a webhook that is on, from the one behind `start` once around. */
async function organizationsWithWebhooks(
  db: D1Database,
  start: string,
): Promise<readonly string[]> {
  const { results } = await db
    .prepare(`${withWebhooks(">")} UNION ALL ${withWebhooks("<=")} LIMIT ?2`)
    .bind(start, DELIVERIES_MAX)
    .all<{ org_id: string }>();
  return results.map((row) => row.org_id);
}

function withWebhooks(side: ">" | "<="): string {
  return `SELECT org_id FROM (SELECT DISTINCT org_id FROM webhooks WHERE org_id ${side} ?1
    AND disabled_reason IS NULL ORDER BY org_id LIMIT ?2)`;
}

const EXPIRING = "expiring";

/**
 * Tells of the keys that expire in a week: of those whose time has come closer than that since the last sweep, each
 * once. One that was given less than a week was made or changed so, which is told.
 */
async function tellExpiring(db: D1Database, nowMs: number): Promise<void> {
  const until = nowMs + EXPIRING_MS;
  const since = Number((await cursorOf(db, EXPIRING)) ?? until);
  await db.batch([
    db
      .prepare(
        // Its id: the random part of the key's, and the second in which it expires.
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
      .bind(EXPIRING, String(Math.max(since, until))),
  ]);
}

async function cursorOf(db: D1Database, name: string): Promise<string | null> {
  const row = await db
    .prepare("SELECT after FROM cursors WHERE name = ?")
    .bind(name)
    .first<{ after: string }>();
  return row?.after ?? null;
}
