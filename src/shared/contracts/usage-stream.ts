import type { Micros } from "../money.ts";
import type { GenerationRecord } from "./wallet-pages.ts";

/** A position after row `seq` of a ledger. `madeAt` identifies the wallet, because a rebuild replaces it. */
export type StreamCursor = {
  readonly madeAt: number;
  readonly seq: number;
  readonly balanceMicro: Micros;
};
/** The position or the time (Unix ms) at which to start reading. */
export type StreamStart =
  | StreamCursor
  | { readonly afterSeq: number }
  | { readonly sinceMs: number };
/**
 * `resumeMs` is the time from which to continue after a rebuild of the wallet. Without it, the
 * stream starts at row 0.
 */
export type StreamQuery = {
  readonly from: StreamStart;
  readonly limit: number;
  readonly resumeMs?: number;
};

/** The first row of a replay: its time (Unix ms), and the parameter that chose it. */
export type StreamFirst = { readonly atMs: number; readonly param: string };

/** A streamed ledger row. A `rollup` replaces the deleted rows `firstSeq` to `seq`. */
export type StreamedRow = {
  readonly id: string;
  readonly kind: "usage" | "credit" | "rollup";
  readonly firstSeq: number;
  readonly seq: number;
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  readonly createdAt: number;
  readonly reference: string | null;
  readonly request?: GenerationRecord | null;
};
/**
 * A page of the stream. `next` is the position after its last row and after rows that aren't
 * streamed.
 */
export type StreamPage = {
  readonly from: StreamCursor;
  readonly rows: readonly StreamedRow[];
  readonly next: StreamCursor;
};
