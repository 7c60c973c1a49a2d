import { success } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import type { Result } from "../../shared/failure.ts";
import type { JsonObject } from "../core/provider.ts";
import type { Chunk } from "../core/chunk.ts";
import { isOpenRouterClient } from "../core/gateway-fields.ts";
import { openAiUsage } from "../core/openai-usage.ts";
import { withAcceptedHistory } from "../core/accepted-history.ts";
import { isObject } from "../core/json-value.ts";
import type { KnownFields } from "../core/json-value.ts";
import { REASONING_EFFORTS, parseChatRequest } from "../core/core-request.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  EndpointContext,
  Receipt,
  ResponseHead,
  StreamWriter,
} from "../core/endpoint-adapter.ts";
import { unknownInside } from "./chat-losses.ts";
import {
  splitAtPlaceholder,
  usageChunks,
  TEXT_PLACEHOLDER,
  OpenAiStream,
} from "./openai-events.ts";
import type { EventTemplate, UsageChunks } from "./openai-events.ts";

/** POST /v1/chat/completions in OpenAI's format, which is also the format of core requests. */
export const chatEndpoint: EndpointAdapter = {
  name: "chat",
  path: "/v1/chat/completions",
  dialect: null,
  idPrefix: "chatcmpl-",
  parse,
};

function parse(value: object, at: EndpointContext): Result<ParsedRequest> {
  const parsed = parseChatRequest(withEffort(value));
  if (!parsed.ok) return parsed;
  const body = withAcceptedHistory(parsed.value);
  const usage = usageChunks(at.wantsUsage === true, body);
  return success({
    request: { kind: "chat", body },
    user: body.user ?? null,
    dropped: unknownInside(value),
    reply:
      body.stream === true
        ? { kind: "stream", stream: (head) => new ChatStream(head, usage) }
        : { kind: "json", json: isOpenRouterClient(at) ? openRouterCompletion : completion },
    native: null,
  });
}

const EFFORTS: ReadonlySet<unknown> = new Set(REASONING_EFFORTS);

/**
 * Copies the effort in OpenRouter's `reasoning` to `reasoning_effort`, unless the request has both.
 */
function withEffort(value: KnownFields<"reasoning" | "reasoning_effort">): object {
  const { reasoning, reasoning_effort: own = null, ...rest } = value;
  if (!isObject(reasoning) || own !== null) return value;
  const { effort, enabled }: KnownFields<"effort" | "enabled"> = reasoning;
  const named = enabled === false ? "none" : (effort ?? null);
  return EFFORTS.has(named) ? { ...rest, reasoning_effort: named } : value;
}

function completion(answer: JsonObject, receipt: Receipt): JsonObject {
  const { id, created, model, provider, usage, costMicro } = receipt;
  return {
    ...answer,
    id,
    object: "chat.completion",
    created,
    model,
    provider,
    usage: { ...openAiUsage(usage), ...costFields(costMicro) },
  };
}

/** Adds `system_fingerprint`. OpenRouter's SDK requires it, and it can be null only there. */
function openRouterCompletion(answer: JsonObject, receipt: Receipt): JsonObject {
  return { system_fingerprint: null, ...completion(answer, receipt) };
}

/** Writes a stream. A chunk that differs only in its text reuses the JSON of the last one. */
class ChatStream extends OpenAiStream implements StreamWriter {
  #last: Chunk = { choices: [] };
  #around: (EventTemplate & { readonly index: number }) | null = null;

  constructor(head: ResponseHead, usage: UsageChunks) {
    super("chat.completion.chunk", head, usage);
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
    const choice = {
      index,
      delta: { content: TEXT_PLACEHOLDER },
      logprobs: null,
      finish_reason: null,
    };
    return { index, ...splitAtPlaceholder(this.event({ ...this.#last, choices: [choice] })) };
  }
}
