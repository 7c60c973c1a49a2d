import type { PairName } from "../../scripts/region-names.ts";

export type Kind = "json" | "stream" | "embeddings" | "read" | "forged" | "wrong";

/** The provider's forced behavior: none, fail, overload, or fail mid-stream. */
export type Forced = "nothing" | "failure" | "overload" | "break";

/**
 * The end of a request for its client. `whole`: the response was complete. `left`: the client reset
 * the connection. `cut`: a stream ended with an error event. `mute`: a stream ended without [DONE]
 * or an error event. `broken`: the connection ended early. `stuck`: the client timed out.
 */
export type Fate = "whole" | "left" | "cut" | "mute" | "broken" | "stuck";

/** A request as its client observed it. Times are Unix ms with fractions, from one clock. */
export type Seen = {
  /** Times of sending, of the headers, of the first byte and of the end. */
  readonly sentMs: number;
  readonly answeredMs: number | null;
  readonly firstByteMs: number | null;
  readonly endedMs: number;
  readonly fate: Fate;
  /** Received bytes of the body. */
  readonly received: number;
  readonly status: number | null;
  /** `x-request-id`, or null without headers. */
  readonly id: string | null;
  /** `error.type` and `error.code` of a rejection. */
  readonly type: string | null;
  readonly code: string | null;
  /** The reported cost in micro-credits and the usage of a complete response, or null. */
  readonly cost: number | null;
  readonly usage: { readonly input: number; readonly output: number } | null;
  /** The header, in seconds. */
  readonly retryAfter: string | null;
  /**
   * The key object admitted the request: the response has the rest of its limit, and isn't a 429 of
   * the key.
   */
  readonly isAdmitted: boolean;
  /** A 429 is of the organization's limit instead of the key's. */
  readonly isOrganizationLimit: boolean;
};

/** A request and its result. `orgId` is null for a forged key. */
export type Trace = Seen & {
  readonly kind: Kind;
  readonly shape: string;
  readonly forced: Forced;
  readonly region: PairName;
  readonly orgId: string | null;
  readonly keyId: string | null;
  readonly user: string | null;
};

/** The time of a fault in a region, Unix ms. */
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
/** The state of an organization after recovery, in micro-credits. */
export type Estate = {
  readonly orgId: string;
  readonly balance: number;
  readonly openHolds: number;
  readonly held: number;
  /** All rows in order. */
  readonly ledger: readonly LedgerRow[];
  /** The sum of credits, each reference once. */
  readonly credited: number;
  /** Its row in the region's D1, or null. */
  readonly book: number | null;
  /** Differences that POST reconcile found. */
  readonly differences: readonly string[];
};

/** Stored admissions of a wallet or key object, and their limit in any 60 s. */
export type Stored = {
  /** A key in a region. Null means the organization `whose`. */
  readonly key: { readonly keyId: string; readonly region: PairName } | null;
  readonly whose: string;
  readonly limit: number;
  /** Unix ms, oldest first. A key stores at most the last 1000. */
  readonly at: readonly number[];
};

/** The gateway's heap after a collection. `pid` changes with each restart. */
export type HeapSample = {
  readonly region: PairName;
  readonly pid: number;
  readonly atMs: number;
  readonly bytes: number;
};

/** A log line that reports a bug, with its event. Unix ms. */
export type Mishap = {
  readonly event: string;
  readonly region: PairName;
  readonly atMs: number;
  readonly message: string;
};

/** Number of each fault. `missed` faults were impossible during a restart. */
export type Done = Record<
  "aborts" | "book outages" | "link cuts" | "kills" | "crons" | "missed",
  number
>;

/** All data of a finished and recovered run, for the invariants. */
export type Evidence = {
  readonly traces: readonly Trace[];
  readonly windows: readonly FaultWindow[];
  readonly done: Done;
  /** The time of the 200 response to each revoked key's DELETE, or null. */
  readonly revocations: ReadonlyMap<string, number | null>;
  /** The start and end of the load, and the requests skipped because too many were pending. */
  readonly load: { readonly fromMs: number; readonly untilMs: number; readonly leftOut: number };
  /** Maximum ms of a request. It then ends as a provider's failure. */
  readonly runMaxMs: number;
  /** Organizations that run out of credits. */
  readonly dry: ReadonlySet<string>;
  /** End users with a quota, as `organization external_id`. */
  readonly capped: ReadonlySet<string>;
  readonly estates: readonly Estate[];
  /** Messages in each region's outboxes by state. */
  readonly outboxes: readonly (Readonly<Record<"waiting" | "dead" | "parked", number>> & {
    readonly region: PairName;
  })[];
  readonly stored: readonly Stored[];
  readonly heaps: readonly HeapSample[];
  readonly mishaps: readonly Mishap[];
};

/** A measurement, and each case that broke the promise. */
export type Judged = { readonly figure: string; readonly broken: readonly string[] };
/**
 * A measurement with its promise. `notJudged` is the reason why this machine couldn't check it;
 * `broken` is then empty.
 */
export type Verdict = Judged & { readonly promise: string; readonly notJudged?: string };

/** Reports whether the request costs money if it is answered. */
export function isPaid({ kind }: Trace): boolean {
  return kind === "json" || kind === "stream" || kind === "embeddings";
}

export function killsIn({ windows }: Pick<Evidence, "windows">): readonly FaultWindow[] {
  return windows.filter(({ what }) => what === "kill");
}

/** Describes a request for a report. */
export function nameOf(trace: Trace): string {
  const whose = trace.orgId === null ? "a forged key" : `organization ${trace.orgId}`;
  return `${trace.shape} in ${trace.region} of ${whose}, request ${trace.id ?? "without an id"}`;
}

/** Returns the text in a list if `is` holds, else an empty list. */
export function when(is: boolean, words: string): string[] {
  return is ? [words] : [];
}

/** Formats a time for a report. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function sumOf<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0);
}
