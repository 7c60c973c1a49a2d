import { describe, expect, it } from "vitest";
import { success } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import { ENDPOINTS } from "../../src/models/endpoints/endpoints.ts";
import type { ResponseWriter, StreamWriter } from "../../src/models/core/endpoint-adapter.ts";
import { countRunInMetrics } from "../../src/models/requests/observe.route.ts";
import { runPaidRequest } from "../../src/models/requests/paid-path.route.ts";
import type { PaidRequest, Run, RunServices } from "../../src/models/requests/paid-request.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import { MetricCounts } from "../../src/events/metrics/tally.ts";
import type { EventStream, Provider, StreamEvent } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { ENDPOINT_ROWS, streamFlagsOf } from "../fixtures/endpoint-table.ts";
import type { EndpointRow } from "../fixtures/endpoint-table.ts";
import { asResponse, runOf, USAGE, walletOf } from "./run-fixture.ts";

/** Counts the steps after the provider's response, and throws at one of them. */
class Steps {
  readonly #at: number;
  #isArmed = false;
  taken = 0;
  /** The step that threw. */
  broke: string | null = null;

  constructor(at: number) {
    this.#at = at;
  }

  arm(isArmed = true): void {
    this.#isArmed = isArmed;
  }

  take(what: string): void {
    if (!this.#isArmed) return;
    this.taken += 1;
    if (this.taken !== this.#at) return;
    this.broke = what;
    throw new Error(`a bug at ${what}`);
  }

  /** Returns the function with a step before each of its calls. */
  before<A extends unknown[], R>(what: string, run: (...args: A) => R): (...args: A) => R {
    return (...args) => {
      this.take(what);
      return run(...args);
    };
  }

  /** Returns the object with a step at each read of a field. `deep`: also for nested objects. */
  through<T extends object>(what: string, value: T, deep = true): T {
    return new Proxy(value, {
      get: (target, field) => {
        this.take(`${what}.${String(field)}`);
        const found: unknown = Reflect.get(target, field);
        const isObject = typeof found === "object" && found !== null;
        return deep && isObject ? this.through(`${what}.${String(field)}`, found) : found;
      },
    });
  }
}

const CHOICE = { index: 0, finish_reason: null };
const EVENTS: readonly StreamEvent[] = [
  { kind: "chunk", chunk: { choices: [{ ...CHOICE, delta: { role: "assistant", content: "" } }] } },
  { kind: "chunk", chunk: { choices: [{ ...CHOICE, delta: { content: "hel" } }] } },
  { kind: "text", index: 0, json: '"lo"' },
  { kind: "chunk", chunk: { choices: [{ ...CHOICE, delta: {}, finish_reason: "stop" }] } },
  { kind: "usage", usage: USAGE },
  { kind: "end" },
];
const NATIVE_EVENTS: Readonly<Record<string, readonly StreamEvent[]>> = {
  messages: [
    native({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    native(
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } },
      "hi",
    ),
    native({ type: "content_block_stop", index: 0 }),
    native({ type: "message_delta", delta: { stop_reason: "end_turn" } }, "", "end_turn"),
    { kind: "usage", usage: USAGE },
    { kind: "end" },
  ],
  responses: [
    native({ type: "response.output_item.added", output_index: 0, item: { type: "message" } }),
    native({ type: "response.output_text.delta", output_index: 0, delta: "hi" }, "hi"),
    native({
      type: "response.completed",
      response: { status: "completed", output: [{ type: "message", content: [] }] },
    }),
    { kind: "usage", usage: USAGE },
    { kind: "end" },
  ],
};

function native(event: object, text = "", finish: string | null = null): StreamEvent {
  return { kind: "native", event: { ...event }, text: text, finish };
}

const CHAT = {
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
};
const BODIES: Readonly<Record<string, object>> = {
  messages: { content: [{ type: "text", text: "hi" }], stop_reason: "end_turn" },
  responses: {
    status: "completed",
    output: [{ type: "message", content: [{ type: "output_text", text: "hi" }] }],
  },
};

/** An endpoint, and the format of its provider's response. */
type Way = { readonly row: EndpointRow; readonly stream: boolean; readonly isNative: boolean };

function answerOf({ row, stream, isNative }: Way, steps: Steps, upstream: Upstream) {
  // Images arrive in pieces, also in JSON.
  if (stream || row.path.startsWith("/images/")) {
    const events = isNative ? (NATIVE_EVENTS[row.name] ?? []) : EVENTS;
    return { kind: "stream", events: upstream.stream(events, steps) } as const;
  }
  const body = steps.through("body", isNative ? (BODIES[row.name] ?? {}) : CHAT);
  const nativeOutput = isNative ? { native: { text: "hi", finish: "stop" } } : {};
  return {
    kind: "json",
    body: body as Record<string, unknown>,
    usage: USAGE,
    ...nativeOutput,
  } as const;
}

/** A provider's stream, which records whether it was read to its end or canceled. */
class Upstream {
  isLetGo = false;

  stream(events: readonly StreamEvent[], steps: Steps): EventStream {
    const batches = events.map((event) => [steps.through(event.kind, event)]);
    return {
      next: async () => {
        steps.take("next");
        const batch = batches.shift() ?? null;
        if (batch === null) this.isLetGo = true;
        return batch;
      },
      cancel: () => {
        this.isLetGo = true;
      },
    };
  }
}

function watched(reply: ResponseWriter, steps: Steps): ResponseWriter {
  if (reply.kind === "json") {
    return { kind: "json", json: steps.before("json", (...args) => reply.json(...args)) };
  }
  return {
    kind: "stream",
    stream: steps.before("stream", (head) => {
      const writer = reply.stream(head);
      const calls = ["begin", "chunk", "text", "end", "fail"] as const;
      const methods = calls.map((name) => [
        name,
        steps.before(name, writer[name].bind(writer) as (...args: unknown[]) => string),
      ]);
      return { ping: "", ...Object.fromEntries(methods) } as StreamWriter;
    }),
  };
}

/** The result of a run in which one step threw. */
type BrokenRun = {
  readonly steps: Steps;
  readonly costs: readonly number[];
  readonly voids: number;
  readonly isLetGo: boolean;
  readonly response: Response;
  readonly text: string;
  readonly bugs: number;
  readonly absorbed: number;
};

/** Returns a request in which each read and each call of its endpoint is a step. */
function requestOf({ row, stream }: Way, steps: Steps, request: PaidRequest): PaidRequest {
  const endpoint = ENDPOINTS.find(({ name }) => name === row.name);
  const nothing = { header: () => undefined, query: () => undefined };
  const parsed = endpoint?.parse(row.body({ model: "up/m", text: "x", stream }), nothing);
  if (parsed?.ok !== true) throw new Error("the row's body is refused");
  const { reply, native: own } = parsed.value;
  const dropped = ["a\nname", "x".repeat(20_000)];
  const whole: PaidRequest = {
    ...request,
    core: parsed.value.request,
    stream,
    reply: watched(reply, steps),
    cap: row.name === "embeddings" ? null : { whole: 100, least: 64, choices: 1, isAsked: true },
    dropped: dropped,
    native: own === null ? null : { ...own, dropped: dropped, reply: watched(own.reply, steps) },
  };
  return steps.through("request", whole, false);
}

/** Returns the stores of a run, which record what they accepted. */
function storesOf(steps: Steps) {
  const took: { costs: number[]; voids: number } = { costs: [], voids: 0 };
  const stores = {
    wallet: () =>
      walletOf({
        settle: async ({ cost }) => {
          steps.take("settle");
          took.costs.push(cost);
          return success({ kind: "settled", charged: cost, shortfall: micros(0) });
        },
        void: async () => {
          took.voids += 1;
          return success({ kind: "voided" });
        },
      }),
    outbox: () => ({
      enqueue: async (items: readonly OutcomeItem[]) => {
        for (const { kind, cost } of items) if (kind === "settle") took.costs.push(cost);
      },
    }),
  };
  return { took, stores };
}

/** Runs a request to its end with a bug at one step. */
async function broken(way: Way, at: number): Promise<BrokenRun> {
  const { row, stream, isNative } = way;
  const steps = new Steps(at);
  const upstream = new Upstream();
  const answered = Promise.withResolvers<Response>();
  const { took, stores } = storesOf(steps);
  const provider: Provider = {
    id: "up",
    supportsProtocol: () => isNative,
    send: async ({ onDispatch, signal }) => {
      signal.addEventListener("abort", () => {
        upstream.isLetGo = true;
      });
      onDispatch?.();
      await Promise.resolve();
      steps.arm();
      return answerOf(way, steps, upstream);
    },
  };
  const base = runOf({
    ...services,
    ...stores,
    providers: new Map([["up", provider]]),
  });
  const run: Run = {
    ...base,
    services: { ...base.services, now: steps.before("now", () => 7) },
    endpoint: ENDPOINTS.find(({ name }) => name === row.name) ?? base.endpoint,
    request: requestOf(way, steps, base.request),
    respond: asResponse(steps.before("answer", (response: Response) => answered.resolve(response))),
  };
  const read = answered.promise.then(async (response) => ({
    response,
    text: await response.text().catch(() => "broken off"),
  }));
  await runPaidRequest(run).catch(() => undefined);
  steps.arm(false);
  return {
    ...(await read),
    ...took,
    ...countsOf(run),
    steps,
    isLetGo: !stream || upstream.isLetGo,
  };
}

function countsOf(run: Run): Pick<BrokenRun, "bugs" | "absorbed"> {
  const tally = new MetricCounts();
  countRunInMetrics(run, tally);
  const counted = Object.entries(tally.take());
  const count = (name: string): number =>
    counted.find(([series]) => series.startsWith(name))?.[1] ?? 0;
  return { bugs: count("turnpike_bugs_total"), absorbed: count("turnpike_absorbed_total") };
}

const services = {
  region: "eu",
  health: new RouteHealth(),
  keysNeedingCandidates: new Set<string>(),
  numbers: {
    UPSTREAM_HEADERS_MS: 1000,
    UPSTREAM_FIRST_MS: 1000,
    UPSTREAM_IDLE_MS: 60_000,
    KEEP_ALIVE_MS: 15_000,
    READER_STUCK_MS: 30_000,
  } as RunServices["numbers"],
};

const WAYS: readonly (readonly [name: string, way: Way])[] = ENDPOINT_ROWS.flatMap((row) => {
  const own = row.name === "messages" || row.name === "responses" ? [false, true] : [false];
  return streamFlagsOf(row).flatMap((stream) =>
    own.map((isNative) => {
      const name = `${row.name}, ${stream ? "a stream" : "JSON"}${isNative ? ", natively" : ""}`;
      return [name, { row, stream, isNative }] as const;
    }),
  );
});

/** Returns the faults in a run's end, none for a correct one. */
function faultsOf(run: BrokenRun, { row }: Way): string[] {
  const { steps, costs, voids, isLetGo, text, absorbed } = run;
  // A stream that breaks off reports no usage, so the operator absorbs its cost.
  const isHosts = steps.broke === "next" && absorbed === 1;
  const isOnce = isHosts ? voids === 1 && costs.length === 0 : costs.length === 1 && voids === 0;
  const faults = [
    isOnce ? "" : `charged ${costs.join()}, voided ${voids} times`,
    costs.every((cost) => cost > 0) ? "" : "charged nothing",
    isLetGo ? "" : "the upstream is neither read nor cancelled",
    text === "broken off" ? "the answer breaks off without a word" : "",
    problemOfStatus(run, isHosts, row.path.startsWith("/images/")),
  ];
  return faults.filter(Boolean).map((fault) => `${steps.broke}: ${fault}`);
}

/** `isStarted`: the status can be sent before the first image. */
function problemOfStatus(
  { response, text, costs, bugs }: BrokenRun,
  isHosts: boolean,
  isStarted: boolean,
): string {
  const { status, headers } = response;
  if (status !== 500) {
    const expected = isHosts && text.startsWith("{") ? [502, isStarted ? 200 : 502] : [200];
    return expected.includes(status) ? "" : `status ${status}`;
  }
  const says = [headers.get("x-should-retry"), headers.get("x-cost-micro"), bugs].join();
  return says === ["false", costs[0], 1].join() ? "" : `500 says ${says}`;
}

describe.each(WAYS)("a bug between a provider's response and the charge (%s)", (_, way) => {
  it("causes exactly one charge at any step, ends the provider's request, and advises against a retry", async () => {
    const sound = await broken(way, 0);
    expect(faultsOf(sound, way)).toEqual([]);
    expect([sound.response.status, sound.bugs]).toEqual([200, 0]);
    expect(sound.steps.taken).toBeGreaterThan(10);
    const faults: string[] = [];
    for (let at = 1; at <= sound.steps.taken; at++) {
      const run = await broken(way, at);
      expect(run.steps.broke).not.toBeNull();
      faults.push(...faultsOf(run, way));
    }
    expect(faults).toEqual([]);
  });
});
