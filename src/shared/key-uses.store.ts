import { keySecretsFromJson } from "./key.ts";
import type { KeySecrets } from "./key.ts";
import { KEY_TERM_COLUMNS, keyTermsFromRow } from "./key-terms.ts";
import type { KeyTermsRow, KeyTerms } from "./key-terms.ts";

export const ACTIVE_SECRETS_MAX = 5;
export const KEY_SECRETS_SUBQUERY = `(SELECT json_group_array(json_array(hash, retires_at)) FROM
  (SELECT hash, retires_at FROM key_secrets WHERE key_id = keys.id
   ORDER BY number DESC LIMIT ${ACTIVE_SECRETS_MAX})) AS secrets`;
const TERMS = [...KEY_TERM_COLUMNS, "more"]
  .map((column) => `(SELECT ${column} FROM key_terms WHERE key_id = keys.id) AS ${column}`)
  .join(", ");

export type KeyUse = { readonly hash: string; readonly usedAt: number };

/** A used key's data in D1. */
export type UsedKeyRecord = {
  readonly hash: string;
  readonly revokedAt: number | null;
  readonly rpmLimit: number;
  readonly terms: KeyTerms;
  readonly secrets: KeySecrets;
};

export type UsedKeyRow = KeyTermsRow &
  Omit<UsedKeyRecord, "terms" | "secrets"> & { readonly secrets: string | null };

export function recordKeyUsesStatement(
  db: D1Database,
  uses: readonly KeyUse[],
): D1PreparedStatement {
  return db
    .prepare(
      `UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), used.at)
       FROM (SELECT value ->> 'hash' AS key_hash, value ->> 'usedAt' AS at FROM json_each(?)) AS used
       WHERE hash = key_hash RETURNING hash, revoked_at AS revokedAt, rpm_limit AS rpmLimit, ${KEY_SECRETS_SUBQUERY}, ${TERMS}`,
    )
    .bind(JSON.stringify(uses));
}

export function usedKeyRecordFromRow(row: UsedKeyRow): UsedKeyRecord {
  const { hash, revokedAt, rpmLimit } = row;
  return {
    hash,
    revokedAt,
    rpmLimit,
    terms: keyTermsFromRow(row),
    secrets: keySecretsFromJson(row.secrets),
  };
}
