// The bench's upstream, in a process of its own: an OpenAI-compatible server that answers JSON at once and
// streams a word every 2 ms, as many as the request's cap allows, at most 200. Models whose name ends in
// "typical" write a word every 20 ms, in "steady" every 5 ms, in "slow" after 50 ms one every 40 ms. It answers
// OpenAI's Responses and Anthropic's Messages too, at their paths. Started with fork(): it sends its port to
// its parent and ends with it.
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An answer of the bench's upstream in one wire: whole, and as the pieces of a stream. */
type WireAnswer = {
  readonly json: Buffer;
  readonly first: Buffer;
  readonly words: readonly Buffer[];
  readonly last: Buffer;
};

const WORDS = 200;
/** Models leave time between words; without it a gateway reads many as one chunk and looks cheap. */
const PACE_MS = 2;
/** By how a model's name ends. */
const PACES_MS = { typical: 20, steady: 5, slow: 40 } as const;
const SLOW_FIRST_MS = 50;
const TEXT = "A short answer of some twenty words. ".repeat(4);
const PROMPT_TOKENS = 20;
const HEAD = { id: "chatcmpl-bench", created: 1_790_000_000, model: "bench" };

const CHAT = chat(WORDS);
const WIRES: ReadonlyMap<string | undefined, WireAnswer> = new Map([
  ["/v1/responses", responses(WORDS)],
  ["/v1/messages", messages(WORDS)],
]);

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (text: string) => (body += text));
  request.on("end", () => {
    const wire = WIRES.get(request.url) ?? CHAT;
    if (isFor("slow", body)) setTimeout(() => answer(body, response, wire), SLOW_FIRST_MS);
    else answer(body, response, wire);
  });
});
server.keepAliveTimeout = 60_000; // longer than the bench leaves a connection alone
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit(0));
process.on("SIGINT", () => {
  // Ctrl-C in a terminal reaches this process too; the parent decides when to end.
});

function answer(body: string, response: ServerResponse, wire: WireAnswer): void {
  if (/"stream":\s*true/.test(body)) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const shown = wire.words.slice(0, capOf(body));
    const last = wire === CHAT ? lastOfChat(shown.length) : wire.last;
    writePaced(response, { ...wire, words: shown, last }, paceOf(body));
    return;
  }
  const { length } = wire.json;
  response.writeHead(200, { "content-type": "application/json", "content-length": length });
  response.end(wire.json);
}

function writePaced(response: ServerResponse, wire: WireAnswer, paceMs: number): void {
  response.write(wire.first);
  const left = wire.words.values();
  const timer = setInterval(() => {
    const next = left.next();
    if (next.done !== true && !response.destroyed) {
      response.write(next.value);
      return;
    }
    clearInterval(timer);
    response.end(wire.last);
  }, paceMs);
}

function paceOf(body: string): number {
  return Object.entries(PACES_MS).find(([model]) => isFor(model, body))?.[1] ?? PACE_MS;
}

function isFor(model: string, body: string): boolean {
  return new RegExp(`"model":\\s*"[^"]*${model}"`).test(body);
}

function capOf(body: string): number {
  return Number(/"max_(?:completion_|output_)?tokens":\s*(\d+)/.exec(body)?.[1] ?? WORDS);
}

function chat(count: number): WireAnswer {
  const message = { role: "assistant", content: TEXT };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const whole = { ...HEAD, object: "chat.completion", choices, usage: chatUsage(count) };
  return {
    json: Buffer.from(JSON.stringify(whole)),
    first: Buffer.from(chatChunk({ role: "assistant", content: "" })),
    words: wordsOf(count).map((content) => Buffer.from(chatChunk({ content }))),
    last: lastOfChat(count),
  };
}

/** A charge above what was held is logged: usage says what was written. */
function lastOfChat(shown: number): Buffer {
  const usage = chatEvent({ choices: [], usage: chatUsage(shown) });
  return Buffer.from(`${chatChunk({}, "stop")}${usage}data: [DONE]\n\n`);
}

function chatUsage(words: number): object {
  return {
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: words,
    total_tokens: PROMPT_TOKENS + words,
  };
}

function chatChunk(delta: object, finish_reason: string | null = null): string {
  return chatEvent({ choices: [{ index: 0, delta, finish_reason }] });
}

function chatEvent(fields: object): string {
  return `data: ${JSON.stringify({ ...HEAD, object: "chat.completion.chunk", ...fields })}\n\n`;
}

/** An event as Responses and Messages write theirs. */
function typed(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function part(text: string): object {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function item(status: string, text: string | null): object {
  const content = text === null ? [] : [part(text)];
  return { id: "msg_bench", type: "message", status, role: "assistant", content };
}

function responses(count: number): WireAnswer {
  const usage = {
    input_tokens: PROMPT_TOKENS,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: count,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: PROMPT_TOKENS + count,
  };
  const response = (status: string, output: readonly object[]) => ({
    id: "resp_bench",
    object: "response",
    created_at: 1_790_000_000,
    model: "bench",
    status,
    error: null,
    incomplete_details: null,
    output,
    usage: status === "completed" ? usage : null,
  });
  let number = 0;
  const numbered = (type: string, fields: object): string =>
    typed(type, { sequence_number: number++, ...fields });
  const at = { item_id: "msg_bench", output_index: 0, content_index: 0 };
  const begun = { response: response("in_progress", []) };
  const first =
    numbered("response.created", begun) +
    numbered("response.in_progress", begun) +
    numbered("response.output_item.added", { output_index: 0, item: item("in_progress", null) }) +
    numbered("response.content_part.added", { ...at, part: part("") });
  const said = wordsOf(count);
  const words = said.map((delta) =>
    Buffer.from(numbered("response.output_text.delta", { ...at, delta, logprobs: [] })),
  );
  const text = said.join("");
  const done = item("completed", text);
  const last =
    numbered("response.output_text.done", { ...at, text, logprobs: [] }) +
    numbered("response.content_part.done", { ...at, part: part(text) }) +
    numbered("response.output_item.done", { output_index: 0, item: done }) +
    numbered("response.completed", { response: response("completed", [done]) });
  const whole = response("completed", [item("completed", TEXT)]);
  return {
    json: Buffer.from(JSON.stringify(whole)),
    first: Buffer.from(first),
    words,
    last: Buffer.from(last),
  };
}

function usageOf(output: number): object {
  return {
    input_tokens: PROMPT_TOKENS,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: output,
    service_tier: "standard",
  };
}

function messages(count: number): WireAnswer {
  const message = (content: readonly object[], stop_reason: string | null, output: number) => ({
    id: "msg_bench",
    type: "message",
    role: "assistant",
    model: "bench",
    content,
    stop_reason,
    stop_sequence: null,
    usage: usageOf(output),
  });
  const block = { index: 0, content_block: { type: "text", text: "" } };
  const ended = { stop_reason: "end_turn", stop_sequence: null };
  const words = wordsOf(count).map((text) =>
    Buffer.from(typed("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
  );
  return {
    json: Buffer.from(JSON.stringify(message([{ type: "text", text: TEXT }], "end_turn", count))),
    first: Buffer.from(
      typed("message_start", { message: message([], null, 1) }) +
        typed("content_block_start", block),
    ),
    words,
    last: Buffer.from(
      typed("content_block_stop", { index: 0 }) +
        typed("message_delta", { delta: ended, usage: usageOf(count) }) +
        typed("message_stop", {}),
    ),
  };
}

function wordsOf(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `word${i} `);
}
