import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { IDEMPOTENCY_RETENTION_MS } from "../../shared/idempotency.ts";
import type { IdempotencyHashes } from "../../shared/idempotency.ts";
import type { StoredKey } from "./stored-key.ts";
import {
  findKeyByHash,
  createInsertKeyStatement,
  createKeyTermsStatements,
  createKeyCreatedEventStatement,
  findKeyInsertFailure,
} from "./keys.store.ts";

type IdempotentCaller = {
  readonly keyId: string;
  readonly secret: string;
  readonly actor: Actor;
  readonly idempotency: IdempotencyHashes;
};

export async function insertKeyOnce(
  db: D1Database,
  key: StoredKey,
  caller: IdempotentCaller,
): Promise<Result<StoredKey>> {
  try {
    if (await insertKeyAndIdempotencyKey(db, key, caller)) return success(key);
  } catch (error) {
    const earlier = await findEarlierRequest(db, key, caller);
    if (earlier === null) throw error;
    return resolveRepeatedRequest(db, key, { earlier, body: caller.idempotency.body });
  }
  const reason = await findKeyInsertFailure(db, key, caller);
  if (reason.failure.kind !== "conflict") return reason;
  const earlier = await findEarlierRequest(db, key, caller);
  return earlier === null
    ? reason
    : resolveRepeatedRequest(db, key, { earlier, body: caller.idempotency.body });
}

async function insertKeyAndIdempotencyKey(
  db: D1Database,
  key: StoredKey,
  { keyId, secret, idempotency, actor }: IdempotentCaller,
): Promise<boolean> {
  const [, insertedKeys] = await db.batch([
    db
      .prepare("DELETE FROM idempotency_keys WHERE key_id = ? AND created_at <= ?")
      .bind(keyId, key.createdAt - IDEMPOTENCY_RETENTION_MS),
    createInsertKeyStatement(db, key, keyId, secret),
    createKeyCreatedEventStatement(db, key, actor),
    ...createKeyTermsStatements(db, key),
    db
      .prepare(
        `INSERT INTO idempotency_keys (key_id, name, body, made_key_id, created_at)
         SELECT ?1, ?2, ?3, id, created_at FROM keys WHERE id = ?4`,
      )
      .bind(keyId, idempotency.name, idempotency.body, key.keyId),
  ]);
  return (insertedKeys?.results.length ?? 0) > 0;
}

type EarlierRequest = { readonly body: string; readonly made_key_id: string };

function findEarlierRequest(
  db: D1Database,
  key: StoredKey,
  { keyId, idempotency }: IdempotentCaller,
): Promise<EarlierRequest | null> {
  return db
    .prepare(
      `SELECT body, made_key_id FROM idempotency_keys
       WHERE key_id = ? AND name = ? AND created_at > ?`,
    )
    .bind(keyId, idempotency.name, key.createdAt - IDEMPOTENCY_RETENTION_MS)
    .first<EarlierRequest>();
}

/**
 * Rejects a repeated Idempotency-Key, unless this request inserted the key and D1's response was
 * lost.
 */
async function resolveRepeatedRequest(
  db: D1Database,
  key: StoredKey,
  { earlier, body }: { readonly earlier: EarlierRequest; readonly body: string },
): Promise<Result<StoredKey>> {
  if (earlier.body !== body) return refuse({ kind: "idempotency_mismatch" });
  const insertedKey =
    earlier.made_key_id === key.keyId ? await findKeyByHash(db, key.keyHash) : null;
  if (insertedKey !== null) return success(insertedKey);
  return refuse({ kind: "idempotency_replay", made: "key", id: earlier.made_key_id });
}

const SWEPT_ROWS_MAX = 5000;

export async function deleteOldIdempotencyKeys(db: D1Database, nowMs: number): Promise<number> {
  const { meta } = await db
    .prepare(
      `DELETE FROM idempotency_keys WHERE (key_id, name) IN
         (SELECT key_id, name FROM idempotency_keys WHERE created_at <= ?
          ORDER BY created_at LIMIT ${SWEPT_ROWS_MAX})`,
    )
    .bind(nowMs - IDEMPOTENCY_RETENTION_MS)
    .run();
  return meta.changes;
}
