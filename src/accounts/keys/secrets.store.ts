import { timestamp } from "../../shared/clock.ts";
import { deriveEventId } from "../../shared/event.ts";
import type { Actor } from "../../shared/event.ts";
import { insertEventIfChanged } from "../../shared/events.store.ts";
import { IDEMPOTENCY_RETENTION_MS } from "../../shared/idempotency.ts";
import type { IdempotencyHashes } from "../../shared/idempotency.ts";
import type { StoredKey } from "./stored-key.ts";
import { ACTIVE_SECRETS_MAX } from "../../shared/key-uses.store.ts";
import { isSecretValidSql } from "./keys.store.ts";

/** Maximum new secrets per key in 24 hours. */
export const KEY_ROTATIONS_PER_DAY_MAX = 100;

export type KeySecretRow = {
  readonly number: number;
  readonly hash: string;
  readonly retires_at: number | null;
  readonly name: string | null;
  readonly body: string | null;
  readonly signed_by: string | null;
  readonly created_at: number;
};

/** Returns a key's secrets, newest first. A key without a rotation has none. */
export async function listKeySecrets(
  db: D1Database,
  keyId: string,
): Promise<readonly KeySecretRow[]> {
  const { results } = await db
    .prepare("SELECT * FROM key_secrets WHERE key_id = ? ORDER BY number DESC")
    .bind(keyId)
    .all<KeySecretRow>();
  return results;
}

export type NewKeySecret = {
  readonly of: Pick<StoredKey, "keyId" | "orgId">;
  readonly actor: Actor;
  readonly number: number;
  readonly hash: string;
  readonly prefix: string;
  readonly signedBy: string;
  readonly idempotency: IdempotencyHashes;
  /** The calling key, which must be active, or null for an operator. */
  readonly caller: { readonly keyId: string; readonly secret: string } | null;
  readonly now: number;
  /** Latest expiry (Unix ms) of the key's other secrets. */
  readonly retiresAt: number;
  readonly endsSessions: boolean;
};

/**
 * Inserts a key's newest secret. Returns false if its number is taken, the key or caller is
 * revoked, or the key has too many secrets.
 */
export async function insertKeySecret(db: D1Database, newSecret: NewKeySecret): Promise<boolean> {
  const { of, number, hash, now, retiresAt, idempotency, caller } = newSecret;
  const wasInserted =
    "EXISTS (SELECT 1 FROM key_secrets WHERE key_id = ?1 AND number = ?2 AND hash = ?3)";
  const insertFirstSecret = db
    .prepare(
      `INSERT INTO key_secrets (key_id, number, hash, created_at)
       SELECT id, 0, hash, created_at FROM keys WHERE id = ?1 AND revoked_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM key_secrets WHERE key_id = ?1)`, // only the first rotation inserts this row, because cleanup can delete it later
    )
    .bind(of.keyId);
  const insertNewSecret = db
    .prepare(
      `INSERT INTO key_secrets (key_id, number, hash, name, body, signed_by, created_at)
       SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM keys WHERE id = ?1 AND revoked_at IS NULL
         AND (SELECT max(number) FROM key_secrets WHERE key_id = ?1) = ?2 - 1
         AND (?8 IS NULL OR EXISTS (SELECT 1 FROM keys WHERE id = ?8 AND revoked_at IS NULL)
           AND ${isSecretValidSql("?8", "?9", "?7")})
         AND (SELECT count(*) FROM key_secrets WHERE key_id = ?1 AND created_at > ?7 - ${IDEMPOTENCY_RETENTION_MS})
           <= ${KEY_ROTATIONS_PER_DAY_MAX}
         AND (SELECT count(*) FROM key_secrets WHERE key_id = ?1
           AND (retires_at IS NULL OR min(retires_at, ?10) > ?7) AND ?10 > ?7) < ${ACTIVE_SECRETS_MAX}
       RETURNING number`,
    )
    .bind(
      of.keyId,
      number,
      hash,
      idempotency.name,
      idempotency.body,
      newSecret.signedBy,
      now,
      caller?.keyId ?? null,
      caller?.secret ?? null,
      retiresAt,
    );
  const [, inserted] = await db.batch<{ number: number }>([
    insertFirstSecret,
    insertNewSecret,
    keyRotatedStatement(db, newSecret),
    db
      .prepare(
        `UPDATE key_secrets SET retires_at = min(coalesce(retires_at, ?4), ?4)
         WHERE key_id = ?1 AND number < ?2 AND ${wasInserted}`,
      )
      .bind(of.keyId, number, hash, retiresAt),
    db
      .prepare(
        `DELETE FROM key_secrets WHERE key_id = ?1 AND retires_at <= ?4 AND created_at <= ?4
         AND ${wasInserted}`,
      )
      .bind(of.keyId, number, hash, now - IDEMPOTENCY_RETENTION_MS),
    db
      .prepare(`UPDATE keys SET prefix = ?4 WHERE id = ?1 AND ${wasInserted}`)
      .bind(of.keyId, number, hash, newSecret.prefix),
  ]);
  return (inserted?.results.length ?? 0) > 0;
}

/**
 * Returns a statement that records the rotation as an event, with the same ID as the wallet's
 * event.
 */
function keyRotatedStatement(db: D1Database, newSecret: NewKeySecret) {
  const { of, hash, now, retiresAt, endsSessions, actor } = newSecret;
  return insertEventIfChanged(db, {
    id: deriveEventId("key.rotated", hash),
    orgId: of.orgId,
    type: "key.rotated",
    actor,
    subject: of.keyId,
    data: { others_end_at: timestamp(retiresAt), sessions_ended: endsSessions },
    createdAt: now,
  });
}

export async function isCallerActive(
  db: D1Database,
  caller: NewKeySecret["caller"],
  now: number,
): Promise<boolean> {
  if (caller === null) return true;
  const key = await db
    .prepare(
      `SELECT 1 FROM keys WHERE id = ?1 AND revoked_at IS NULL AND ${isSecretValidSql("?1", "?2", "?3")}`,
    )
    .bind(caller.keyId, caller.secret, now)
    .first();
  return key !== null;
}
