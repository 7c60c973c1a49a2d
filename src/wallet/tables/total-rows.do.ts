import type { UsageTotal } from "../rules/usage-totals.ts";

/** Adds to a total what came since the last checkpoint; `changed` is the publish that carries it. */
export function addTotal(sql: SqlStorage, total: UsageTotal, changed: number): void {
  sql.exec(
    `INSERT INTO totals (dimension, day, name, requests, prompt_tokens, cached,
      completion_tokens, cost, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (dimension, day, name) DO UPDATE SET requests = requests + excluded.requests,
      prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached = cached + excluded.cached,
      completion_tokens = completion_tokens + excluded.completion_tokens,
      cost = cost + excluded.cost, changed = excluded.changed`,
    total.dimension,
    total.day,
    total.name,
    total.requests,
    total.promptTokens,
    total.cachedTokens,
    total.completionTokens,
    total.cost,
    changed,
  );
}

/** Ledger rows between two checkpoints that are kept as marks. */
const MARK_ROWS = 1000;

/** Old checkpoints stay as marks for reading the ledger, but not closer than MARK_ROWS. */
export function thinCheckpoints(sql: SqlStorage): void {
  const [newest, before] = sql
    .exec<{ seq: number }>("SELECT seq FROM checkpoints ORDER BY seq DESC LIMIT 2")
    .toArray();
  if (newest === undefined || before === undefined) return;
  if (newest.seq - before.seq < MARK_ROWS) {
    sql.exec("DELETE FROM checkpoints WHERE seq = ?", newest.seq);
  }
}
