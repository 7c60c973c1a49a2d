import type { Micros } from "../money.ts";
import type { GenerationRecord } from "./wallet-pages.ts";

/**
 * A position after row `seq` of a ledger. `madeAt` is the creation time of the wallet, because a
 * rebuild creates another ledger.
 */
export type StreamCursor = {
  readonly madeAt: number;
  readonly seq: number;
  readonly balanceMicro: Micros;
};
/** The start of a read: a position, a ledger row or a time (Unix ms). */
export type StreamStart =
  | StreamCursor
  | { readonly afterSeq: number }
  | { readonly sinceMs: number };
/**
 * A query for one page. After a rebuild of the wallet, reading continues at the time `resumeMs`, or
 * without it at row 0.
 */
export type StreamQuery = {
  readonly from: StreamStart;
  readonly limit: number;
  readonly resumeMs?: number;
};

/** The time (Unix ms) of the first row of a replay, and the request parameter that set it. */
export type StreamFirst = { readonly atMs: number; readonly param: string };

/** A ledger row in the stream. A `rollup` stands for the deleted rows `firstSeq` to `seq`. */
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
 * A page of the stream. `next` is the position after its last row, including rows that aren't
 * streamed.
 */
export type StreamPage = {
  readonly from: StreamCursor;
  readonly rows: readonly StreamedRow[];
  readonly next: StreamCursor;
};
