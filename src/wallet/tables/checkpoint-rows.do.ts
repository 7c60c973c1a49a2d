/** Ledger rows between two checkpoints that are kept as marks. */
const MARK_ROWS = 1000;

/** Old checkpoints stay as marks for reading the ledger, but not closer than MARK_ROWS. */
export function thinCheckpoints(sql: SqlStorage): void {
  const [newest, before] = sql
    .exec<{ seq: number }>("SELECT seq FROM checkpoints ORDER BY seq DESC LIMIT 2")
    .toArray();
  if (newest === undefined || before === undefined) return;
  if (newest.seq - before.seq < MARK_ROWS) {
    sql.exec("DELETE FROM checkpoints WHERE seq = ?", newest.seq);
  }
}
