import type { Role } from "../../shared/caller.ts";
import { findFieldChanges, SYSTEM_ACTOR } from "../../shared/event.ts";
import type { Actor, ChangeContext } from "../../shared/event.ts";
import { insertEventIfChanged, insertEventOnce } from "../../shared/events.store.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import {
  hasAnyKeyTerms,
  toStoredKeyTerms,
  KEY_TERM_COLUMNS,
  keyTermsToRowValues,
} from "../../shared/key-terms.ts";
import {
  KEY_SECRETS_SUBQUERY,
  usedKeyRecordFromRow,
  recordKeyUsesStatement,
} from "../../shared/key-uses.store.ts";
import type { UsedKeyRecord, UsedKeyRow } from "../../shared/key-uses.store.ts";
import { keyFromRow } from "./stored-key.ts";
import type { StoredKey, KeyRow } from "./stored-key.ts";

export const ACTIVE_KEYS_MAX = 1000;
/** Maximum new keys per organization in 24 hours. */
const NEW_KEYS_MAX = 10_000;
/** Maximum revoked keys in a list of active and revoked keys. */
export const LISTED_REVOKED_KEYS_MAX = 100;

const TERM_COLUMN_NAMES = [...KEY_TERM_COLUMNS, "more"];
const TERM_COLUMN_LIST = TERM_COLUMN_NAMES.join(", ");
const KEY_COLUMNS = `keys.*, ${KEY_SECRETS_SUBQUERY}, ${TERM_COLUMN_LIST}, key_terms.changed_at, day, daily_spend_micro, week, weekly_spend_micro,
  month, monthly_spend_micro, total_spend_micro`;
const KEY_JOINS = `LEFT JOIN key_terms ON key_terms.key_id = keys.id
  LEFT JOIN key_spend ON key_spend.org_id = keys.org_id AND key_spend.key_id = keys.id`;

export async function findKeyByHash(db: D1Database, hash: string): Promise<StoredKey | null> {
  const row = await db
    .prepare(`SELECT ${KEY_COLUMNS} FROM keys ${KEY_JOINS} WHERE keys.hash = ?`)
    .bind(hash)
    .first<KeyRow>();
  return row === null ? null : keyFromRow(row);
}

/**
 * Returns a statement that inserts a key, unless the member or caller is inactive or the
 * organization has too many keys.
 */
