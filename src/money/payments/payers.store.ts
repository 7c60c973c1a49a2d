import type { CallsOf } from "../../shared/contracts/objects.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timers.ts";

/** Maximum organizations per sweep. The next sweep continues after them. */
const PAYERS_MAX = 80;
const CONCURRENCY_MAX = 6;
const POKE_TIMEOUT_MS = 5000;
const CURSOR = "payers";

export async function wakePaymentsObjects(
  db: D1Database,
  objects: CallsOf<"payments", "poke">,
): Promise<void> {
  const after = await db
    .prepare("SELECT after FROM cursors WHERE name = ?")
    .bind(CURSOR)
    .first<string>("after");
  const { results } = await db
    .prepare(`${payersSql(">")} UNION ALL ${payersSql("<=")} LIMIT ?2`)
    .bind(after ?? "", PAYERS_MAX)
    .all<{ org_id: string }>();
  await mapConcurrently(CONCURRENCY_MAX, results, ({ org_id }) =>
    wakePaymentsObject(org_id, objects),
  );
  const last = results.at(-1)?.org_id;
  if (last === undefined) return;
  await db
    .prepare("INSERT OR REPLACE INTO cursors (name, after) VALUES (?, ?)")
    .bind(CURSOR, last)
    .run();
}

function payersSql(side: ">" | "<="): string {
  return `SELECT org_id FROM (SELECT DISTINCT org_id FROM stripe_customers WHERE org_id ${side} ?1
    ORDER BY org_id LIMIT ?2)`;
}

async function wakePaymentsObject(
  orgId: string,
  objects: CallsOf<"payments", "poke">,
): Promise<void> {
  try {
    await withTimeout(objects.payments(orgId).poke(), POKE_TIMEOUT_MS);
  } catch (error) {
    logWarning("payments_not_looked_at", { org_id: orgId, reason: errorMessageOf(error) });
  }
}
