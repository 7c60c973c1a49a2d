import { parseStoredJson } from "../../../shared/stored-json.ts";

export const TAG_KEYS_TABLE_SQL =
  "CREATE TABLE tag_keys (" +
  "from_seq INTEGER PRIMARY KEY," +
  "keys TEXT NOT NULL CHECK (json_valid(keys))" +
  ") STRICT;";

/** The tag keys that apply to ledger rows from `fromSeq` on. */
export type TagKeys = { readonly fromSeq: number; readonly keys: readonly string[] };

const CHANGES_MAX = 200;

export function selectTagKeys(sql: SqlStorage): readonly TagKeys[] {
  return sql
    .exec<{ from_seq: number; keys: string }>(
      "SELECT from_seq, keys FROM tag_keys ORDER BY from_seq",
    )
    .toArray()
    .map(({ from_seq: fromSeq, keys }) => ({
      fromSeq,
      keys: parseStoredJson<readonly string[]>(keys),
    }));
}

export function findTagKeysDeclaredAt(
  declared: readonly TagKeys[],
  seq: number,
): readonly string[] {
  return declared.findLast(({ fromSeq }) => fromSeq <= seq)?.keys ?? [];
}

export function putTagKeys(sql: SqlStorage, fromSeq: number, keys: readonly string[]): void {
  sql.exec(
    "INSERT OR REPLACE INTO tag_keys (from_seq, keys) VALUES (?, ?)",
    fromSeq,
    JSON.stringify(keys),
  );
  sql.exec(
    `DELETE FROM tag_keys WHERE from_seq <
      (SELECT from_seq FROM tag_keys ORDER BY from_seq DESC LIMIT 1 OFFSET ${CHANGES_MAX - 1})`,
  );
}
