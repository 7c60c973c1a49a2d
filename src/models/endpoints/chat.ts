import { success } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import type { Result } from "../../shared/failure.ts";
import type { JsonObject } from "../core/provider.ts";
import type { Chunk } from "../core/chunk.ts";
import { openAiUsage } from "../core/openai-usage.ts";
import { withAcceptedHistory } from "../core/accepted-history.ts";
import { parseChatRequest } from "../core/core-request.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  EndpointContext,
  Receipt,
  ResponseHead,
  StreamWriter,
} from "../core/endpoint-adapter.ts";
import { unknownInside } from "./chat-losses.ts";
import { splitAtMark, MARK, OpenAiStream } from "./openai-events.ts";
import type { EventTemplate } from "./openai-events.ts";

/** POST /v1/chat/completions: the core's own format, JSON and SSE. */
export const chatEndpoint: EndpointAdapter = {
  name: "chat",
  path: "/v1/chat/completions",
  dialect: null,
  idPrefix: "chatcmpl-",
  parse,
};

function parse(value: object, { wantsUsage = false }: EndpointContext): Result<ParsedRequest> {
  const parsed = parseChatRequest(value);
  if (!parsed.ok) return parsed;
  const body = withAcceptedHistory(parsed.value);
  const includeUsage = wantsUsage || body.stream_options?.include_usage === true;
  return success({
    request: { kind: "chat", body },
    user: body.user ?? null,
    dropped: unknownInside(value),
    reply:
      body.stream === true
        ? { kind: "stream", stream: (head) => new ChatStream(head, includeUsage) }
        : { kind: "json", json: completion },
    native: null,
  });
}

function completion(answer: JsonObject, receipt: Receipt): JsonObject {
  const { id, created, model, usage, costMicro } = receipt;
  return {
    ...answer,
    id,
    object: "chat.completion",
    created,
    model,
    usage: { ...openAiUsage(usage), ...costFields(costMicro) },
  };
}

/** A chunk that differs only in its text reuses the last one's JSON. */
class ChatStream extends OpenAiStream implements StreamWriter {
  #last: Chunk = { choices: [] };
  #around: (EventTemplate & { readonly index: number }) | null = null;

  constructor(head: ResponseHead, includeUsage: boolean) {
    super("chat.completion.chunk", head, includeUsage);
  }

  chunk(chunk: Chunk): string {
    this.#last = chunk;
    this.#around = null;
    return this.event(chunk);
  }

  text(index: number, json: string): string {
    if (this.#around?.index !== index) this.#around = this.#surroundings(index);
    return this.#around.before + json + this.#around.after;
  }

  #surroundings(index: number): EventTemplate & { readonly index: number } {
    const choice = { index, delta: { content: MARK }, logprobs: null, finish_reason: null };
    return { index, ...splitAtMark(this.event({ ...this.#last, choices: [choice] })) };
  }
}
