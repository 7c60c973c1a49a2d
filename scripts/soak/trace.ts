import type { PairName } from "../region-names.ts";

/** What a request is. */
export type Kind = "json" | "stream" | "embeddings" | "read" | "forged" | "wrong";

/** What its upstream is made to do: answer, fail, be overloaded, break off in mid-stream. */
export type Forced = "nothing" | "failure" | "overload" | "break";

/**
 * How a request ended for its client. `whole`: the answer, to its end. `left`: the client reset the
 * connection before that. `cut`: a stream that ended with an error event. `mute`: a stream that ended as HTTP
 * has it, but with neither [DONE] nor an error event. `broken`: the connection ended in the midst of the
 * answer or before it. `stuck`: the client gave up waiting.
 */
export type Fate = "whole" | "left" | "cut" | "mute" | "broken" | "stuck";

export type Usage = { readonly input: number; readonly output: number };

/** What the client of a request saw. Times are Unix ms with fractions, of one clock. */
export type Seen = {
  /** When it was sent, was answered with headers, began its body, and ended. */
  readonly sentMs: number;
  readonly answeredMs: number | null;
  readonly firstByteMs: number | null;
  readonly endedMs: number;
  readonly fate: Fate;
  /** Characters of the body that came. */
  readonly received: number;
  readonly status: number | null;
  /** `x-request-id`; null when no headers came. */
  readonly id: string | null;
  /** `error.type` and `error.code` of a refusal. */
  readonly type: string | null;
  readonly code: string | null;
  /** What the client of an answer read whole was told that it paid, in micros, and used; null: not told. */
  readonly cost: number | null;
  readonly usage: Usage | null;
  /** The header, in seconds. */
  readonly retryAfter: string | null;
  /** Whether the key's register let it pass: the answer says what is left of its limit, and no 429 of the key's. */
  readonly isAdmitted: boolean;
  /** Whether a 429 is the organisation's limit and not the key's. */
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
/** Time during which a region was being restarted; its connections may fail. */
export type Restart = Omit<FaultWindow, "what">;

/** A promise, what was measured for it, and each case in which it was broken, in words. */
export type Verdict = {
  readonly promise: string;
  readonly figure: string;
  readonly broken: readonly string[];
  /** Why it could not be judged on this machine; then nothing is broken. */
  readonly notJudged?: string;
};

/** Unix ms with fractions: never steps back. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Whether it costs money when it is answered. */
export function isPaid({ kind }: Trace): boolean {
  return kind === "json" || kind === "stream" || kind === "embeddings";
}

/** A request for a report's reader. */
export function nameOf(trace: Trace): string {
  const whose = trace.orgId === null ? "a forged key" : `organisation ${trace.orgId}`;
  return `${trace.shape} in ${trace.region} of ${whose}, request ${trace.id ?? "without an id"}`;
}

/** A time for a report's reader. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

export function sumOf<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0);
}

export function mostOf<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((most, one) => Math.max(most, of(one)), 0);
}
