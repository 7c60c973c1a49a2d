import { failover } from "../../src/models/routing/failover.ts";
import type { AttemptCandidate } from "../../src/models/routing/attempt.ts";
import type { FailoverOptions } from "../../src/models/routing/failover.ts";
import type {
  EventStream,
  Provider,
  ProviderResult,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";

export const GOOD: ProviderResult = { kind: "json", body: { choices: [] }, usage: null };
export const RETRY = failure({ kind: "retry", reason: "html" });
export const RESET = failure({ kind: "retry", reason: "connection", again: true });
export const FAULT: ProviderFailure = { kind: "retry", reason: "500" };
export const BUSY = failure({ kind: "overloaded", reason: "429", retryAfterMs: 7000 });
export const BAD_KEY = failure({ kind: "disabled", reason: "401" });
export const REFUSED = failure({
  kind: "refused",
  reason: "400",
  message: "no",
  param: "n",
  code: null,
});
export const CHUNK: StreamEvent = { kind: "chunk", chunk: { choices: [] } };
export const ERROR: StreamEvent = { kind: "error", failure: { kind: "retry", reason: "502" } };

export function failure(what: ProviderFailure): ProviderResult {
  return { kind: "failure", failure: what };
}

/** A candidate, with its position in the list. */
export type RouteCandidate = AttemptCandidate & { readonly at: number };

type FailoverRecord = { readonly calls: string[]; readonly sent: ProviderCall[]; nowMs: number };

/**
 * Returns candidates a, b, c and so on. Each returns its responses in order, and the last one
 * repeatedly.
 */
export function routes(...answers: (readonly (ProviderResult | Promise<ProviderResult>)[])[]) {
  const record: FailoverRecord = { calls: [], sent: [], nowMs: 1_000_000 };
  const health = new RouteHealth();
  const candidates = answers.map((own, at): RouteCandidate => {
    const id = "abcdef".charAt(at);
    let turn = 0;
    const provider: Provider = {
      id,
      async send(call) {
        record.calls.push(id);
        record.sent.push(call);
        return own[Math.min(turn++, own.length - 1)] ?? GOOD;
      },
    };
    return { provider, upstreamId: `${id}-model`, cap: 10 + at, at };
  });
  const run = (more: Partial<FailoverOptions<RouteCandidate>> = {}, streamed = false) =>
    failover(
      candidates,
      { kind: "chat", body: { model: "m", messages: [] }, stream: streamed },
      {
        health,
        now: () => record.nowMs,
        signal: new AbortController().signal,
        headersMs: 5000,
        firstMs: 5000,
        pauseMs: () => 0,
        ...more,
      },
    );
  return { record, health, run };
}

/** Returns a stream of batches. An Error breaks the connection. */
export function stream(...batches: (readonly StreamEvent[] | Error)[]) {
  const seen = { cancelled: 0 };
  const events: EventStream = {
    async next() {
      const batch = batches.shift();
      if (batch instanceof Error) throw batch;
      return batch ?? null;
    },
    cancel() {
      seen.cancelled++;
    },
  };
  return { answer: { kind: "stream", events } satisfies ProviderResult, seen };
}

export const never = new Promise<never>(() => undefined);
