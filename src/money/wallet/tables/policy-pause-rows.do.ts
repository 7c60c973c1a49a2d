import type { Pause } from "../../../shared/pauses.ts";
import type { Policy } from "../../../shared/policy.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import { PAUSE_RULE_NAME_PREFIX, indexPausesByName } from "../rules/pauses.ts";
import type { PausesByName } from "../rules/pauses.ts";
import type { PoliciesByOwner } from "../rules/policies.ts";

/**
 * Policies, pauses and the limit on concurrent requests. A removed rule's row stays until the next
 * publish.
 */
export const RULES_TABLE_SQL =
  "CREATE TABLE rules (" +
  "name TEXT PRIMARY KEY NOT NULL," + // owner of a policy, a pause (rules/pauses.ts) or MAX_CONCURRENT_RULE
  "rule TEXT CHECK (json_valid(rule))," + // null: removed
  "changed INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;";

/** Rule name of the limit on concurrent requests. Earlier releases ignore this rule. */
export const MAX_CONCURRENT_RULE = "max_concurrent";

function isPause({ name }: { readonly name: string }): boolean {
  return name.startsWith(PAUSE_RULE_NAME_PREFIX);
}

type Rules = {
  readonly policies: PoliciesByOwner;
  readonly pauses: PausesByName;
  readonly maxConcurrent: number | null;
};

export function selectRules(sql: SqlStorage): Rules {
  const rows = sql
    .exec<{ name: string; rule: string }>("SELECT name, rule FROM rules WHERE rule IS NOT NULL")
    .toArray();
  const policies = rows.filter((row) => !isPause(row) && row.name !== MAX_CONCURRENT_RULE);
  const limit = rows.find(({ name }) => name === MAX_CONCURRENT_RULE);
  return {
    maxConcurrent: limit === undefined ? null : Number(limit.rule),
    policies: new Map(policies.map(({ name, rule }) => [name, parseStoredJson<Policy>(rule)])),
    pauses: indexPausesByName(rows.filter(isPause).map(({ rule }) => parseStoredJson<Pause>(rule))),
  };
}

export function putRule(
  sql: SqlStorage,
  name: string,
  rule: Policy | Pause | number | null,
  changed: number,
): void {
  sql.exec(
    "INSERT OR REPLACE INTO rules (name, rule, changed) VALUES (?, ?, ?)",
    name,
    rule === null ? null : JSON.stringify(rule),
    changed,
  );
}
