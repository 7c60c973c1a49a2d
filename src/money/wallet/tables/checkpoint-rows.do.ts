import type { Settings } from "../../../shared/contracts/settings.ts";
import type { WalletRow } from "./wallet-row.do.ts";

type Checkpoint = { seq: number; balance: number; clock: number; newest: number; floor_id: string };

export function readCheckpoint(sql: SqlStorage): Checkpoint {
  return sql
    .exec<Checkpoint>(
      "SELECT seq, balance, clock, newest, floor_id FROM checkpoints ORDER BY seq DESC LIMIT 1",
    )
    .one();
}

/** Returns the settings, or null if their last change isn't in D1 yet. */
export function selectPublishedSettings(
  sql: SqlStorage,
  { acknowledged, settings }: WalletRow,
): Settings | null {
  const { changed } = sql.exec<{ changed: number }>("SELECT changed FROM settings").one();
  return changed <= acknowledged ? settings : null;
}