export function createInsertKeyStatement(
  db: D1Database,
  key: StoredKey,
  callerKeyId: string | null,
  callerSecret: string | null = null,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM members
       WHERE id = ?4 AND org_id = ?3 AND removed_at IS NULL
         AND (?10 IS NULL OR EXISTS
           (SELECT 1 FROM keys WHERE id = ?10 AND member_id = ?4 AND revoked_at IS NULL))
         AND ${isSecretValidSql("?10", "?11", "?9")}
         AND (SELECT count(*) FROM keys WHERE org_id = ?3 AND revoked_at IS NULL AND is_console IS NULL) < ${ACTIVE_KEYS_MAX}
         AND (SELECT count(*) FROM keys WHERE org_id = ?3 AND created_at > ?9 - 864e5
           AND is_console IS NULL) < ${NEW_KEYS_MAX}
       RETURNING id`,
    )
    .bind(
      key.keyId,
      key.keyHash,
      key.orgId,
      key.memberId,
      key.name,
      key.prefix,
      key.scope,
      key.rpmLimit,
      key.createdAt,
      callerKeyId,
      callerSecret,
    );
}

/** Returns an SQL condition that a key's secret is still valid at the time `at`. */
export function isSecretValidSql(keyId: string, secret: string, at: string): string {
  return `NOT EXISTS (SELECT 1 FROM key_secrets
    WHERE key_id = ${keyId} AND hash = ${secret} AND retires_at <= ${at})`;
}

export function createKeyTermsStatements(
  db: D1Database,
  key: StoredKey,
): readonly D1PreparedStatement[] {
  if (!hasAnyKeyTerms(key.terms)) return [];
  return [
    db
      .prepare(
        `INSERT INTO key_terms (key_id, org_id, ${TERM_COLUMN_LIST}, changed_at)
         SELECT id, org_id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, created_at FROM keys WHERE id = ?1`,
      )
      .bind(key.keyId, ...keyTermsToRowValues(key.terms)),
  ];
}

export function createKeyCreatedEventStatement(
  db: D1Database,
  key: StoredKey,
  actor: Actor,
): D1PreparedStatement {
  const { keyId, orgId, memberId, name, scope, rpmLimit, terms, createdAt } = key;
  const limits = hasAnyKeyTerms(terms) ? toStoredKeyTerms(terms) : {};
  const data = { name, scope, rpm_limit: rpmLimit, member_id: memberId, ...limits };
  const event = { type: "key.created", orgId, subject: keyId, data } as const;
  return insertEventOnce(db, event, { actor, now: createdAt });
}

type KeyCaller = { readonly callerSecret?: string | null; readonly actor?: Actor };

function callerActor(callerKeyId: string | null): Actor {
  return callerKeyId === null ? SYSTEM_ACTOR : { kind: "key", id: callerKeyId };
}

/**
 * Inserts a key and its limits in one batch. Fails with `conflict` for too many keys, `not_found`
 * for an inactive member, or `invalid_api_key` for an inactive caller.
 */
export async function insertKey(
  db: D1Database,
  key: StoredKey,
  callerKeyId: string | null,
  { callerSecret = null, actor = callerActor(callerKeyId) }: KeyCaller = {},
): Promise<Result<StoredKey>> {
  const [inserted] = await db.batch([
    createInsertKeyStatement(db, key, callerKeyId, callerSecret),
    createKeyCreatedEventStatement(db, key, actor),
    ...createKeyTermsStatements(db, key),
  ]);
  if (inserted !== undefined && inserted.results.length > 0) return success(key);
  return findKeyInsertFailure(db, key, { keyId: callerKeyId, secret: callerSecret });
}

export async function findKeyInsertFailure(
  db: D1Database,
  key: StoredKey,
  { keyId: callerKeyId, secret }: { readonly keyId: string | null; readonly secret: string | null },
): Promise<Refusal> {
  const member = await db
    .prepare(
      `SELECT id FROM members WHERE id = ?1 AND org_id = ?2 AND removed_at IS NULL
         AND (?3 IS NULL OR EXISTS
           (SELECT 1 FROM keys WHERE id = ?3 AND member_id = ?1 AND revoked_at IS NULL))
         AND ${isSecretValidSql("?3", "?4", "?5")}`,
    )
    .bind(key.memberId, key.orgId, callerKeyId, secret, key.createdAt)
    .first();
  if (member === null) {
    return callerKeyId === null
      ? refuse({ kind: "not_found", message: "No such member." })
      : refuse({ kind: "invalid_api_key" });
  }
  return refuse({
    kind: "conflict",
    message: `An organization can have at most ${ACTIVE_KEYS_MAX} active keys, and can create at most ${NEW_KEYS_MAX} keys a day.`,
    param: null,
    code: "too_many_keys",
  });
}

/** The owner of the selected keys: an organization or one of its members. */
export type KeyOwner = { readonly orgId: string; readonly memberId: string | null };

/**
 * SQL expression for the use of a key's budgets by budget ID, as JSON. It lags by at most a minute.
 */
const TALLIES = `(SELECT json_group_object(budgets.id, json(tally)) FROM budgets
  WHERE budgets.org_id = keys.org_id AND budgets.name > 'key' || char(10) || keys.id || char(10)
    AND budgets.name < 'key' || char(10) || keys.id || char(11)) AS tallies`;

export async function listKeys(db: D1Database, owner: KeyOwner): Promise<readonly StoredKey[]> {
  const activeKeysSql = `SELECT * FROM keys INDEXED BY live_keys_by_organization
    WHERE org_id = ?1 AND revoked_at IS NULL AND is_console IS NULL AND (?2 IS NULL OR member_id = ?2)`;
  const { results } = await db
    .prepare(`SELECT ${KEY_COLUMNS}, ${TALLIES} FROM (SELECT * FROM (${activeKeysSql}) UNION ALL
      SELECT * FROM (${revokedKeysSql(owner)})) AS keys ${KEY_JOINS} ORDER BY created_at DESC, id DESC`)
    .bind(owner.orgId, owner.memberId, LISTED_REVOKED_KEYS_MAX, null, null)
    .all<KeyRow>();
  return results.map(keyFromRow);
}

export type KeyListCursor = Pick<StoredKey, "createdAt" | "keyId">;

export async function listRevokedKeys(
  db: D1Database,
  owner: KeyOwner,
  { limit, after }: { readonly limit: number; readonly after: KeyListCursor | null },
): Promise<readonly StoredKey[]> {
  const { results } = await db
    .prepare(`SELECT ${KEY_COLUMNS} FROM (${revokedKeysSql(owner)}) AS keys ${KEY_JOINS}
      ORDER BY created_at DESC, id DESC`)
    .bind(owner.orgId, owner.memberId, limit, after?.createdAt ?? null, after?.keyId ?? null)
    .all<KeyRow>();
  return results.map(keyFromRow);
}

function revokedKeysSql({ memberId }: KeyOwner): string {
  const index = memberId === null ? "revoked_keys_by_organization" : "revoked_keys_by_member";
  const owner = memberId === null ? "org_id = ?1 AND ?2 IS NULL" : "member_id = ?2 AND org_id = ?1";
  return `SELECT * FROM keys INDEXED BY ${index} WHERE ${owner} AND revoked_at IS NOT NULL AND is_console IS NULL
    AND (?4 IS NULL OR (created_at, id) < (?4, ?5)) ORDER BY created_at DESC, id DESC LIMIT ?3`;
}

export async function findKey(
  db: D1Database,
  id: string,
  { orgId, memberId, withConsole = false }: KeyOwner & { readonly withConsole?: boolean },
): Promise<StoredKey | null> {
  const row = await db
    .prepare(
      `SELECT ${KEY_COLUMNS} FROM keys ${KEY_JOINS} WHERE keys.id = ?1 AND keys.org_id = ?2
       AND (?3 IS NULL OR keys.member_id = ?3) AND (?4 OR keys.is_console IS NULL)`,
    )
    .bind(id, orgId, memberId, withConsole ? 1 : 0)
    .first<KeyRow>();
  return row === null ? null : keyFromRow(row);
}

export function findMemberRole(db: D1Database, memberId: string): Promise<Role | null> {
  return db
    .prepare("SELECT role FROM members WHERE id = ? AND removed_at IS NULL")
    .bind(memberId)
    .first<Role>("role");
}

type KeyChange = Pick<StoredKey, "name" | "rpmLimit" | "terms">;

/**
 * Updates a key. Returns null if its row no longer equals `before`. `changedAt` always increases.
 */
export async function changeKey(
  db: D1Database,
  before: StoredKey,
  change: KeyChange,
  by: ChangeContext,
): Promise<StoredKey | null> {
  const changedAt = Math.max(by.now, (before.changedAt ?? 0) + 1);
  const isStored = hasAnyKeyTerms(change.terms) || before.changedAt !== null;
  const [changed] = await db.batch([
    db
      .prepare(
        `UPDATE keys SET name = ?3, rpm_limit = ?4 WHERE id = ?1 AND org_id = ?2 AND name = ?5
           AND rpm_limit = ?6 AND (SELECT changed_at FROM key_terms WHERE key_id = ?1) IS ?7 RETURNING id`,
      )
      .bind(
        before.keyId,
        before.orgId,
        change.name,
        change.rpmLimit,
        before.name,
        before.rpmLimit,
        before.changedAt,
      ),
    ...(isStored
      ? [
          db
            .prepare(
              // This statement inserts only if the previous statement changed the key.
              `INSERT INTO key_terms (key_id, org_id, ${TERM_COLUMN_LIST}, changed_at)
               SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE changes() = 1
               ON CONFLICT (key_id) DO UPDATE SET (${TERM_COLUMN_LIST}, changed_at) = (?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
            )
            .bind(before.keyId, before.orgId, ...keyTermsToRowValues(change.terms), changedAt),
        ]
      : []),
    ...changeEvents(db, before, change, by),
  ]);
  if (changed === undefined || changed.results.length === 0) return null;
  return { ...before, ...change, changedAt: isStored ? changedAt : null };
}

