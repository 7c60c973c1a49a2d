import type { Micros } from "../money.ts";

/** A value that differs from the expected one. */
export type ReconciliationDifference = {
  readonly what: string;
  readonly expected: number | string | null;
  readonly found: number | string | null;
};
/**
 * A comparison of a wallet's tables with each other and D1, as of ledger row `seq`. `book` is null
 * without a readable balance in D1.
 */
export type Reconciliation = {
  readonly creditsMicro: Micros;
  readonly heldMicro: Micros;
  readonly openHolds: number;
  readonly seq: number;
  readonly book: {
    readonly epoch: string;
    readonly seq: number;
    readonly creditsMicro: number;
  } | null;
  readonly differences: readonly ReconciliationDifference[];
  readonly rowsRead: number;
  readonly next?: ReconcileState;
};
/**
 * The state of a reconciliation between two slices. `tries` counts restarts. Without `run`, the
 * next slice starts at the beginning.
 */
export type ReconcileState = { readonly tries: number; readonly run: ReconcileRun | null };
/**
 * The totals of the rows read so far. The next slice continues in `table` after the key `after`.
 */
export type ReconcileRun = {
  readonly mark: string;
  readonly revision: number;
  readonly floor: string;
  readonly table: "totals" | "entries" | "requests" | null;
  readonly after: readonly string[];
  readonly usage: Readonly<Record<string, number>>;
  readonly holds: number;
  readonly held: number;
  readonly newest: number;
  readonly rolled: number;
  readonly later: number;
  readonly entered: number;
  readonly used: number;
  readonly charged: number;
  readonly answer: Omit<Reconciliation, "next">;
};
export type ReconcileOptions = {
  readonly from?: ReconcileState;
  readonly withinMs?: number;
  readonly rowsMax?: number;
};
