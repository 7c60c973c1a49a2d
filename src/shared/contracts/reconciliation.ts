import type { Micros } from "../money.ts";

/** A figure that is not the same in two places. */
export type Difference = {
  readonly what: string;
  readonly expected: number | string | null;
  readonly found: number | string | null;
};
/**
 * As of ledger row `seq`. `book` is null when it could not be read, or has no row of this organization yet.
 * `rowsRead`: so far, of the ledger and of usage. `next`: not all was read, it goes on from there.
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
/** Where a reconciliation is between two slices. `tries`: how often it began anew; a `run` of null begins. */
export type ReconcileState = { readonly tries: number; readonly run: ReconcileRun | null };
/** What it has read. Money in micros; the rows of `table` with keys after `after` come next. */
export type ReconcileRun = {
  /** The wallet's, and its revision, when it began. */
  readonly mark: string;
  readonly revision: number;
  /** No open hold had a smaller id. */
  readonly floor: string;
  /** Null after the last one. */
  readonly table: "totals" | "entries" | "requests" | null;
  readonly after: readonly string[];
  /** What was charged by model, key and end user. */
  readonly usage: Readonly<Record<string, number>>;
  readonly holds: number;
  readonly held: number;
  /** The newest ledger row, the newest rollup, and the rows later than it. */
  readonly newest: number;
  readonly rolled: number;
  readonly later: number;
  /** Amounts of entries, those of them that were charged for requests, and what the other requests were charged. */
  readonly entered: number;
  readonly used: number;
  readonly charged: number;
  /** Its differences are those that were found when it began. */
  readonly answer: Omit<Reconciliation, "next">;
};
/** `withinMs`: answers about then with what there is; else all is read. `rowsMax`: of one slice. */
export type ReconcileAsk = {
  readonly from?: ReconcileState;
  readonly withinMs?: number;
  readonly rowsMax?: number;
};
