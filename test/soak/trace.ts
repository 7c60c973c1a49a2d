import type { PairName } from "../../scripts/region-names.ts";

/** The kind of a request. */
export type Kind = "json" | "stream" | "embeddings" | "read" | "forged" | "wrong";

/** The forced upstream result: answer, fail, overload, or break off in mid-stream. */
export type Forced = "nothing" | "failure" | "overload" | "break";

/**
 * A request's end for its client. `whole`: the complete answer. `left`: the client reset the connection.
 * `cut`: a stream ended with an error event. `mute`: a stream ended without [DONE] or an error event.
 * `broken`: the connection ended early. `stuck`: the client gave up.
 */
export type Fate = "whole" | "left" | "cut" | "mute" | "broken" | "stuck";

/** The client's view of a request. Times are Unix ms with fractions, of one clock. */
export type Seen = {
  /** When it was sent, was answered with headers, began its body, and ended. */
  readonly sentMs: number;
  readonly answeredMs: number | null;
  readonly firstByteMs: number | null;
  readonly endedMs: number;
  readonly fate: Fate;
  /** Bytes of the body that came. */
  readonly received: number;
  readonly status: number | null;
  /** `x-request-id`; null when no headers came. */
  readonly id: string | null;
  /** `error.type` and `error.code` of a refusal. */
  readonly type: string | null;
  readonly code: string | null;
  /** The reported cost in micro-credits and usage of a whole answer; null: not reported. */
  readonly cost: number | null;
  readonly usage: { readonly input: number; readonly output: number } | null;
  /** The header, in seconds. */
  readonly retryAfter: string | null;
  /**
   * Whether the key's register admitted it: the answer shows the rest of its limit, and no 429 of the key.
   */
  readonly isAdmitted: boolean;
  /** Whether a 429 is the organization's limit and not the key's. */
  readonly isOrganizationLimit: boolean;
};

/** A request: what it was, and what its client saw. Whose it is is null for a forged key. */
export type Trace = Seen & {
  readonly kind: Kind;
  readonly shape: string;
  readonly forced: Forced;
  readonly region: PairName;
  readonly orgId: string | null;
  readonly keyId: string | null;
  readonly user: string | null;
};

/** Something that was broken on purpose in a region, until it was whole again. Unix ms. */
export type FaultWindow = {
  readonly what: "abort" | "book" | "link" | "kill";
  readonly region: PairName;
  readonly fromMs: number;
  readonly untilMs: number;
};

export type LedgerRow = {
  readonly seq: number;
  readonly kind: string;
  readonly amount_micro: number;
  readonly balance_micro: number;
  readonly generation_id: string | null;
};
/** An organization at rest. Money in micros. */
export type Estate = {
  readonly orgId: string;
  /** The wallet's balance. */
  readonly balance: number;
  readonly openHolds: number;
  readonly held: number;
  /** All of it, in order. */
  readonly ledger: readonly LedgerRow[];
  /** The credits, each reference once. */
  readonly credited: number;
  /** Its row in the region's D1; null without one. */
  readonly book: number | null;
  /** The differences of POST reconcile. */
  readonly differences: readonly string[];
};

/** When a wallet or a register has stored that it let requests pass, and how many it may in any 60 s. */
export type Stored = {
  /** A key in a region; null: the organization `whose`. */
  readonly key: { readonly keyId: string; readonly region: PairName } | null;
  readonly whose: string;
  readonly limit: number;
  /** Unix ms, oldest first; of a key the last 1000 at most. */
  readonly at: readonly number[];
};

/** The gateway's own heap after a collection. `pid`: the process that was measured, another one after each restart. */
export type HeapSample = {
  readonly region: PairName;
  readonly pid: number;
  readonly atMs: number;
  readonly bytes: number;
};

/** A line of a Worker's log that must not be there, with its event. Unix ms. */
export type Mishap = {
  readonly event: string;
  readonly region: PairName;
  readonly atMs: number;
  readonly message: string;
};

/** The number of each fault; `missed`: impossible during a restart. */
export type Done = Record<
  "aborts" | "book outages" | "link cuts" | "kills" | "crons" | "missed",
  number
>;

/** All that is known of a run when it is over and healed: what its invariants are judged by. */
export type Evidence = {
  readonly traces: readonly Trace[];
  readonly windows: readonly FaultWindow[];
  readonly done: Done;
  /** The time of each revoked key's DELETE answer of 200; null: never. */
  readonly revocations: ReadonlyMap<string, number | null>;
  /** The start and end of the load, and the requests skipped because too many were pending. */
  readonly load: { readonly fromMs: number; readonly untilMs: number; readonly leftOut: number };
  /** The longest that a request may run, in ms: then it is ended, as an upstream's failure. */
  readonly runMaxMs: number;
  /** Organizations whose credit is meant to run out. */
  readonly dry: ReadonlySet<string>;
  /** End users with a quota, as `organization external_id`. */
  readonly capped: ReadonlySet<string>;
  readonly estates: readonly Estate[];
  /** Messages in each region's outboxes, by what has become of them. */
  readonly outboxes: readonly (Readonly<Record<"waiting" | "dead" | "parked", number>> & {
    readonly region: PairName;
  })[];
  readonly stored: readonly Stored[];
  readonly heaps: readonly HeapSample[];
  readonly mishaps: readonly Mishap[];
};

/** A promise's measurement, and each case that broke it. */
export type Judged = { readonly figure: string; readonly broken: readonly string[] };
/** A measurement with its promise; `notJudged`: why this machine couldn't show it; then nothing is broken. */
export type Verdict = Judged & { readonly promise: string; readonly notJudged?: string };

/** Whether it costs money when it is answered. */
export function isPaid({ kind }: Trace): boolean {
  return kind === "json" || kind === "stream" || kind === "embeddings";
}

export function killsIn({ windows }: Pick<Evidence, "windows">): readonly FaultWindow[] {
  return windows.filter(({ what }) => what === "kill");
}

/** A request for a report's reader. */
export function nameOf(trace: Trace): string {
  const whose = trace.orgId === null ? "a forged key" : `organization ${trace.orgId}`;
  return `${trace.shape} in ${trace.region} of ${whose}, request ${trace.id ?? "without an id"}`;
}

/** The words where something is so, none where it is not. */
export function when(is: boolean, words: string): string[] {
  return is ? [words] : [];
}

/** A time for a report's reader. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function sumOf<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0);
}
