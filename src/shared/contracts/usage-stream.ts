import type { Micros } from "../money.ts";
import type { SettledGeneration } from "./wallet-pages.ts";

/**
 * A position after row `seq` of a ledger. `madeAt` is the creation time of the ledger's wallet,
 * because a rebuilt wallet has a new ledger.
 */
export type UsageStreamPosition = {
  readonly madeAt: number;
  readonly seq: number;
  readonly balanceMicro: Micros;
};
/** The start of a read: a position, a ledger row or a time (Unix ms). */
export type StreamStart =
  | UsageStreamPosition
  | { readonly afterSeq: number }
  | { readonly sinceMs: number };
/**
 * A query for one page. After a rebuild of the wallet, the page starts at the time `resumeMs`, or
 * at row 0 without it.
 */
export type StreamQuery = {
  readonly from: StreamStart;
  readonly limit: number;
  readonly resumeMs?: number;
};

/** The time (Unix ms) of a replay's first row, and the request parameter that set it. */
export type ReplayStart = { readonly atMs: number; readonly param: string };

/** A row of the usage stream. A `rollup` replaces the deleted ledger rows `firstSeq` to `seq`. */
export type UsageStreamRow = {
  readonly id: string;
  readonly kind: "usage" | "credit" | "rollup";
  readonly firstSeq: number;
  readonly seq: number;
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  readonly createdAt: number;
  readonly reference: string | null;
  readonly request?: SettledGeneration | null;
};
/** A page of the usage stream. `next` is the position after the last row read, streamed or not. */
export type UsageStreamPage = {
  readonly from: UsageStreamPosition;
  readonly rows: readonly UsageStreamRow[];
  readonly next: UsageStreamPosition;
};
