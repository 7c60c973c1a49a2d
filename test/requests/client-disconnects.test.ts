import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { textFrames } from "../fixtures/bedrock-replies.ts";
import { bindingsFor, PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import { sendToWorker, openOrganization } from "../fixtures/worker-app.ts";
import { BINDING } from "../providers/workers-ai-binding.ts";

/**
 * How long the gateway reads on from a provider after it noticed a disconnect, by the run's own
 * clock: `DRAIN_S`.
 */
const DRAIN_MS = 2000;
/** Nothing waits longer for a provider. */
const NEVER_MS = 10_000;
const WORD_MS = 50;
const STEP_MS = 10;
/** Turns of the event loop until the effect of a run's timer has reached the provider. */
const TURNS = 5;

type EndpointPath = "/v1/chat/completions" | "/v1/messages" | "/v1/responses";
type Case = {
  readonly name: string;
  readonly endpoint: EndpointPath;
  readonly provider: ChatProvider;
  readonly stream: boolean;
};

/** Every protocol with its own code, and those that an endpoint also supports. */
const PROTOCOLS = ["anthropic", "bedrock", "google", "cohere", "workers-ai, its own form"];
const CONVERTED = [
  ...PROTOCOLS,
  "workers-ai, OpenAI's form",
  "openai, Responses",
  "openai",
  "generic",
];
/** Models that don't reason with the effort none, unlike those of the table. */
const STOPPABLE = new Map([
  ["google", "gemini-2.5-flash"],
  ["workers-ai", "@cf/deepseek-ai/deepseek-v4"],
]);
const CASES: readonly Case[] = [
  ...CONVERTED.map((name) => ["/v1/chat/completions", name, name] as const),
  ["/v1/messages", "anthropic", "anthropic, native"] as const,
  ["/v1/responses", "openai, Responses", "openai, Responses, native"] as const,
].flatMap(([endpoint, id, name]) => {
  const found = PROVIDERS.find((one) => one.name === id);
  if (found === undefined) throw new Error(`no provider ${id}`);
  const provider = { ...found, upstreamId: STOPPABLE.get(found.id) ?? found.upstreamId };
  return [true, false].map((stream) => ({ name, endpoint, provider, stream }));
});

/** The observed state of a provider. */
type Upstream = {
  isCalled: boolean;
  /** The output so far, and until its client disconnected. */
  words: number;
  passedOn: number;
  leftMs: number;
  closedMs: number;
};
type Outcome = {
  readonly upstream: Upstream;
  /** Null if the provider's connection stayed open. */
  readonly generation: Generation | null;
};
type Generation = {
  readonly status: string;
  readonly estimated: boolean;
  readonly absorbed_micro: number;
  readonly cost_micro: number;
  readonly lines: readonly { readonly what: string; readonly tokens: number }[];
};

const NOTHING_YET: Upstream = {
  isCalled: false,
  words: 0,
  passedOn: 0,
  leftMs: 0,
  closedMs: Infinity,
};
const outcomes = new Map<Case, Outcome>();

beforeAll(async () => {
  const { key } = await openOrganization({ credits: 1_000_000_000 });
  fakeTimers();
  const upstreams = CASES.map(() => ({ ...NOTHING_YET }));
  answerFor(upstreams);
  const clock = { isOver: false };
  const all = Promise.all(
    CASES.map(async (one, at) => {
      const upstream = upstreams[at];
      if (upstream !== undefined) outcomes.set(one, await outcomeOf(one, at, { key, upstream }));
    }),
  ).finally(() => {
    clock.isOver = true;
  });
  while (!clock.isOver) await pass(upstreams);
  await all;
}, 60_000);
afterAll(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Files of objects, whose timers must not run in another object's context. */
const OF_OBJECTS = /\.do\.ts/;

/**
 * Fakes the timers of requests, but not those of objects that other tests left behind. It uses no spies,
 * because Vitest would restore them to the fake timers after this file.
 */
function fakeTimers(): void {
  const { setTimeout: real, clearTimeout: clearReal } = globalThis;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: Date.now() });
  const { setTimeout: fake, clearTimeout: clearFake } = globalThis;
  const others = new Set<unknown>();
  globalThis.setTimeout = Object.assign((run: () => void, ms?: number) => {
    if (!OF_OBJECTS.test(new Error("set").stack ?? "")) return fake(run, ms);
    const timer = real(run, ms);
    others.add(timer);
    return timer;
  }, fake);
  globalThis.clearTimeout = (timer) => {
    Reflect.apply(others.delete(timer) ? clearReal : clearFake, globalThis, [timer]);
  };
}

/**
 * Advances the run's clock in real time, but faster while only the end of the drain time is
 * pending.
 */
async function pass(upstreams: readonly Upstream[]): Promise<void> {
  const hasLeft = upstreams.every(({ leftMs }) => leftMs !== 0);
  const isDraining = hasLeft && upstreams.some(({ closedMs }) => closedMs === Infinity);
  vi.advanceTimersByTime(isDraining ? STEP_MS : 1);
  await scheduler.wait(isDraining ? 0 : 1);
}

const soon = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 1));

/** Makes every provider start a response that never ends. The prompt identifies the provider. */
function answerFor(upstreams: readonly Upstream[]): void {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init = {}) => {
    const { body, signal } = init;
    const text = typeof body === "string" ? body : await new Response(body ?? null).text();
    const at = Number(/case (\d+)\./.exec(text)?.[1]);
    const [one, upstream] = [CASES[at], upstreams[at]];
    if (one === undefined || upstream === undefined) throw new Error(`of no case: ${text}`);
    upstream.isCalled = true;
    const closed = (): void => {
      upstream.closedMs = Math.min(upstream.closedMs, Date.now());
    };
    signal?.addEventListener("abort", closed);
    const { cut } = one.provider.failures;
    return one.stream
      ? new Response(wordsForEver(cut.body, upstream, closed), { headers: { ...cut.headers } })
      : new Response(halfOfOne(closed), { headers: { "content-type": "application/json" } });
  });
}

