import type { Micros } from "../money.ts";
import type { GenerationRecord } from "./wallet-pages.ts";

/** A position in a wallet's ledger: after row `seq`. `madeAt` identifies the wallet, which a rebuild replaces. */
export type StreamCursor = {
  readonly madeAt: number;
  readonly seq: number;
  readonly balanceMicro: Micros;
};
/** A place to start at. Times are Unix ms. */
export type StreamStart =
  | StreamCursor
  | { readonly afterSeq: number }
  | { readonly sinceMs: number };
export type StreamQuery = { readonly from: StreamStart; readonly limit: number };

/**
 * A ledger row in the stream. A `rollup` replaces the deleted rows `firstSeq` to `seq` by their sum. `request`
 * is null for these and for credits.
 */
export type StreamedRow = {
  /** The request's ID for `usage`. The same in each read. */
  readonly id: string;
  readonly kind: "usage" | "credit" | "rollup";
  readonly firstSeq: number;
  readonly seq: number;
  /** The change of the balance, and the balance after it. */
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  readonly createdAt: number;
  readonly reference: string | null;
  readonly request?: GenerationRecord | null;
};
/** A page of the stream. `next` is after its last row and also skips rows that aren't streamed. */
export type StreamPage = {
  readonly from: StreamCursor;
  readonly rows: readonly StreamedRow[];
  readonly next: StreamCursor;
};
