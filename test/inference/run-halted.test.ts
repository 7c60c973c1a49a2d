import { expect, it } from "vitest";
import type { EventStream, Provider, StreamEvent } from "../../src/models/core/provider.ts";
import { runPaidRequest } from "../../src/models/requests/paid-path.route.ts";
import type { Run, RunServices } from "../../src/models/requests/paid-request.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { micros } from "../../src/shared/money.ts";
import { success } from "../../src/shared/failure.ts";
import type { Settlement } from "../../src/shared/contracts/wallet.ts";
import { asResponse, runOf, walletOf } from "./run-fixture.ts";

const PAUSED = {
  kind: "paused",
  pauseId: "pau_1",
  scope: "key",
  reason: "Costs",
  until: null,
} as const;
const WORDS = 12;

/** Returns the client's response and the settlement of a run that a pause stops. */
async function halted(send: (run: Run) => Provider["send"], stream: boolean) {
  let settled: Settlement | null = null;
  const wallet = walletOf({
    settle: async (settlement) => {
      settled = settlement;
      return success({ kind: "settled", charged: settlement.cost, shortfall: micros(0) });
    },
    void: () => Promise.reject(new Error("a request that was sent is not free")),
  });
  const providers = new Map<string, Provider>();
  const services: Partial<RunServices> = {
    wallet: () => wallet,
    home: null,
    providers,
    health: new RouteHealth(),
    keysNeedingCandidates: new Set<string>(),
    numbers: {
      REQUEST_DEADLINE_S: 900,
      DRAIN_S: 20,
      UPSTREAM_HEADERS_MS: 60_000,
      UPSTREAM_FIRST_MS: 60_000,
      UPSTREAM_IDLE_MS: 60_000,
      KEEP_ALIVE_MS: 60_000,
      READER_STUCK_MS: 60_000,
    } as RunServices["numbers"],
  };
  const made = runOf(services);
  const answered = Promise.withResolvers<string>();
  const request = { ...made.request, stream };
  const run = {
    ...made,
    request,
    answer: asResponse((response) => answered.resolve(response.text())),
  };
  providers.set("up", { id: "up", send: send(run) });
  await runPaidRequest(run);
  return { text: await answered.promise, settled: settled as Settlement | null, run };
}

it("a pause ends a running stream with an error event, and charges the delivered output", async () => {
  const cancelled = Promise.withResolvers<null>();
  let asked = 0;
  const send =
    (run: Run): Provider["send"] =>
    async (call) => {
      call.onDispatch?.();
      const word = { choices: [{ index: 0, delta: { content: " word" }, finish_reason: null }] };
      const events: EventStream = {
        next: async (): Promise<readonly StreamEvent[] | null> => {
          asked += 1;
          if (asked <= WORDS) return [{ kind: "chunk", chunk: word }];
          run.timer.halt(PAUSED);
          return cancelled.promise;
        },
        cancel: () => cancelled.resolve(null),
      };
      return { kind: "stream", events };
    };
  const { text, settled, run } = await halted(send, true);
  expect(text.split('"content":" word"').length - 1).toBe(WORDS);
  expect(text).toContain('"code":"paused"');
  expect(text).toContain("New requests of this API key are paused");
  expect(settled?.generation).toMatchObject({ estimated: true, usage: { output: WORDS } });
  expect(run.progress.attempts).toEqual([]);
});

/** Accepts a request, which a pause then stops, and never responds. */
const silent =
  (run: Run): Provider["send"] =>
  (call) => {
    call.onDispatch?.();
    run.timer.halt(PAUSED);
    return new Promise(() => undefined);
  };

it("a pause ends a running JSON request, and charges the work of the provider until then", async () => {
  const { text, settled, run } = await halted(silent, false);
  expect(JSON.parse(text)).toMatchObject({ error: { code: "paused", pause_id: "pau_1" } });
  expect(settled?.generation).toMatchObject({ estimated: true, usage: { input: 40 } });
  expect(run.progress.attempts).toEqual([]);
});
