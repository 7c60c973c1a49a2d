import { expect, vi } from "vitest";
import type { ChatBody } from "../../src/models/core/core-request.ts";
import type { Kind } from "../../src/shared/kinds.ts";
import type {
  ChatCall,
  EmbeddingsCall,
  JsonObject,
  Provider,
  ProviderResult,
  StreamEvent,
} from "../../src/models/core/provider.ts";
import { effort } from "../effort.ts";
import type { WireReply } from "../fixtures/wire-scenario.ts";

/** A request as an adapter sent it. */
export type Asked = {
  readonly url: string;
  readonly headers: Headers;
  readonly text: string;
  readonly json: JsonObject;
  readonly init: RequestInit;
};

export type Call = Partial<Omit<ChatCall, "kind" | "body" | "signal">> & {
  readonly kind?: Kind;
  readonly body?: JsonObject;
};

/** A whole call: chat, not streamed, cap 256, one user message, unless said otherwise. */
export function callOf<Given extends Call>(
  call?: Given,
): Given extends { kind: "embeddings" } ? EmbeddingsCall : ChatCall;
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

/** A body that a test knows to be sound. */
export function chatOf(body: JsonObject): ChatBody {
  return body as ChatBody;
}

/** As `test/vitest.config.ts` sets it. */
const STRIPE_HOST = "127.0.0.1:1";
const RECEIVERS = ".turnpike.dev";

/**
 * Replaces the network: each request gets the next reply, the last one for ever; streams arrive as `cut`
 * parts them. Returns what was asked. Restore with `vi.restoreAllMocks()`.
 */
export function network(
  replies: WireReply | readonly WireReply[],
  cut: (bytes: Uint8Array) => readonly Uint8Array[] = (bytes) => [bytes],
): Asked[] {
  const list = Array.isArray(replies) ? (replies as readonly WireReply[]) : [replies as WireReply];
  const asked: Asked[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init = {}) => {
    const { body } = init;
    const text = typeof body === "string" ? body : await new Response(body ?? null).text();
    const url = input instanceof Request ? input.url : String(input);
    // Late calls of the objects of other files, to Stripe or to receivers, aren't the provider's.
    const { host } = new URL(url);
    if (host === STRIPE_HOST || host.endsWith(RECEIVERS)) throw new TypeError("connection refused");
    asked.push({ url, headers: new Headers(init.headers), text, json: parsed(text), init });
    const reply = list[Math.min(asked.length, list.length) - 1];
    if (reply === undefined) throw new TypeError("connection refused");
    return responseOf(reply, cut);
  });
  return asked;
}

/** What a provider answers to a call when its upstream replies so. */
export async function answerTo(
  provider: Provider,
  call: Call,
  reply: WireReply | readonly WireReply[],
): Promise<{ readonly answer: ProviderResult; readonly asked: Asked[] }> {
  const asked = network(reply);
  const answer = await provider.send(callOf(call));
  return { answer, asked };
}

/** Every event of a stream, its bytes cut as given. */
export async function eventsOf(
  provider: Provider,
  call: Call,
  reply: WireReply,
  cut?: (bytes: Uint8Array) => readonly Uint8Array[],
): Promise<StreamEvent[]> {
  network(reply, cut);
  const answer = await provider.send(callOf({ ...call, stream: true }));
  if (answer.kind !== "stream") throw new Error(`no stream: ${JSON.stringify(answer)}`);
  const events: StreamEvent[] = [];
  for (;;) {
    const batch = await answer.events.next();
    if (batch === null) return events;
    events.push(...batch);
  }
}

/** Bytes one by one, as a slow line brings them. */
export function single(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
}

/** At each how manieth byte a stream is cut: in a long run at every one. */
const EVERY = effort(5, 1);

/** Fails unless a stream gives the same events cut in two at every `EVERY`th byte offset, and byte by byte. */
export async function expectSameHoweverCut(
  provider: Provider,
  call: Call,
  reply: WireReply,
): Promise<void> {
  const whole = unminted(await eventsOf(provider, call, reply));
  const { length } = bytesOf(reply);
  for (let at = 0; at <= length; at += EVERY) {
    const halves = (bytes: Uint8Array) => [bytes.subarray(0, at), bytes.subarray(at)];
    const events = await eventsOf(provider, call, reply, halves);
    if (unminted(events) !== whole) expect(unminted(events), `cut at ${at}`).toBe(whole);
  }
  expect(unminted(await eventsOf(provider, call, reply, single)), "byte by byte").toBe(whole);
}

/** A message as clients put it together from the events of a stream, choice 0. */
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

type Choice = { readonly delta: Delta; readonly finish_reason: string | null };
type Delta = {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly refusal?: string;
  readonly reasoning_details?: readonly JsonObject[];
  readonly tool_calls?: readonly WireTool[];
};

function choiceOf(event: StreamEvent): readonly Choice[] {
  if (event.kind === "text") {
    return [{ delta: { content: JSON.parse(event.json) as string }, finish_reason: null }];
  }
  return event.kind === "chunk" ? (event.chunk.choices as readonly Choice[]) : [];
}

function toolsOf(deltas: readonly WireTool[]) {
  const tools: { id: string; name: string; arguments: string; more: JsonObject }[] = [];
  for (const { index, id = "", type: _type, function: called, ...more } of deltas) {
    const tool = (tools[index] ??= { id, name: called.name ?? "", arguments: "", more });
    tool.arguments += called.arguments ?? "";
  }
  return tools;
}

type WireTool = {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function: { readonly name?: string; readonly arguments?: string };
};

/** Ids that the adapter mints differ from run to run. */
function unminted(events: readonly StreamEvent[]): string {
  return JSON.stringify(events).replaceAll(/"call_[A-Za-z0-9]{24}"/g, '"call_minted"');
}

function responseOf(reply: WireReply, cut: (bytes: Uint8Array) => readonly Uint8Array[]): Response {
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

function bytesOf({ body }: WireReply): Uint8Array {
  return typeof body === "string" ? new TextEncoder().encode(body) : body;
}

function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return {};
  }
}
