import type { Policy } from "../../../shared/policy.ts";
import { storedJson } from "../../../shared/stored-json.ts";
import type { Policies } from "../rules/policies.ts";
import type { SnapshotRow } from "../snapshot.store.ts";
import { PAGE_ROWS } from "../snapshot.store.ts";

/** Policies. The row of a removed one stays until the next publish. */
export const RULES =
  "CREATE TABLE rules (" +
  "name TEXT PRIMARY KEY NOT NULL," + // owner: operator, organization or a member's ID
  "rule TEXT CHECK (json_valid(rule))," + // null: removed
  "changed INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;";

export function selectRules(sql: SqlStorage): Policies {
  const rows = sql.exec<{ name: string; rule: string }>(
    "SELECT name, rule FROM rules WHERE rule IS NOT NULL",
  );
  return new Map(rows.toArray().map(({ name, rule }) => [name, storedJson<Policy>(rule)]));
}

export function putRule(sql: SqlStorage, name: string, rule: Policy | null, changed: number): void {
  sql.exec(
    "INSERT OR REPLACE INTO rules (name, rule, changed) VALUES (?, ?, ?)",
    name,
    rule === null ? null : JSON.stringify(rule),
    changed,
  );
}

/** Returns a page of changed policies in D1's format. */
export function selectRuleRows(
  sql: SqlStorage,
  since: number,
  after: SnapshotRow[string],
): SnapshotRow[] {
  return sql
    .exec<SnapshotRow>(
      `SELECT name, rule FROM rules WHERE name > ? AND changed > ?
      ORDER BY name LIMIT ${PAGE_ROWS}`,
      after,
      since,
    )
    .toArray();
}
