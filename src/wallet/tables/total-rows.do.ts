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