/**
 * Returns the statements that record a key's change as an event. If nothing changed, they insert
 * nothing.
 */
function changeEvents(
  db: D1Database,
  before: StoredKey,
  change: KeyChange,
  { now, actor }: ChangeContext,
): readonly D1PreparedStatement[] {
  const data = findFieldChanges(eventFields(before), eventFields(change));
  if (data === null) return [];
  const event = { actor, subject: before.keyId, data, orgId: before.orgId, createdAt: now };
  return [insertEventIfChanged(db, { type: "key.changed", ...event })];
}

function eventFields({ name, rpmLimit, terms }: KeyChange) {
  return { name, rpm_limit: rpmLimit, ...toStoredKeyTerms(terms) };
}

/** Revokes a key. Keeps the time of an earlier revocation. */
export async function revokeKey(
  db: D1Database,
  { keyId, orgId, revokedAt }: Pick<StoredKey, "keyId" | "orgId" | "revokedAt">,
): Promise<boolean> {
  const row = await db
    .prepare(
      `UPDATE keys SET revoked_at = coalesce(revoked_at, ?)
       WHERE id = ? AND org_id = ? RETURNING id`,
    )
    .bind(revokedAt, keyId, orgId)
    .first();
  return row !== null;
}

export async function revokeKeyByHash(
  db: D1Database,
  hash: string,
  revokedAt: number,
): Promise<void> {
  await db
    .prepare("UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE hash = ?")
    .bind(revokedAt, hash)
    .run();
}