/** Returns a stream that repeats its text at intervals. */
function wordsForEver(cut: string | Uint8Array, upstream: Upstream, cancel: () => void) {
  const { opening, word } = beginningOf(cut);
  const parts = [opening];
  const pull = async (controller: ReadableByteStreamController): Promise<void> => {
    const part = parts.shift();
    if (part === undefined) await new Promise((resolve) => void setTimeout(resolve, WORD_MS));
    upstream.words += 1;
    controller.enqueue((part ?? word).slice());
  };
  return new ReadableStream({ type: "bytes", pull, cancel });
}

/** Returns a stream up to its last text, and that text. */
function beginningOf(cut: string | Uint8Array): { opening: Uint8Array; word: Uint8Array } {
  if (typeof cut !== "string") return { opening: cut, word: textFrames(0, [" word"])[0] ?? cut };
  const events = cut.split(/(?<=\n\n|\r\n\r\n)/);
  const last = events.findLastIndex((event) => /"(?:Hel|lo)"/.test(event));
  const encoder = new TextEncoder();
  const opening = encoder.encode(events.slice(0, last + 1).join(""));
  return { opening, word: encoder.encode(events[last]) };
}

/** Returns the start of a complete JSON response. */
function halfOfOne(cancel: () => void) {
  return new ReadableStream({ type: "bytes", start: beginJson, pull: () => NEVER, cancel });
}

function beginJson(controller: ReadableByteStreamController): void {
  controller.enqueue(new TextEncoder().encode("{"));
}

const NEVER = new Promise<void>(() => undefined);

/** Returns the result of a request whose client disconnects as soon as the response has started. */
async function outcomeOf(
  one: Case,
  at: number,
  { key, upstream }: { readonly key: string; readonly upstream: Upstream },
): Promise<Outcome> {
  const client = new AbortController();
  const context = createExecutionContext();
  const answering = app.fetch(requestOf(one, at, key, client.signal), bindingsOf(one), context);
  if (one.stream) {
    const response = await answering;
    expect(response.status).toBe(200);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    while (upstream.words < 4) await reader.read();
    await reader.cancel();
  } else {
    while (!upstream.isCalled) await soon();
    client.abort();
  }
  upstream.leftMs = Date.now();
  upstream.passedOn = upstream.words;
  const isOpen = (): boolean => upstream.closedMs === Infinity;
  while (isOpen() && Date.now() - upstream.leftMs < NEVER_MS) await soon();
  if (isOpen()) return { upstream, generation: null };
  const { headers } = await answering;
  await waitOnExecutionContext(context);
  const generation = await sendToWorker(`/v1/generations/${headers.get("x-request-id")}`, { key });
  return { upstream, generation: await generation.json<Generation>() };
}

function requestOf(
  { endpoint, stream }: Case,
  at: number,
  key: string,
  signal: AbortSignal,
): Request {
  const prompt = `This is case ${at}.`;
  const fields =
    endpoint === "/v1/responses"
      ? { input: prompt, max_output_tokens: 4000, reasoning: { effort: "none" } }
      : {
          messages: [{ role: "user", content: prompt }],
          max_tokens: 4000,
          ...thoughtless(endpoint),
        };
  return new Request(`https://eu.test${endpoint}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "test/chat", stream, ...fields }),
    signal,
  });
}

/** Disables thinking, because the gateway reads on for longer from a model that may think. */
function thoughtless(endpoint: EndpointPath) {
  if (endpoint === "/v1/messages") return { thinking: { type: "disabled" } };
  return { reasoning_effort: "none" };
}

function bindingsOf({ provider }: Case) {
  const bindings = { ...env, ...bindingsFor([provider]) };
  return provider.id === "workers-ai" ? { ...bindings, AI: BINDING } : bindings;
}

const tokensOf = (generation: Generation | null, what: string): number =>
  generation?.lines.find((line) => line.what === what)?.tokens ?? 0;

describe.each(CASES.map((one) => [one.name, one.stream ? "a stream" : "JSON", one] as const))(
  "a client that disconnects (%s, %s)",
  (_, __, one) => {
    const outcome = (): Outcome => {
      const found = outcomes.get(one);
      if (found === undefined) throw new Error("there is no outcome");
      return found;
    };

    it("causes the gateway to end the provider's JSON request within two seconds, or its stream at the next text", () => {
      const { words, passedOn, leftMs, closedMs } = outcome().upstream;
      const openMs = closedMs - leftMs;
      expect(openMs).toBeGreaterThanOrEqual(0);
      const seenMs = one.stream ? WORD_MS : 0;
      expect(openMs).toBeLessThanOrEqual(seenMs + DRAIN_MS + TURNS * STEP_MS);
      expect(words).toBeGreaterThanOrEqual(one.stream ? passedOn + 10 : 0);
    });

    it("pays for the estimated input and output until the provider's stream is closed", () => {
      const { generation, upstream } = outcome();
      expect(generation).toMatchObject({ status: "settled", estimated: true, absorbed_micro: 0 });
      expect(tokensOf(generation, "input")).toBeGreaterThan(0);
      const output = tokensOf(generation, "output");
      expect(output).toBeGreaterThanOrEqual(one.stream ? upstream.words / 2 : 100);
      expect(output).toBeLessThanOrEqual(one.stream ? upstream.words + 2 : 500);
    });
  },
);
