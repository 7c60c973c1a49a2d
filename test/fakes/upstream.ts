// The provider for the bench and the soak. Serves OpenAI's chat, Responses and embeddings and
// Anthropic's Messages, with behaviors by model name. As a program, it sends its port to its parent
// and ends with it.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The behavior of models whose names end in a word. */
type UpstreamBehavior = {
  /** The time before the first byte. */
  readonly firstMs?: number;
  /**
   * The pause between words. Without it, a gateway reads many words as one chunk and its cost looks
   * too low.
   */
  readonly paceMs: number;
  /** Rejects one in `oneIn` requests with the status. */
  readonly refuses?: readonly [status: number, oneIn: number];
  /** Streams end early with a closed connection. */
  readonly breaksOff?: true;
  /** Varies the length of responses, and the time of JSON responses. */
  readonly isVaried?: true;
};
const BEHAVIORS: Readonly<Record<string, UpstreamBehavior>> = {
  typical: { paceMs: 20 },
  steady: { paceMs: 5 },
  slow: { firstMs: 50, paceMs: 40 },
  varied: { paceMs: 6, isVaried: true },
  flaky: { paceMs: 6, isVaried: true, refuses: [500, 3] },
  broken: { paceMs: 6, refuses: [500, 1] },
  busy: { paceMs: 6, refuses: [503, 1] },
  cutting: { paceMs: 6, isVaried: true, breaksOff: true },
};
const USUAL: UpstreamBehavior = { paceMs: 2 };
const WORDS_MAX = 200;
const VARIED_MAX = 60;
const TEXT = "A short answer of some twenty words. ".repeat(4);
const PROMPT_TOKENS = 20;
const REFUSAL = { error: { message: "no", type: "no" } };

/** A response in one format, as JSON and as stream events. */
type ResponseFormat = {
  readonly whole: (words: number) => object;
  readonly first: string;
  readonly word: (text: string) => string;
  readonly last: (words: readonly string[]) => string;
};

/** Starts this file in its own process. Returns its base URL without a trailing slash. */
export async function startUpstream(): Promise<{
  readonly url: string;
  readonly stop: () => unknown;
}> {
  const child = fork(import.meta.filename);
  const [port] = (await Promise.race([once(child, "message"), ended()])) as [number];
  return { url: `http://127.0.0.1:${port}`, stop: () => child.connected && child.disconnect() };

  async function ended(): Promise<never> {
    const [code] = await once(child, "exit");
    throw new Error(`the upstream ended with ${code} before it listened`);
  }
}

/** Returns a model for the variable MODELS, with one price and routes to providers. */
export function modelOf(
  id: string,
  price: { readonly input: number; readonly output?: number },
  routes: readonly (readonly [provider: string, upstreamId: string])[],
): object {
  const isChat = price.output !== undefined;
  return {
    id,
    kind: isChat ? "chat" : "embeddings",
    context: 128_000,
    ...(isChat && { max_output: 4096 }),
    price,
    routes: routes.map(([provider, upstream_id]) => ({ provider, upstream_id })),
  };
}

function serve(): void {
  let turns = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    request.setEncoding("utf8");
    request.on("data", (text: string) => (body += text));
    request.on("end", () => {
      const received = { path: request.url ?? "", body, turn: turns++ };
      const { firstMs } = behaviorIn(body);
      if (firstMs === undefined) answer(received, response);
      else setTimeout(() => answer(received, response), firstMs);
    });
  });
  // long enough that no idle connection closes just when a client reuses it
  server.keepAliveTimeout = 600_000;
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C in a terminal also reaches this process, but the parent decides when it ends.
  process.on("SIGINT", () => undefined);
}

type UpstreamRequest = { readonly path: string; readonly body: string; readonly turn: number };

function answer({ path, body, turn }: UpstreamRequest, response: ServerResponse): void {
  const how = behaviorIn(body);
  const [status, oneIn] = how.refuses ?? [0, 0];
  if (oneIn > 0 && turn % oneIn === 0) return json(response, status, REFUSAL);
  if (path === "/v1/embeddings") return json(response, 200, embeddings(body));
  const format = FORMATS[path] ?? CHAT;
  const cap = Math.min(capOf(body), how.isVaried === true ? VARIED_MAX : WORDS_MAX);
  const count = how.isVaried === true ? Math.min(cap, 5 + ((turn * 13) % VARIED_MAX)) : cap;
  if (/"stream":\s*true/.test(body)) return stream(response, format, { count, ...how });
  const whole = format.whole(how.isVaried === true ? count : WORDS_MAX);
  if (how.isVaried === true) setTimeout(() => json(response, 200, whole), (turn * 7) % 40);
  else json(response, 200, whole);
}

function json(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": bytes.length,
  });
  response.end(bytes);
}

