import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { EventStream, Provider, StreamEvent } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import type { RunServices } from "../../src/models/requests/paid-request.ts";
import { runPaidRequest } from "../../src/models/requests/paid-path.route.ts";
import { HOME, runOf } from "./run-fixture.ts";

/** The platform ends a request's remaining work this long after its client disconnected. */
const PLATFORM_END_MS = 30_000;

const lines: { readonly event: string; readonly atMs: number }[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  lines.length = 0;
  vi.spyOn(scheduler, "wait").mockImplementation(
    (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  );
  vi.spyOn(console, "log").mockImplementation((line: string) => {
    lines.push({
      event: String((JSON.parse(line) as { event?: unknown }).event),
      atMs: Date.now(),
    });
  });
});
afterEach(() => vi.useRealTimers());

/** Returns a route that sends one word and is silent from then on. */
function oneWord(): Provider {
  const silent = Promise.withResolvers<null>();
  const chunk = { choices: [{ index: 0, delta: { content: "hi" }, finish_reason: null }] };
  const batches: (readonly StreamEvent[])[] = [[{ kind: "chunk", chunk }]];
  const events: EventStream = {
    next: () => Promise.resolve(batches.shift() ?? silent.promise),
    cancel: () => silent.resolve(null),
  };
  return {
    id: "up",
    send: (call) => {
      call.onDispatch?.();
      return Promise.resolve({ kind: "stream", events });
    },
  };
}

/** A route that never responds. */
const noWord: Provider = {
  id: "up",
  send: (call) => {
    call.onDispatch?.();
    return new Promise(() => undefined);
  },
};

/** Returns an outbox that never responds, and no wallet in this region. */
function servicesOf(provider: Provider, drainS: number): Partial<RunServices> {
  return {
    wallet: null,
    outbox: () => ({ enqueue: () => new Promise(() => undefined) }),
    providers: new Map([["up", provider]]),
    health: new RouteHealth(),
    keysNeedingCandidates: new Set<string>(),
    now: () => Date.now(),
    home: HOME,
    numbers: {
      REQUEST_DEADLINE_S: 900,
      DRAIN_S: drainS,
      UPSTREAM_HEADERS_MS: 120_000,
      UPSTREAM_FIRST_MS: 120_000,
      UPSTREAM_IDLE_MS: 60_000,
      KEEP_ALIVE_MS: 15_000,
      READER_STUCK_MS: 30_000,
    } as RunServices["numbers"],
  };
}

it.each([
  ["during a stream", oneWord, 20],
  ["during a stream that the gateway reads for the maximum time", oneWord, 24],
  ["before the first byte", () => noWord, 20],
] as const)(
  "an unsaved charge is logged before the platform ends the request of a client that disconnected %s",
  async (_, provider, drainS) => {
    const client = new AbortController();
    const done = runPaidRequest(runOf(servicesOf(provider(), drainS), client.signal));
    await vi.advanceTimersByTimeAsync(10_000);
    client.abort();
    await vi.advanceTimersByTimeAsync(90_000);
    await done;
    const unsaved = lines.filter(({ event }) => event === "settlement_unsaved");
    expect(unsaved).toHaveLength(1);
    expect((unsaved[0]?.atMs ?? Infinity) - 10_000).toBeLessThan(PLATFORM_END_MS - 1000);
  },
);
