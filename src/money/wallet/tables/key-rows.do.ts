import { insertRow } from "../../../shared/tables.do.ts";
import { assert } from "../../../shared/assert.ts";
import { keyTermsFromJson, keyTermsToJson } from "../../../shared/key-terms.ts";
import type { KeyTerms, BudgetPeriod } from "../../../shared/key-terms.ts";
import { keySecretsFromJson, keySecretsToJson } from "../../../shared/key.ts";
import type { Key, KeyScope } from "../../../shared/key.ts";
import type { Micros } from "../../../shared/money.ts";
import type { UsedKeyRecord } from "../../../shared/key-uses.store.ts";
import { RateWindow, CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import type { StoredAdmission } from "../../../shared/rate-window.ts";
import { rateWindowStartMs } from "../rules/hold-guards.ts";
import { lowestHoldIdSince } from "../rules/hold-ids.ts";
import { TokenWindow } from "../rules/token-window.ts";
import type { UsageTotal } from "../rules/usage-totals.ts";
import type { WalletKeyRecord } from "../../../shared/contracts/wallet.ts";
import { KEY_ID_SQL } from "./request-rows.do.ts";

/** Maximum revoked keys whose admissions one transaction deletes. Each key can have 1,000. */
const REVOKED_KEYS_MAX = 20;
const USED_KEYS_MAX = 10_000;

/** A key with the data that its key object returned at `checkedAt` (Unix ms). */
export type ActiveKey = Omit<Key, "orgId"> & { readonly checkedAt: number };

/** A key's stored data, revocation and recent admissions. */
export type KnownKey = {
  readonly number: number;
  readonly record: ActiveKey | null;
  /** The number of the last rotation that ended all sessions, or 0. */
  readonly sessionsCut: number;
  readonly revokedAt: number | null;
  readonly window: RateWindow;
};

type StoredKey = {
  number: number;
  key_id: string | null;
  member_id: string | null;
  scope: KeyScope | null;
  rpm_limit: number | null;
  terms: string | null;
  secrets: string | null;
  checked_at: number | null;
  revoked_at: number | null;
  sessions_cut: number;
};

export function selectKey(sql: SqlStorage, hash: string): KnownKey | null {
  const [row] = sql
    .exec<StoredKey>(
      `SELECT number, key_id, member_id, scope, rpm_limit, terms, secrets, checked_at, revoked_at,
        sessions_cut
      FROM keys WHERE hash = ?`,
      hash,
    )
    .toArray();
  if (row === undefined) return null;
  const admissions = sql
    .exec<StoredAdmission>("SELECT slot, at FROM admissions WHERE key = ?", row.number)
    .toArray();
  return {
    number: row.number,
    record: activeKeyFromRow(row),
    revokedAt: row.revoked_at,
    sessionsCut: row.sessions_cut,
    window: new RateWindow(admissions),
  };
}

export function selectKeyRecordById(sql: SqlStorage, keyId: string): WalletKeyRecord | null {
  const [row] = sql.exec<StoredKey & { hash: string }>(
    "SELECT * FROM keys WHERE key_id = ?",
    keyId,
  );
  const record = row === undefined ? null : activeKeyFromRow(row);
  if (row === undefined || record === null) return null;
  const { memberId, scope, rpmLimit } = record;
  return { keyId, keyHash: row.hash, memberId, scope, rpmLimit };
}

/**
 * Returns each key's last rotation that ended all sessions, by key ID. For a revoked key, returns
 * Infinity.
 */
export function selectSessionCutsByKey(sql: SqlStorage): ReadonlyMap<string, number> {
  const rows = sql.exec<{ id: string; cut: number | null }>(
    `SELECT key_id AS id, iif(revoked_at IS NULL, sessions_cut, NULL) AS cut FROM keys
    WHERE key_id IS NOT NULL AND (revoked_at IS NOT NULL OR sessions_cut > 0)`,
  );
  return new Map([...rows].map(({ id, cut }) => [id, cut ?? Infinity]));
}

function activeKeyFromRow(row: StoredKey): ActiveKey | null {
  const { key_id: keyId, member_id: memberId, scope, rpm_limit: rpmLimit } = row;
  if (keyId === null || memberId === null || scope === null || rpmLimit === null) return null;
  const terms = keyTermsFromJson(row.terms);
  const secrets = keySecretsFromJson(row.secrets);
  return { keyId, memberId, scope, rpmLimit, terms, secrets, checkedAt: row.checked_at ?? 0 };
}

export function isKeyUnchangedInDatabase(
  { revokedAt }: KnownKey,
  known: ActiveKey,
  reported: UsedKeyRecord | undefined,
): boolean {
  if (reported === undefined) return false;
  if (reported.revokedAt !== null || revokedAt !== null) {
    return reported.revokedAt !== null && revokedAt !== null;
  }
  return (
    reported.rpmLimit === known.rpmLimit &&
    keyTermsToJson(reported.terms) === keyTermsToJson(known.terms) &&
    keySecretsToJson(reported.secrets) === keySecretsToJson(known.secrets)
  );
}

/** Schedules checks at `dueAt` for keys that may have been used after `notedAt`. */
export function scheduleKeyUseChecks(
  sql: SqlStorage,
  dueUses: KeyUseChecks,
  { notedAt, dueAt }: { readonly notedAt: number; readonly dueAt: number },
): void {
  const checked = sql.exec<{ hash: string }>(
    "SELECT hash FROM keys WHERE key_id IS NOT NULL AND checked_at > ? LIMIT ?",
    notedAt - KEY_REFRESH_MS,
    USED_KEYS_MAX,
  );
  for (const { hash } of checked) dueUses.add(hash, dueAt);
}

/** Stores a key. A revoked key stays revoked. */
export function putKey(sql: SqlStorage, hash: string, record: ActiveKey): void {
  sql.exec(
    `INSERT INTO keys (hash, key_id, member_id, scope, rpm_limit, terms, secrets, checked_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (hash) DO UPDATE SET key_id = excluded.key_id, member_id = excluded.member_id,
      scope = excluded.scope, rpm_limit = excluded.rpm_limit, terms = excluded.terms,
      secrets = excluded.secrets, checked_at = excluded.checked_at`,
    hash,
    record.keyId,
    record.memberId,
    record.scope,
    record.rpmLimit,
    keyTermsToJson(record.terms),
    keySecretsToJson(record.secrets),
    record.checkedAt,
  );
  sql.exec(
    "INSERT OR IGNORE INTO key_members (key_id, member_id) VALUES (?, ?)",
    record.keyId,
    record.memberId,
  );
}

/** Stores a revocation, even if the key is unknown. Keeps an earlier revocation time. */
export function markKeyRevoked(sql: SqlStorage, hash: string, revokedAt: number): void {
  sql.exec(
    `INSERT INTO keys (hash, revoked_at) VALUES (?, ?)
    ON CONFLICT (hash) DO UPDATE SET revoked_at = coalesce(revoked_at, excluded.revoked_at)`,
    hash,
    revokedAt,
  );
}

export function deleteAdmissionsOfRevokedKeys(sql: SqlStorage, beforeMs: number): boolean {
  const { rowsWritten } = sql.exec(
    `DELETE FROM admissions WHERE key IN (SELECT number FROM keys WHERE revoked_at < ?
      AND EXISTS (SELECT 1 FROM admissions WHERE key = number) LIMIT ?)`,
    beforeMs,
    REVOKED_KEYS_MAX,
  );
  return rowsWritten > 0;
}

export function updateKey(
  sql: SqlStorage,
  hash: string,
  column: "rpm_limit" | "terms" | "secrets" | "checked_at" | "key_id",
  value: string | number | null,
): void {
  sql.exec(`UPDATE keys SET ${column} = ? WHERE hash = ?`, value, hash);
}

export function endSessionsBeforeRotation(sql: SqlStorage, hash: string, rotation: number): void {
  sql.exec(
    `INSERT INTO keys (hash, sessions_cut) VALUES (?, ?)
    ON CONFLICT (hash) DO UPDATE SET sessions_cut = max(sessions_cut, excluded.sessions_cut)`,
    hash,
    rotation,
  );
}

/** Removes the cached data of active keys, but keeps revocations and admissions. */
export function evictActiveKeys(sql: SqlStorage): void {
  sql.exec("UPDATE keys SET key_id = NULL WHERE revoked_at IS NULL");
}

/** Stores an admission. The output gate delays the response until the row is durable. */
export function insertAdmission(sql: SqlStorage, key: number, entry: StoredAdmission): void {
  const { rowsWritten } = sql.exec(
    `INSERT INTO admissions (key, slot, at) VALUES (?, ?, ?)
    ON CONFLICT (key, slot) DO UPDATE SET at = excluded.at`,
    key,
    entry.slot,
    entry.at,
  );
  assert(rowsWritten === 1, `an admission must write one row, wrote ${rowsWritten}`);
}

/** Sets a key's future times to the current time, after the clock moved back. */
export function clampKeyTimes(storage: DurableObjectStorage, key: number, clockMs: number): void {
  storage.transactionSync(() => {
    storage.sql.exec("UPDATE admissions SET at = ?1 WHERE key = ?2 AND at > ?1", clockMs, key);
    storage.sql.exec(
      "UPDATE keys SET checked_at = min(checked_at, ?1) WHERE number = ?2",
      clockMs,
      key,
    );
  });
}

/** A key's spend and its `budget_dollars`, which is null after removal. */
type KeySpendRow = {
  key_id: string;
  budget: Micros | null;
  period: BudgetPeriod | null;
  day: string;
  daily: number;
  week: string;
  weekly: number;
  month: string;
  monthly: number;
  total: number;
  changed: number;
};

/**
 * Returns a key's spend up to the last checkpoint, or null if only daily totals contain the spend.
 */
export function selectKeySpend(sql: SqlStorage, keyId: string): KeySpendRow | null {
  const [row] = sql.exec<KeySpendRow>("SELECT * FROM key_budgets WHERE key_id = ?", keyId);
  return row ?? null;
}

export type KeySpendOfDay = Pick<UsageTotal, "day" | "costMicro">;

export function selectKeySpendByDay(sql: SqlStorage, keyId: string): readonly KeySpendOfDay[] {
  return sql
    .exec<KeySpendOfDay>(
      "SELECT day, cost AS costMicro FROM totals WHERE dimension = 'key' AND name = ? ORDER BY day",
      keyId,
    )
    .toArray();
}

export function putKeySpend(sql: SqlStorage, row: KeySpendRow): void {
  insertRow(sql, "OR REPLACE INTO key_budgets", row);
}

export function updateKeyBudget(
  sql: SqlStorage,
  keyId: string,
  { budgetMicro, budgetPeriod }: Pick<KeyTerms, "budgetMicro" | "budgetPeriod">,
): void {
  sql.exec(
    "UPDATE key_budgets SET budget = ?, period = ? WHERE key_id = ?",
    budgetMicro,
    budgetPeriod,
    keyId,
  );
}

export function selectTokenWindows(sql: SqlStorage, clock: number): Map<string, TokenWindow> {
  const floor = rateWindowStartMs(clock);
  const rows = sql
    .exec<{ id: string; keyId: string; at: number; count: number }>(
      `SELECT id, ${KEY_ID_SQL} AS keyId, min(admitted_at, ?3) AS at,
        iif(state = 'settled', prompt_tokens + completion_tokens, tokens) AS count
      FROM requests WHERE id >= ?1 AND admitted_at > ?2 AND tokens IS NOT NULL
        AND state IN ('held', 'settled', 'expired') ORDER BY admitted_at, id`,
      lowestHoldIdSince(floor - CLOCK_LAG_MAX_MS),
      floor,
      clock,
    )
    .toArray();
  const windows = new Map<string, TokenWindow>();
  for (const { id, keyId, at, count } of rows) {
    const window = windows.get(keyId) ?? new TokenWindow();
    window.add(id, at, count);
    windows.set(keyId, window);
  }
  return windows;
}

/** Ms between lookups of a key in use. */
export const KEY_REFRESH_MS = 60_000;

/** Keys whose last use may be unpublished, with the time to check each key (Unix ms). */
export class KeyUseChecks {
  readonly #due = new Map<string, number>();
  next = Infinity;

  add(hash: string, dueAt: number): void {
    if (this.#due.has(hash)) return;
    this.#due.set(hash, dueAt);
    this.next = Math.min(this.next, dueAt);
  }

  takeDue(nowMs: number, max: number): string[] {
    if (this.next > nowMs) return [];
    const due = [...this.#due].filter(([, at]) => at <= nowMs).slice(0, max);
    for (const [hash] of due) this.#due.delete(hash);
    this.next = Math.min(Infinity, ...this.#due.values());
    return due.map(([hash]) => hash);
  }
}
