import { expect, vi } from "vitest";
import type { ChatBody } from "../../src/models/core/core-request.ts";
import type { CallKind } from "../../src/shared/kinds.ts";
import type {
  ChatCall,
  EmbeddingsCall,
  JsonObject,
  Provider,
  ProviderResult,
  StreamEvent,
} from "../../src/models/core/provider.ts";
import { effortFor } from "../effort.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";

/** A request as an adapter sent it. */
export type SentRequest = {
  readonly url: string;
  readonly headers: Headers;
  readonly text: string;
  readonly json: JsonObject;
  readonly init: RequestInit;
};

export type Call = Partial<Omit<ChatCall, "kind" | "body" | "signal">> & {
  readonly kind?: CallKind;
  readonly body?: JsonObject;
};

/**
 * Returns a complete call: by default a chat without streaming, with cap 256 and one user message.
 */
export function callOf<Options extends Call>(
  call?: Options,
): Options extends { kind: "embeddings" } ? EmbeddingsCall : ChatCall;
export function callOf(call: Call = {}): unknown {
  return {
    kind: "chat",
    upstreamId: "upstream-model",
    stream: false,
    cap: 256,
    ...call,
    body: { messages: [{ role: "user", content: "Hi" }], ...call.body },
    signal: new AbortController().signal,
  };
}

export function chatOf(body: JsonObject): ChatBody {
  return body as ChatBody;
}

/** The value in `test/vitest.config.ts`. */
const STRIPE_HOST = "127.0.0.1:1";
const RECEIVERS = ".turnpike.dev";

/**
 * Replaces the network. Each request gets the next response, and the last one applies to all later
 * requests. `cut` splits streams. Returns the requests. Restore with `vi.restoreAllMocks()`.
 */
export function mockNetwork(
  replies: RawReply | readonly RawReply[],
  cut: (bytes: Uint8Array) => readonly Uint8Array[] = (bytes) => [bytes],
): SentRequest[] {
  const list = Array.isArray(replies) ? (replies as readonly RawReply[]) : [replies as RawReply];
  const requests: SentRequest[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init = {}) => {
    const { body } = init;
    const text = typeof body === "string" ? body : await new Response(body ?? null).text();
    const url = input instanceof Request ? input.url : String(input);
    // Late calls of other files' objects to Stripe or to receivers don't belong to the provider.
    const { host } = new URL(url);
    const headers = new Headers(init.headers);
    const isLate = host === STRIPE_HOST || host.endsWith(RECEIVERS) || headers.has("webhook-id");
    if (isLate) throw new TypeError("connection refused");
    requests.push({ url, headers, text, json: parsed(text), init });
    const reply = list[Math.min(requests.length, list.length) - 1];
    if (reply === undefined) throw new TypeError("connection refused");
    return responseOf(reply, cut);
  });
  return requests;
}

/** Returns the adapter's result for a provider's response. */
export async function answerTo(
  provider: Provider,
  call: Call,
  reply: RawReply | readonly RawReply[],
): Promise<{ readonly answer: ProviderResult; readonly requests: SentRequest[] }> {
  const requests = mockNetwork(reply);
  const answer = await provider.send(callOf(call));
  return { answer, requests };
}

/** Returns every event of a stream with its bytes split by `cut`. */
export async function eventsOf(
  provider: Provider,
  call: Call,
  reply: RawReply,
  cut?: (bytes: Uint8Array) => readonly Uint8Array[],
): Promise<StreamEvent[]> {
  mockNetwork(reply, cut);
  const answer = await provider.send(callOf({ ...call, stream: true }));
  if (answer.kind !== "stream") throw new Error(`no stream: ${JSON.stringify(answer)}`);
  const events: StreamEvent[] = [];
  for (;;) {
    const batch = await answer.events.next();
    if (batch === null) return events;
    events.push(...batch);
  }
}

/** Splits bytes one by one, as a slow connection does. */
export function splitBytes(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
}

/** A stream is split at every n-th byte. A long run, also in CI, splits it at every byte. */
const EVERY = effortFor(29, 1);

/**
 * Checks that a stream results in the same events if split in two at every `EVERY`th byte, and byte
 * by byte.
 */
