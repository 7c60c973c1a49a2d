/** An answer of the bench's upstream in one wire: whole, and as the pieces of a stream. */
export type WireAnswer = {
  readonly json: Buffer;
  readonly first: Buffer;
  readonly words: readonly Buffer[];
  readonly last: Buffer;
};

const TEXT = "A short answer of some twenty words. ".repeat(4);
const PROMPT_TOKENS = 20;

/** The same answers in OpenAI's Responses and in Anthropic's Messages, by the path that is asked. */
export function nativeAnswers(count: number): ReadonlyMap<string, WireAnswer> {
  return new Map([
    ["/v1/responses", responses(count)],
    ["/v1/messages", messages(count)],
  ]);
}

function event(type: string, fields: object): string {
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
    event(type, { sequence_number: number++, ...fields });
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
    Buffer.from(event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
  );
  return {
    json: Buffer.from(JSON.stringify(message([{ type: "text", text: TEXT }], "end_turn", count))),
    first: Buffer.from(
      event("message_start", { message: message([], null, 1) }) +
        event("content_block_start", block),
    ),
    words,
    last: Buffer.from(
      event("content_block_stop", { index: 0 }) +
        event("message_delta", { delta: ended, usage: usageOf(count) }) +
        event("message_stop", {}),
    ),
  };
}

function wordsOf(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `word${i} `);
}
