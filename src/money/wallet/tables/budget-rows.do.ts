import { insertRow } from "../../../shared/tables.do.ts";
import type { Budget, BudgetOwner, BudgetScope } from "../../../shared/budgets.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import type { CountedLimit } from "../rules/limits.ts";
import type { BucketSums } from "../../../shared/budget-meter.ts";

type StoredBudget = {
  scope: BudgetScope;
  subject: string;
  budget: string;
  since_seq: number;
  since: number;
  tally: string;
};

export function selectBudgets(sql: SqlStorage, { scope, subject }: BudgetOwner): CountedLimit[] {
  return sql
    .exec<StoredBudget>(
      `SELECT scope, subject, budget, since_seq, since, tally FROM budgets
      WHERE scope = ? AND subject = ? AND budget IS NOT NULL ORDER BY place`,
      scope,
      subject,
    )
    .toArray()
    .map((row) => ({
      scope: row.scope,
      subject: row.subject,
      budget: parseStoredJson<Budget>(row.budget),
      sinceSeq: row.since_seq,
      sinceMs: row.since,
      tally: parseStoredJson<BucketSums>(row.tally),
    }));
}

export function selectBudgetScopes(sql: SqlStorage): BudgetScope[] {
  return sql
    .exec<{ scope: BudgetScope }>("SELECT DISTINCT scope FROM budgets WHERE budget IS NOT NULL")
    .toArray()
    .map(({ scope }) => scope);
}

export function putBudgetRow(
  sql: SqlStorage,
  { scope, subject, budget, sinceSeq, sinceMs, tally }: CountedLimit,
  { place, changed }: { readonly place: number; readonly changed: number },
): void {
  insertRow(sql, "OR REPLACE INTO budgets", {
    scope,
    subject,
    id: budget.id,
    place,
    budget: JSON.stringify(budget),
    since_seq: sinceSeq,
    since: sinceMs,
    tally: JSON.stringify(tally),
    changed,
  });
}

export function updateBudgetTally(
  sql: SqlStorage,
  { scope, subject, budget, tally }: CountedLimit,
  changed: number,
): void {
  sql.exec(
    "UPDATE budgets SET tally = ?, changed = ? WHERE scope = ? AND subject = ? AND id = ?",
    JSON.stringify(tally),
    changed,
    scope,
    subject,
    budget.id,
  );
}

/**
 * Stores the newest ledger row that the budgets have counted. After a rollback, release 1.1.0
 * continues from there.
 */
export function saveLastCountedLedgerRow(
  sql: SqlStorage,
  { seq, floorId }: { readonly seq: number; readonly floorId: string },
): void {
  insertRow(sql, "OR REPLACE INTO budgets_counted", { id: 1, seq, floor_id: floorId });
}

/** Removes a budget. Its row stays until a publish has also removed the budget from D1. */
export function markBudgetRemoved(
  sql: SqlStorage,
  { scope, subject, id }: BudgetOwner & { readonly id: string },
  changed: number,
): void {
  sql.exec(
    `UPDATE budgets SET budget = NULL, tally = '[]', changed = ?
    WHERE scope = ? AND subject = ? AND id = ?`,
    changed,
    scope,
    subject,
    id,
  );
}

/** Deletes up to `rowsMax` budgets of deleted sessions. Returns their number. */
export function deleteSessionBudgets(sql: SqlStorage, rowsMax: number): number {
  return sql.exec(
    `DELETE FROM budgets WHERE (scope, subject, id) IN (SELECT scope, subject, id FROM budgets
      WHERE scope = 'session' AND subject NOT IN (SELECT id FROM sessions) LIMIT ?)`,
    rowsMax,
  ).rowsWritten;
}

/** Returns the member who owns a key, even if the wallet no longer caches the key. */
export function selectMemberOfKey(sql: SqlStorage, keyId: string): string | null {
  const [row] = sql
    .exec<{ member_id: string }>("SELECT member_id FROM key_members WHERE key_id = ?", keyId)
    .toArray();
  return row?.member_id ?? null;
}

type PeriodUsage = {
  readonly requests: number;
  readonly tokens: number;
  readonly dollars: number;
};

export function selectPeriodUsage(
  sql: SqlStorage,
  { dimension, names, days }: PeriodUsageQuery,
): PeriodUsage {
  return sql
    .exec<PeriodUsage>(
      `SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(cost), 0) AS dollars,
        coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens
      FROM json_each(?2) AS days CROSS JOIN json_each(?3) AS named
      JOIN totals ON totals.dimension = ?1 AND totals.day = days.value AND totals.name = named.value`,
      dimension,
      JSON.stringify(days),
      JSON.stringify(names),
    )
    .one();
}
/** A query of daily totals for the usage before a budget's creation. */
export type PeriodUsageQuery = {
  readonly dimension: "day" | "key" | "user";
  readonly names: readonly string[];
  readonly days: readonly string[];
};

export function selectKeysOfMember(sql: SqlStorage, memberId: string): string[] {
  return sql
    .exec<{ key_id: string }>("SELECT key_id FROM key_members WHERE member_id = ?", memberId)
    .toArray()
    .map(({ key_id: keyId }) => keyId);
}
