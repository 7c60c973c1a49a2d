import type { Memory } from "./memory.do.ts";
import { selectEndUser } from "./end-user-rows.do.ts";
import type { Period } from "./periods.ts";
import type { EndUser } from "./quota.ts";
import type { BalanceAnswer } from "./wallet-contract.ts";
import type { WalletRow } from "./wallet-row.do.ts";
import { updateWalletRow } from "./wallet-row.do.ts";

/** Where one decision is made: the tables, what is known of them, and one clock read. */
export type Desk = {
  readonly storage: DurableObjectStorage;
  readonly sql: SqlStorage;
  readonly memory: Memory;
  readonly env: Env;
  /** The wallet's own time: of a clock that lags by little, the newest time it has seen. */
  readonly nowMs: number;
  /** The day and month that spend and quotas belong to now; they never step back. */
  readonly period: Period;
  /** The clock as it is, against which ids are dated. */
  readonly clockMs: number;
};

/** An end user with its spend of this moment, by id or external id. */
export function findEndUser(
  desk: Desk,
  column: "id" | "external_id",
  value: string,
): EndUser | null {
  const fresh = column === "id" ? desk.memory.unsaved.get(value) : undefined;
  if (fresh !== undefined) return fresh;
  const stored = selectEndUser(desk.sql, column, value);
  return stored === null ? null : (desk.memory.unsaved.get(stored.id) ?? stored);
}

/** The publish that will carry a change made now. */
export function nextRevision(desk: Desk): number {
  return desk.memory.row.revision + 1;
}

/** Changes the wallet's row, in the tables and then in memory. Not for use inside a transaction. */
export function changeRow(desk: Desk, change: Partial<WalletRow>): void {
  const row = { ...desk.memory.row, ...change };
  updateWalletRow(desk.sql, row);
  desk.memory.row = row;
}

/**
 * Asks storage for what memory knows already, for a decision that would not touch it otherwise: an
 * instance whose storage is gone, as one that was replaced, must not answer from memory. Writes nothing.
 */
export function touchStorage(desk: Desk): void {
  desk.sql.exec("SELECT id FROM wallet WHERE id = 1").one();
}

/** The balance, what open holds reserve of it, and how many they are. */
export function balanceOf(desk: Desk): BalanceAnswer {
  const { balance, held, holds } = desk.memory.books;
  return { creditsMicro: balance, heldMicro: held, openHolds: holds.size };
}
