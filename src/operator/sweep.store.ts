import { deleteOldIdempotencyKeys } from "../keys/insert-once.store.ts";
import type { Result } from "../lib/failure.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import type { Depth } from "../regions/region-outbox-queue.do.ts";
import type { Vitals } from "../wallet/wallet-contract.ts";
import { Depths } from "./depths.ts";

const USED_WITHIN_MS = 2 * 24 * 60 * 60 * 1000;
const PAGE = 500;
const AT_ONCE = 50;
/** A Worker invocation may make 10,000 calls; wallets beyond that are poked by the next hour's sweep. */
const WALLETS_MAX = 8000;

/** What a sweep touches: objects that look at their own due work when they are poked. */
export type SweepTargets = {
  readonly wallet: (orgId: string) => { poke(): Promise<Result<Vitals>> };
  readonly outboxes: readonly SweptOutbox[];
};
type SweptOutbox = {
  readonly name: string;
  poke(): Promise<unknown>;
  depth(): Promise<Depth>;
};

/**
 * The hourly watchdog behind the alarms: pokes every outbox and the wallets of organisations used in
 * the last two days, so that an alarm the platform lost is set again, and deletes Idempotency-Keys over a
 * day old. One that fails stops no other. Answers how many wallets it poked, and what it found.
 */
export async function sweep(
  db: D1Database,
  nowMs: number,
  targets: SweepTargets,
): Promise<{ readonly poked: number; readonly depths: Depths }> {
  const depths = new Depths();
  await Promise.all(targets.outboxes.map((outbox) => quietly(sweepOutbox(outbox, depths))));
  await quietly(deleteOldIdempotencyKeys(db, nowMs));
  let poked = 0;
  let after = "";
  while (poked < WALLETS_MAX) {
    // oxlint-disable-next-line no-await-in-loop -- one page after another bounds memory
    const { ids, bookBytes } = await organizationsUsed(db, nowMs - USED_WITHIN_MS, after);
    depths.book(bookBytes);
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const slice = ids.slice(from, from + AT_ONCE);
      // oxlint-disable-next-line no-await-in-loop -- bounded concurrency
      await Promise.all(slice.map((id) => quietly(sweepWallet(id, targets, depths))));
    }
    poked += ids.length;
    const last = ids.at(-1);
    if (last === undefined || ids.length < PAGE) break;
    after = last;
  }
  return { poked, depths };
}

async function sweepOutbox(outbox: SweptOutbox, depths: Depths): Promise<void> {
  await outbox.poke();
  depths.outbox(outbox.name, await outbox.depth());
}

async function sweepWallet(id: string, targets: SweepTargets, depths: Depths): Promise<void> {
  const vitals = await targets.wallet(id).poke();
  if (vitals.ok) depths.wallet(id, vitals.value);
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

async function quietly(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    logWarning("sweep_failed", { reason: reasonOf(error) });
  }
}
