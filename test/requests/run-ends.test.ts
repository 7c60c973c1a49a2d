import { expect, it, vi } from "vitest";
import type {
  EventStream,
  Provider,
  ProviderResult,
  StreamEvent,
} from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import type { Run, RunServices } from "../../src/models/requests/paid-request.ts";
import { runPaidRequest } from "../../src/models/requests/paid-path.route.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import { micros } from "../../src/shared/money.ts";
import { success } from "../../src/shared/failure.ts";
import type { Settlement } from "../../src/shared/contracts/wallet.ts";
import { asResponse, HOME, runOf, walletOf } from "./run-fixture.ts";

/**
 * Returns the settlement and output of a run whose client disconnects while its route is busy,
 * after the drain time.
 */
async function outcomeOf(send: Provider["send"], client: AbortController, drainS = 0) {
  const queued: string[] = [];
  let output: number | undefined;
  const services: Partial<RunServices> = {
    wallet: null,
    outbox: () => ({
      enqueue: async (items: readonly OutcomeItem[]) => {
        queued.push(...items.map(({ kind }) => kind));
        output = items[0]?.generation?.usage.output;
      },
    }),
    providers: new Map<string, Provider>([["up", { id: "up", send }]]),
    health: new RouteHealth(),
    keysNeedingCandidates: new Set<string>(),
    home: HOME,
    numbers: {
      REQUEST_DEADLINE_S: 900,
      DRAIN_S: drainS,
      UPSTREAM_HEADERS_MS: 1000,
      UPSTREAM_FIRST_MS: 1000,
      UPSTREAM_IDLE_MS: 60_000,
      KEEP_ALIVE_MS: 60_000,
      READER_STUCK_MS: 60_000,
    } as RunServices["numbers"],
  };
  const run = runOf(services, client.signal);
  await runPaidRequest({
    ...run,
    respond: asResponse((response) => void response.text().catch(() => undefined)),
  });
  return { queued, output };
}

const never = new Promise<ProviderResult>(() => undefined);

/** Returns a stream of single words without an end, whose client disconnects after the tenth. */
async function streamed(client: AbortController, eventMs: number) {
  const seen = { reads: 0, cancelled: false };
  const over = Promise.withResolvers<null>();
  const word: StreamEvent = { kind: "text", index: 0, json: '" word"' };
  const role = { choices: [{ index: 0, delta: { content: " word" }, finish_reason: null }] };
  const events: EventStream = {
    next: async () => {
      if (seen.cancelled) return null;
      seen.reads += 1;
      laterMs += eventMs;
      if (seen.reads === 10) client.abort();
      if (seen.reads > 30) return over.promise;
      return seen.reads === 1 ? [{ kind: "chunk", chunk: role }] : [word];
    },
    cancel: () => {
      seen.cancelled = true;
      over.resolve(null);
    },
  };
  const send: Provider["send"] = async (call) => {
    call.onDispatch?.();
    return { kind: "stream", events };
  };
  return { ...(await outcomeOf(send, client, 0.05)), ...seen };
}

let laterMs = 0;

it("a disconnect ends the provider's stream within the drain time, and the output so far is charged", async () => {
  const { now } = Date;
  vi.spyOn(Date, "now").mockImplementation(() => now() + laterMs);
  const slow = await streamed(new AbortController(), 200);
  expect(slow).toMatchObject({ reads: 10, cancelled: true, queued: ["settle"] });
  const quick = await streamed(new AbortController(), 0);
  expect(quick).toMatchObject({ reads: 31, cancelled: true, queued: ["settle"] });
  // Nine words were forwarded, and the tenth was in transit.
  expect([9, 10]).toContain(slow.output);
  expect(quick.output).toBe(30);
});

it.each([
  ["before its request is sent is not charged", false, ["void"]],
  ["after its request was sent pays for the input", true, ["settle"]],
] as const)("a client that disconnects %s", async (_, isSent, outcome) => {
  const client = new AbortController();
  const send: Provider["send"] = (call) => {
    if (isSent) call.onDispatch?.();
    client.abort();
    return never;
  };
  expect((await outcomeOf(send, client)).queued).toEqual(outcome);
});

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
  const base = runOf(services);
  const answered = Promise.withResolvers<string>();
  const request = { ...base.request, stream };
  const run = {
    ...base,
    request,
    respond: asResponse((response) => answered.resolve(response.text())),
  };
  providers.set("up", { id: "up", send: send(run) });
  await runPaidRequest(run);
  return { text: await answered.promise, settled: settled as Settlement | null, run };
}

it("a pause ends a running stream with an error event, and charges the delivered output", async () => {
  const cancelled = Promise.withResolvers<null>();
  let calls = 0;
  const send =
    (run: Run): Provider["send"] =>
    async (call) => {
      call.onDispatch?.();
      const word = { choices: [{ index: 0, delta: { content: " word" }, finish_reason: null }] };
      const events: EventStream = {
        next: async (): Promise<readonly StreamEvent[] | null> => {
          calls += 1;
          if (calls <= WORDS) return [{ kind: "chunk", chunk: word }];
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

it("a pause ends a running JSON request, and the provider's work so far is charged", async () => {
  const { text, settled, run } = await halted(silent, false);
  expect(JSON.parse(text)).toMatchObject({ error: { code: "paused", pause_id: "pau_1" } });
  expect(settled?.generation).toMatchObject({ estimated: true, usage: { input: 40 } });
  expect(run.progress.attempts).toEqual([]);
});
