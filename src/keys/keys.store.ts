import { refuse, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import type { KeyRow } from "./key-record.ts";

/** Live keys of one organisation, at most. */
export const LIVE_KEYS_MAX = 1000;
/** New keys of one organisation in 24 hours, at most: each leaves a row in the book for good. */
const NEW_KEYS_MAX = 10_000;
/** Revoked keys that a list shows, the newest: a customer may make any number of them. */
export const LISTED_REVOKED = 100;

/** A key that is about to be inserted: never used, not revoked. */
export type NewKey = Omit<KeyRow, "last_used_at" | "revoked_at">;

/** The key with this hash, revoked or not, or null. Every function here throws when D1 fails. */
export function findKeyByHash(db: D1Database, hash: string): Promise<KeyRow | null> {
  return db.prepare("SELECT * FROM keys WHERE hash = ?").bind(hash).first<KeyRow>();
}

/**
 * One statement that inserts the key only while its member is active, the key that asks for it is not
 * revoked (`callerKeyId`; null for operators), and the organisation has fewer than 1,000 live keys and
 * 10,000 of the last 24 hours: no two calls can pass a check together. For a batch with the member's insert.
 */
export function insertKeyStatement(
  db: D1Database,
  key: NewKey,
  callerKeyId: string | null,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM members
       WHERE id = ?4 AND org_id = ?3 AND removed_at IS NULL
         AND (?10 IS NULL OR EXISTS
           (SELECT 1 FROM keys WHERE id = ?10 AND member_id = ?4 AND revoked_at IS NULL))
         AND (SELECT count(*) FROM keys WHERE org_id = ?3 AND revoked_at IS NULL) < ${LIVE_KEYS_MAX}
         AND (SELECT count(*) FROM keys WHERE org_id = ?3 AND created_at > ?9 - 864e5) < ${NEW_KEYS_MAX}
       RETURNING *`,
    )
    .bind(
      key.id,
      key.hash,
      key.org_id,
      key.member_id,
      key.name,
      key.prefix,
      key.scope,
      key.rpm_limit,
      key.created_at,
      callerKeyId,
    );
}

/**
 * Inserts a key. Failures: `conflict` at 1,000 live keys or 10,000 new ones; without an active member
 * `not_found` for an operator; `invalid_api_key` for a caller whose key or member has ended.
 */
export async function insertKey(
  db: D1Database,
  key: NewKey,
  callerKeyId: string | null,
): Promise<Result<KeyRow>> {
  const inserted = await insertKeyStatement(db, key, callerKeyId).first<KeyRow>();
  return inserted === null ? whyNotInserted(db, key, callerKeyId) : success(inserted);
}

/** The failure of an insert that made no key, as `insertKey` describes them. */
export async function whyNotInserted(
  db: D1Database,
  key: NewKey,
  callerKeyId: string | null,
): Promise<Refusal> {
  const member = await db
    .prepare(
      `SELECT id FROM members WHERE id = ?1 AND org_id = ?2 AND removed_at IS NULL
         AND (?3 IS NULL OR EXISTS
           (SELECT 1 FROM keys WHERE id = ?3 AND member_id = ?1 AND revoked_at IS NULL))`,
    )
    .bind(key.member_id, key.org_id, callerKeyId)
    .first();
  if (member === null) {
    return callerKeyId === null
      ? refuse({ kind: "not_found", message: "No such member." })
      : refuse({ kind: "invalid_api_key" });
  }
  return refuse({
    kind: "conflict",
    message: `At most ${LIVE_KEYS_MAX} live keys, ${NEW_KEYS_MAX} new ones a day.`,
    param: null,
    code: "too_many_keys",
  });
}

/** Whose keys are meant: all of an organisation, or those of one of its members. */
export type KeyOwner = { readonly orgId: string; readonly memberId: string | null };

/** The owner's live keys and its newest 100 revoked ones, newest first. */
export async function listKeys(db: D1Database, owner: KeyOwner): Promise<readonly KeyRow[]> {
  const live = `SELECT * FROM keys INDEXED BY live_keys_by_organization
    WHERE org_id = ?1 AND revoked_at IS NULL AND (?2 IS NULL OR member_id = ?2)`;
  const { results } = await db
    .prepare(`SELECT * FROM (${live}) UNION ALL SELECT * FROM (${revokedOf(owner)})
      ORDER BY created_at DESC, id DESC`)
    .bind(owner.orgId, owner.memberId, LISTED_REVOKED, null, null)
    .all<KeyRow>();
  return results;
}

/** A place in the list of revoked keys: those that come after it are older. */
export type ListedKey = Pick<KeyRow, "created_at" | "id">;

/** At most `limit` of the owner's revoked keys, newest first, after this one, or from the first on. */
export async function listRevokedKeys(
  db: D1Database,
  owner: KeyOwner,
  { limit, after }: { readonly limit: number; readonly after: ListedKey | null },
): Promise<readonly KeyRow[]> {
  const { results } = await db
    .prepare(`SELECT * FROM (${revokedOf(owner)})`)
    .bind(owner.orgId, owner.memberId, limit, after?.created_at ?? null, after?.id ?? null)
    .all<KeyRow>();
  return results;
}

/** ?1 and ?2 the owner, ?3 how many, ?4 and ?5 the last one of the page before. Reads a page, not all. */
function revokedOf({ memberId }: KeyOwner): string {
  const index = memberId === null ? "revoked_keys_by_organization" : "revoked_keys_by_member";
  const owner = memberId === null ? "org_id = ?1 AND ?2 IS NULL" : "member_id = ?2 AND org_id = ?1";
  return `SELECT * FROM keys INDEXED BY ${index} WHERE ${owner} AND revoked_at IS NOT NULL
    AND (?4 IS NULL OR (created_at, id) < (?4, ?5)) ORDER BY created_at DESC, id DESC LIMIT ?3`;
}

/** The key with this id, revoked or not, or null when it is not one of this owner's. */
export function findKey(
  db: D1Database,
  id: string,
  { orgId, memberId }: KeyOwner,
): Promise<KeyRow | null> {
  return db
    .prepare("SELECT * FROM keys WHERE id = ?1 AND org_id = ?2 AND (?3 IS NULL OR member_id = ?3)")
    .bind(id, orgId, memberId)
    .first<KeyRow>();
}

/** Sets what is given of a key of this organisation; null when it has no such key. */
export function updateKey(
  db: D1Database,
  key: { readonly id: string; readonly orgId: string },
  change: { readonly name?: string | undefined; readonly rpm_limit?: number | undefined },
): Promise<KeyRow | null> {
  return db
    .prepare(
      `UPDATE keys SET name = coalesce(?3, name), rpm_limit = coalesce(?4, rpm_limit)
       WHERE id = ?1 AND org_id = ?2 RETURNING *`,
    )
    .bind(key.id, key.orgId, change.name ?? null, change.rpm_limit ?? null)
    .first<KeyRow>();
}

/** Marks a key of this organisation as revoked, keeping the first time; null when it has no such key. */
export function revokeKey(
  db: D1Database,
  key: { readonly id: string; readonly orgId: string; readonly revokedAt: number },
): Promise<KeyRow | null> {
  return db
    .prepare(
      `UPDATE keys SET revoked_at = coalesce(revoked_at, ?)
       WHERE id = ? AND org_id = ? RETURNING *`,
    )
    .bind(key.revokedAt, key.id, key.orgId)
    .first<KeyRow>();
}

/** The same for a key that the book is told of by its hash alone. */
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

/** What the book says of a key when its use is noted. */
export type TouchedKey = Pick<KeyRow, "revoked_at" | "rpm_limit">;

/** Moves `last_used_at` forward, never back; null when the book has no such key. */
export function touchKey(db: D1Database, hash: string, usedAt: number): Promise<TouchedKey | null> {
  return db
    .prepare(
      `UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?)
       WHERE hash = ? RETURNING revoked_at, rpm_limit`,
    )
    .bind(usedAt, hash)
    .first<TouchedKey>();
}
