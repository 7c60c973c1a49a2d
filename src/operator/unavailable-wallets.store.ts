import { mapConcurrently } from "../shared/map-concurrently.ts";
import type { Result } from "../shared/failure.ts";
import { withTimeout } from "../shared/timers.ts";

const CURSOR_NAME = "unavailable";
export const UNAVAILABLE_WALLETS_MAX = 100;
const USED_WITHIN_MS = 2 * 24 * 60 * 60 * 1000;
const SAMPLE_SIZE = 3;
const CONCURRENT_MAX = 6;
const TIMEOUT_MS = 2000;

export async function storeUnavailableWalletIds(
  db: D1Database,
  ids: readonly string[],
): Promise<void> {
  await db
    .prepare("INSERT OR REPLACE INTO cursors (name, after) VALUES (?, ?)")
    .bind(CURSOR_NAME, JSON.stringify(ids.slice(0, UNAVAILABLE_WALLETS_MAX)))
    .run();
}

export async function listUnavailableWallets(db: D1Database): Promise<readonly string[]> {
  const { results } = await db
    .prepare(
      `SELECT id FROM organizations WHERE id IN
         (SELECT value FROM cursors, json_each(cursors.after) WHERE name = ?)`,
    )
    .bind(CURSOR_NAME)
    .all<{ id: string }>();
  return results.map(({ id }) => id);
}

/**
 * Reads the wallets that were unavailable in the last sweep, and some recently used ones. `asked`
 * counts the wallets read, and is 0 if D1 fails.
 */
export async function probeWallets(
  db: D1Database,
  nowMs: number,
  open: (orgId: string) => Promise<Result<unknown>>,
): Promise<{ readonly asked: number; readonly unavailable: readonly string[] }> {
  const ids = await listWalletsToTest(db, nowMs).catch(() => []);
  const opened = await mapConcurrently(CONCURRENT_MAX, ids, (id) => canOpen(() => open(id)));
  return { asked: ids.length, unavailable: ids.filter((_, i) => opened[i] === false) };
}

async function canOpen(ask: () => Promise<Result<unknown>>): Promise<boolean> {
  try {
    const answer = await withTimeout(ask(), TIMEOUT_MS);
    return answer.ok;
  } catch {
    return false;
  }
}

async function listWalletsToTest(db: D1Database, nowMs: number): Promise<readonly string[]> {
  const since = nowMs - USED_WITHIN_MS;
  const { results } = await db
    .prepare(`${usedOrganizationsSql(">")} UNION ALL ${usedOrganizationsSql("<=")} LIMIT ?3`)
    .bind(crypto.randomUUID(), since, SAMPLE_SIZE)
    .all<{ id: string }>();
  return [...new Set([...(await listUnavailableWallets(db)), ...results.map(({ id }) => id)])];
}

function usedOrganizationsSql(side: ">" | "<="): string {
  return `SELECT id FROM (SELECT id FROM organizations WHERE id ${side} ?1 AND used_at >= ?2
    ORDER BY id LIMIT ?3)`;
}
