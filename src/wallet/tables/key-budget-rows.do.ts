import { idFloor } from "../../lib/id.ts";
import type { BudgetPeriod } from "../../lib/key-terms.ts";
import { micros } from "../../lib/money.ts";
import { CLOCK_LAG_MAX_MS } from "../../lib/rate-window.ts";
import type { Budget } from "../rules/budget.ts";
import { HOLD_ID, ID_AGE_MAX_MS, rateFloor } from "../rules/hold-guards.ts";
import { microsOrNull } from "../rules/quota.ts";
import { TokenWindow } from "../rules/token-window.ts";
import { KEY_ID } from "./request-rows.do.ts";

type Row = {
  key_id: string;
  budget: number | null;
  period: BudgetPeriod | null;
  day: string;
  daily: number;
  week: string;
  weekly: number;
  month: string;
  monthly: number;
  total: number;
};

/** The budgets of keys with their spend as of the newest checkpoint, by key. */
export function selectBudgets(sql: SqlStorage): Map<string, Budget> {
  const rows = sql.exec<Row>(
    `SELECT key_id, budget, period, day, daily, week, weekly, month, monthly, total
    FROM key_budgets`,
  );
  return new Map(
    rows.toArray().map((row) => [
      row.key_id,
      {
        keyId: row.key_id,
        budgetMicro: microsOrNull(row.budget),
        budgetPeriod: row.period,
        spend: {
          day: { since: row.day, spent: micros(row.daily) },
          week: { since: row.week, spent: micros(row.weekly) },
          month: { since: row.month, spent: micros(row.monthly) },
          total: micros(row.total),
        },
      },
    ]),
  );
}

/** What a key has spent by its usage, as of the newest checkpoint: micros by day, in their order. */
export function selectKeyDays(
  sql: SqlStorage,
  keyId: string,
): readonly { readonly day: string; readonly cost: number }[] {
  return sql
    .exec<{ day: string; cost: number }>(
      "SELECT day, cost FROM totals WHERE dimension = 'key' AND name = ? ORDER BY day",
      keyId,
    )
    .toArray();
}

/** A key's budget with its spend as of a checkpoint. */
export function putBudget(sql: SqlStorage, budget: Budget, changed: number): void {
  const { keyId, budgetMicro, budgetPeriod, spend } = budget;
  sql.exec(
    `INSERT OR REPLACE INTO key_budgets
      (key_id, budget, period, day, daily, week, weekly, month, monthly, total, changed)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    keyId,
    budgetMicro,
    budgetPeriod,
    spend.day.since,
    spend.day.spent,
    spend.week.since,
    spend.week.spent,
    spend.month.since,
    spend.month.spent,
    spend.total,
    changed,
  );
}

/** A key's budget alone. */
export function updateBudget(
  sql: SqlStorage,
  { keyId, budgetMicro, budgetPeriod }: Omit<Budget, "spend">,
): void {
  sql.exec(
    "UPDATE key_budgets SET budget = ?, period = ? WHERE key_id = ?",
    budgetMicro,
    budgetPeriod,
    keyId,
  );
}

/** The tokens of the minute before `clock` of the keys with a token limit, as the requests' own rows say. */
export function selectTokens(sql: SqlStorage, clock: number): Map<string, TokenWindow> {
  const floor = rateFloor(clock);
  const rows = sql
    .exec<{ id: string; key_id: string; at: number; count: number }>(
      `SELECT id, ${KEY_ID}, min(admitted_at, ?3) AS at,
        iif(state = 'settled', prompt_tokens + completion_tokens, tokens) AS count
      FROM requests WHERE id >= ?1 AND admitted_at > ?2 AND tokens IS NOT NULL
        AND state IN ('held', 'settled', 'expired') ORDER BY admitted_at, id`,
      idFloor(HOLD_ID, floor - ID_AGE_MAX_MS - CLOCK_LAG_MAX_MS),
      floor,
      clock,
    )
    .toArray();
  const windows = new Map<string, TokenWindow>();
  for (const { id, key_id: keyId, at, count } of rows) {
    const window = windows.get(keyId) ?? new TokenWindow();
    window.add(id, at, count);
    windows.set(keyId, window);
  }
  return windows;
}