export async function expectSameHoweverCut(
  provider: Provider,
  call: Call,
  reply: RawReply,
): Promise<void> {
  const whole = withoutIds(await eventsOf(provider, call, reply));
  const { length } = bytesOf(reply);
  for (let at = 0; at <= length; at += EVERY) {
    const halves = (bytes: Uint8Array) => [bytes.subarray(0, at), bytes.subarray(at)];
    const events = await eventsOf(provider, call, reply, halves);
    if (withoutIds(events) !== whole) expect(withoutIds(events), `cut at ${at}`).toBe(whole);
  }
  expect(withoutIds(await eventsOf(provider, call, reply, splitBytes)), "byte by byte").toBe(whole);
}

/** Joins the events of a stream to the message of choice 0, as clients do. */
export function messageOf(events: readonly StreamEvent[]) {
  const choices = events.flatMap(choiceOf);
  const deltas = choices.map((choice) => choice.delta);
  return {
    content: deltas.map((delta) => delta.content ?? "").join(""),
    reasoning: deltas.map((delta) => delta.reasoning_content ?? "").join(""),
    refusal: deltas.map((delta) => delta.refusal ?? "").join(""),
    details: deltas.flatMap((delta) => delta.reasoning_details ?? []),
    tools: toolsOf(deltas.flatMap((delta) => delta.tool_calls ?? [])),
    finish: choices.findLast((choice) => choice.finish_reason !== null)?.finish_reason ?? null,
    usage: events.findLast((event) => event.kind === "usage"),
  };
}

/** Returns the message of a JSON response in the format of `messageOf`. */
export function wholeMessageOf(answer: ProviderResult) {
  if (answer.kind !== "json") throw new Error(`no answer: ${JSON.stringify(answer)}`);
  const [choice] = answer.body["choices"] as [{ message: Delta; finish_reason: string }];
  const { message } = choice;
  return {
    content: message.content ?? "",
    reasoning: message.reasoning_content ?? "",
    refusal: message.refusal ?? "",
    details: message.reasoning_details ?? [],
    tools: toolsOf((message.tool_calls ?? []).map((call, index) => Object.assign(call, { index }))),
    finish: choice.finish_reason,
    usage: { kind: "usage", usage: answer.usage } as const,
  };
}

type Choice = { readonly delta: Delta; readonly finish_reason: string | null };
type Delta = {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly refusal?: string | null;
  readonly reasoning_details?: readonly JsonObject[];
  readonly tool_calls?: readonly ToolCallDelta[];
};

function choiceOf(event: StreamEvent): readonly Choice[] {
  if (event.kind === "text") {
    return [{ delta: { content: JSON.parse(event.json) as string }, finish_reason: null }];
  }
  return event.kind === "chunk" ? (event.chunk.choices as readonly Choice[]) : [];
}

function toolsOf(deltas: readonly ToolCallDelta[]) {
  const tools: { id: string; name: string; arguments: string; more: JsonObject }[] = [];
  for (const { index, id = "", type: _type, function: called, ...more } of deltas) {
    const tool = (tools[index] ??= { id, name: called.name ?? "", arguments: "", more });
    tool.arguments += called.arguments ?? "";
  }
  return tools;
}

type ToolCallDelta = {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function: { readonly name?: string; readonly arguments?: string };
};

/** Removes IDs that the adapter generates, which differ between runs. */
function withoutIds(events: readonly StreamEvent[]): string {
  return JSON.stringify(events).replaceAll(/"call_[A-Za-z0-9]{24}"/g, '"call_minted"');
}

function responseOf(reply: RawReply, cut: (bytes: Uint8Array) => readonly Uint8Array[]): Response {
  const parts = cut(bytesOf(reply)).filter((part) => part.length > 0);
  const body = new ReadableStream({
    type: "bytes",
    pull(controller) {
      const part = parts.shift();
      if (part !== undefined) return controller.enqueue(part.slice());
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
  return new Response(body, { status: reply.status ?? 200, headers: { ...reply.headers } });
}

function bytesOf({ body }: RawReply): Uint8Array {
  return typeof body === "string" ? new TextEncoder().encode(body) : body;
}

function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return {};
  }
}
