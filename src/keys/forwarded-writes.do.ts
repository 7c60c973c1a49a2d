/** A repeat that the network made comes within this of the first. */
const REMEMBERED_MS = 60_000;

/** Whether this id was seen within the last minute; if not, it is from now on. Two rows at most. */
export function isRepeatedWrite(sql: SqlStorage, writeId: string, nowMs: number): boolean {
  sql.exec(`CREATE TABLE IF NOT EXISTS forwarded_writes (
    id TEXT PRIMARY KEY NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID`);
  sql.exec("DELETE FROM forwarded_writes WHERE at < ?", nowMs - REMEMBERED_MS);
  const { rowsWritten } = sql.exec(
    "INSERT INTO forwarded_writes (id, at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
    writeId,
    nowMs,
  );
  return rowsWritten === 0;
}