function stream(
  response: ServerResponse,
  format: ResponseFormat,
  { count, paceMs, breaksOff }: UpstreamBehavior & { readonly count: number },
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(format.first);
  const words = Array.from({ length: count }, (_, i) => `word${i} `);
  const remaining = words.slice(0, breaksOff === true ? Math.ceil(count / 2) : count).values();
  const timer = setInterval(() => {
    const next = remaining.next();
    if (next.done !== true && !response.destroyed) {
      response.write(format.word(next.value));
      return;
    }
    clearInterval(timer);
    if (breaksOff === true) response.socket?.resetAndDestroy();
    else response.end(format.last(words));
  }, paceMs);
}

function behaviorIn(body: string): UpstreamBehavior {
  const name = /"model":\s*"([^"]*)"/.exec(body)?.[1] ?? "";
  return Object.entries(BEHAVIORS).find(([end]) => name.endsWith(end))?.[1] ?? USUAL;
}

function capOf(body: string): number {
  return Number(/"max_(?:completion_|output_)?tokens":\s*(\d+)/.exec(body)?.[1] ?? WORDS_MAX);
}

function embeddings(body: string): object {
  const { input } = JSON.parse(body) as { input: unknown };
  const data = (Array.isArray(input) ? input : [input]).map((_, index) => {
    return { object: "embedding", index, embedding: [0.6, 0.8] };
  });
  return { object: "list", data, model: "mock", usage: { prompt_tokens: 9, total_tokens: 9 } };
}

function chatEvent(fields: object): string {
  const head = { id: "chatcmpl-mock", created: 1_790_000_000, model: "mock" };
  return `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...fields })}\n\n`;
}

function chatChunk(delta: object, finish_reason: string | null = null): string {
  return chatEvent({ choices: [{ index: 0, delta, finish_reason }] });
}

function chatUsage(words: number) {
  const total_tokens = PROMPT_TOKENS + words;
  return { prompt_tokens: PROMPT_TOKENS, completion_tokens: words, total_tokens };
}

const CHAT: ResponseFormat = {
  whole: (words) => ({
    id: "chatcmpl-mock",
    created: 1_790_000_000,
    model: "mock",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: TEXT }, finish_reason: "stop" }],
    usage: chatUsage(words),
  }),
  first: chatChunk({ role: "assistant", content: "" }),
  word: (content) => chatChunk({ content }),
  last: ({ length }) =>
    `${chatChunk({}, "stop")}${chatEvent({ choices: [], usage: chatUsage(length) })}data: [DONE]\n\n`,
};

/** Returns an event in the format of Responses and Messages. */
function namedEvent(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

const AT = { item_id: "msg_mock", output_index: 0, content_index: 0 };
const partOf = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
const itemOf = (status: string, ...texts: string[]) => {
  return { id: "msg_mock", type: "message", status, role: "assistant", content: texts.map(partOf) };
};

function responseOf(text: string | null, words = 0): object {
  const usage = {
    input_tokens: PROMPT_TOKENS,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: words,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: PROMPT_TOKENS + words,
  };
  return {
    id: "resp_mock",
    object: "response",
    created_at: 1_790_000_000,
    model: "mock",
    status: text === null ? "in_progress" : "completed",
    error: null,
    incomplete_details: null,
    output: text === null ? [] : [itemOf("completed", text)],
    usage: text === null ? null : usage,
  };
}

const RESPONSES: ResponseFormat = {
  whole: (words) => responseOf(TEXT, words),
  first:
    namedEvent("response.created", { sequence_number: 0, response: responseOf(null) }) +
    namedEvent("response.output_item.added", { output_index: 0, item: itemOf("in_progress") }) +
    namedEvent("response.content_part.added", { ...AT, part: partOf("") }),
  word: (delta) => namedEvent("response.output_text.delta", { ...AT, delta, logprobs: [] }),
  last: (words) => {
    const text = words.join("");
    return (
      namedEvent("response.output_text.done", { ...AT, text, logprobs: [] }) +
      namedEvent("response.content_part.done", { ...AT, part: partOf(text) }) +
      namedEvent("response.output_item.done", {
        output_index: 0,
        item: itemOf("completed", text),
      }) +
      namedEvent("response.completed", { response: responseOf(text, words.length) })
    );
  },
};

function messagesUsage(output_tokens: number) {
  return {
    input_tokens: PROMPT_TOKENS,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens,
    service_tier: "standard",
  };
}

function message(text: string | null, words: number): object {
  return {
    id: "msg_mock",
    type: "message",
    role: "assistant",
    model: "mock",
    content: text === null ? [] : [{ type: "text", text }],
    stop_reason: text === null ? null : "end_turn",
    stop_sequence: null,
    usage: messagesUsage(words),
  };
}

const MESSAGES: ResponseFormat = {
  whole: (words) => message(TEXT, words),
  first:
    namedEvent("message_start", { message: message(null, 1) }) +
    namedEvent("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  word: (text) =>
    namedEvent("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  last: ({ length }) =>
    namedEvent("content_block_stop", { index: 0 }) +
    namedEvent("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: messagesUsage(length),
    }) +
    namedEvent("message_stop", {}),
};

const FORMATS: Readonly<Record<string, ResponseFormat>> = {
  "/v1/responses": RESPONSES,
  "/v1/messages": MESSAGES,
};

if (import.meta.main) serve();