/** Records a key's use (Unix ms) in D1. Returns null for an unknown key. */
export async function saveKeyUse(
  db: D1Database,
  hash: string,
  usedAt: number,
): Promise<UsedKeyRecord | null> {
  const row = await recordKeyUsesStatement(db, [{ hash, usedAt }]).first<UsedKeyRow>();
  return row === null ? null : usedKeyRecordFromRow(row);
}

const MEMBER_KEYS_MAX = 10_000;

export async function readMemberIdsByKeyId(
  db: D1Database,
  orgId: string,
): Promise<Readonly<Record<string, string>>> {
  const { results } = await db
    .prepare(
      `SELECT id, member_id FROM keys WHERE org_id = ?
      ORDER BY revoked_at IS NOT NULL, created_at DESC LIMIT ?`,
    )
    .bind(orgId, MEMBER_KEYS_MAX)
    .all<{ id: string; member_id: string }>();
  return Object.fromEntries(results.map(({ id, member_id }) => [id, member_id]));
}

export async function readMemberKeyIds(
  db: D1Database,
  { orgId, memberId }: { readonly orgId: string; readonly memberId: string },
): Promise<readonly string[]> {
  const { results } = await db
    .prepare(
      "SELECT id FROM keys WHERE org_id = ? AND member_id = ? ORDER BY created_at DESC LIMIT ?",
    )
    .bind(orgId, memberId, MEMBER_KEYS_MAX)
    .all<{ id: string }>();
  return results.map(({ id }) => id);
}
