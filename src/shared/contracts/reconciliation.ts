import type { Micros } from "../money.ts";

/** A figure that differs between two places. */
export type Difference = {
  readonly what: string;
  readonly expected: number | string | null;
  readonly found: number | string | null;
};
/**
 * A comparison as of ledger row `seq`. `book` is null if the database couldn't be read or has no row.
 * `rowsRead` counts ledger and usage rows so far. `next` is present if rows remain.
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
  readonly differences: readonly Difference[];
  readonly rowsRead: number;
  readonly next?: ReconcileState;
};
/** The state of a reconciliation between slices. `tries` counts restarts; a null `run` starts. */
export type ReconcileState = { readonly tries: number; readonly run: ReconcileRun | null };
/** The totals read so far, in micro-credits. The rows of `table` after the key `after` come next. */
export type ReconcileRun = {
  readonly mark: string;
  readonly revision: number;
  readonly floor: string;
  /** Null after the last table. */
  readonly table: "totals" | "entries" | "requests" | null;
  readonly after: readonly string[];
  readonly usage: Readonly<Record<string, number>>;
  readonly holds: number;
  readonly held: number;
  /** The newest ledger row, the newest rollup and the number of later rows. */
  readonly newest: number;
  readonly rolled: number;
  readonly later: number;
  /** Sums of entries, of charges among them, and of other requests. */
  readonly entered: number;
  readonly used: number;
  readonly charged: number;
  /** The result, with the differences found at the start. */
  readonly answer: Omit<Reconciliation, "next">;
};
/** `withinMs` limits the time; otherwise all rows are read. `rowsMax` limits a slice. */
export type ReconcileAsk = {
  readonly from?: ReconcileState;
  readonly withinMs?: number;
  readonly rowsMax?: number;
};
