import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { success } from "../../src/lib/failure.ts";
import { micros } from "../../src/lib/money.ts";
import type { Provider, ProviderAnswer } from "../../src/providers/provider.ts";
import { RouteHealth } from "../../src/providers/route-health.ts";
import type { RunServices } from "../../src/inference/paid-request.ts";
import { pay } from "../../src/inference/paid-path.route.ts";
import type { OutcomeItem } from "../../src/regions/outbox-message.ts";
import { runOf } from "./run-fixture.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** What becomes of a run whose client leaves while its route is busy, when the drain has ended. */
async function outcomeOf(send: Provider["send"], client: AbortController): Promise<string[]> {
  const queued: string[] = [];
  const services: Partial<RunServices> = {
    wallet: null,
    outbox: () => ({
      enqueue: async (items: readonly OutcomeItem[]) => {
        queued.push(...items.map(({ kind }) => kind));
      },
    }),
    providers: new Map<string, Provider>([["up", { id: "up", send }]]),
    health: new RouteHealth(),
    hold: () =>
      Promise.resolve({ unanswered: false, result: success({ granted: micros(10_000) }) }),
    numbers: {
      REQUEST_DEADLINE_S: 900,
      DRAIN_S: 0,
      UPSTREAM_HEADERS_MS: 1000,
      UPSTREAM_FIRST_MS: 1000,
    } as RunServices["numbers"],
  };
  await pay(runOf(services, client.signal));
  return queued;
}

const never = new Promise<ProviderAnswer>(() => undefined);

it.each([
  ["before its request was sent: void", false, ["void"]],
  ["after it: the input is charged", true, ["settle"]],
] as const)("a client that leaves %s", async (_, isSent, outcome) => {
  const client = new AbortController();
  const send: Provider["send"] = (call) => {
    if (isSent) call.onDispatch?.();
    client.abort();
    return never;
  };
  expect(await outcomeOf(send, client)).toEqual(outcome);
});
