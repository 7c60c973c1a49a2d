import * as z from "zod/mini";
import { success } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import type { Result } from "../../shared/failure.ts";
import type { JsonObject } from "../core/provider.ts";
import type { Chunk } from "../core/chunk.ts";
import { isOpenRouterClient } from "../core/gateway-fields.ts";
import { toOpenAiUsage } from "../core/openai-usage.ts";
import {
  formatReasoning,
  formatChunkReasoning,
  restoreReasoning,
} from "../core/openrouter-thoughts.ts";
import type { ReasoningFormat } from "../core/openrouter-thoughts.ts";
import { parseBody } from "../../shared/http/parse-body.ts";
import { chooseEffortForShare, REASONING_EFFORTS, parseChatRequest } from "../core/core-request.ts";
import { normalizeChatHistory } from "../core/tool-calls.ts";
import { isObject, listOf } from "../core/json-value.ts";
import type { KnownFields } from "../core/json-value.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  EndpointContext,
  Receipt,
  ResponseHead,
  StreamWriter,
} from "../core/endpoint-adapter.ts";
import {
  splitAtPlaceholder,
  selectUsageChunks,
  TEXT_PLACEHOLDER,
  OpenAiStreamWriter,
} from "./openai-events.ts";
import type { EventTemplate, UsageChunkSelection } from "./openai-events.ts";

/** POST /v1/chat/completions. Core requests have the same format. */
export const chatEndpoint: EndpointAdapter = {
  name: "chat",
  path: "/v1/chat/completions",
  errorFormat: null,
  idPrefix: "chatcmpl-",
  parse,
};

function parse(value: object, at: EndpointContext): Result<ParsedRequest> {
  const withEffortField = withEffort(value);
  const parsed = withEffortField.ok ? parseChatRequest(withEffortField.value) : withEffortField;
  if (!parsed.ok) return parsed;
  const messages = [...restoreReasoning(parsed.value.messages)];
  const body = normalizeChatHistory({ ...parsed.value, messages });
  const usage = selectUsageChunks(at.wantsUsage === true, body);
  const isOpenRouter = isOpenRouterClient(at);
  const format = { usage, isOpenRouter, reasoning: reasoningFormat(value, isOpenRouter) };
  return success({
    request: { kind: "chat", body },
    user: body.user ?? null,
    dropped: unknownNestedFields(value),
    reply:
      body.stream === true
        ? { kind: "stream", stream: (head) => new ChatStream(head, format) }
        : { kind: "json", json: (answer, receipt) => completionResponse(answer, receipt, format) },
    native: null,
  });
}

/**
 * Returns the format of reasoning in the response: `none` if the client excludes it, OpenRouter's
 * if the client sends OpenRouter's fields, otherwise null (ours). A closure in `parse` would keep
 * the body in memory during the stream.
 */
function reasoningFormat(
  value: KnownFields<"reasoning" | "include_reasoning">,
  isOpenRouter: boolean,
): ReasoningFormat | null {
  const { reasoning, include_reasoning: wanted } = value;
  const { exclude }: KnownFields<"exclude"> = isObject(reasoning) ? reasoning : {};
  if (exclude === true || wanted === false) return "none";
  return isOpenRouter || reasoning !== undefined || wanted !== undefined ? "openrouter" : null;
}

type ChatFormat = {
  readonly usage: UsageChunkSelection;
  readonly isOpenRouter: boolean;
  readonly reasoning: ReasoningFormat | null;
};

const openRouterFields = z.object({
  reasoning: z.looseObject({ effort: z.nullish(z.enum(REASONING_EFFORTS)) }),
});

/**
 * Copies the effort in OpenRouter's `reasoning` to `reasoning_effort`, unless the request has both.
 * Returns 400 for an unknown effort.
 */
function withEffort(value: KnownFields<"reasoning" | "reasoning_effort">): Result<object> {
  const { reasoning, reasoning_effort: own = null, ...rest } = value;
  if (!isObject(reasoning)) return success(value);
  const parsed = parseBody(openRouterFields, value);
  if (!parsed.ok) return parsed;
  if (own !== null) return success(value);
  const { effort, enabled, exclude, max_tokens: most } = parsed.value.reasoning;
  const requestedEffort = effort ?? (typeof most === "number" ? effortOfBudget(most, rest) : null);
  const effortName = enabled === false ? "none" : requestedEffort;
  if (effortName !== null) return success({ ...rest, reasoning_effort: effortName });
  return success(typeof exclude === "boolean" ? rest : value);
}

function effortOfBudget(
  budget: number,
  { max_tokens, max_completion_tokens }: KnownFields<"max_tokens" | "max_completion_tokens">,
): string {
  const cap = Number(max_completion_tokens ?? max_tokens ?? Number.NaN);
  return budget <= 0
    ? "none"
    : chooseEffortForShare(cap > 0 ? budget / cap : budget / USUAL_OUTPUT_TOKENS);
}

/** Assumed output cap if a request limits only its reasoning. */
const USUAL_OUTPUT_TOKENS = 16_384;

/**
 * Adds a null `system_fingerprint` only for OpenRouter's SDK, because OpenAI's schema doesn't allow
 * null.
 */
function completionResponse(
  answer: KnownFields<"service_tier" | "system_fingerprint" | "choices">,
  receipt: Receipt,
  { isOpenRouter, reasoning }: ChatFormat,
): JsonObject {
  const { id, created, model, provider, usage, costMicro } = receipt;
  const { service_tier, system_fingerprint: fingerprint, choices } = answer;
  // The fields are listed, because a spread after the first entry is slow.
  return {
    id,
    object: "chat.completion",
    created,
    model,
    service_tier,
    system_fingerprint: isOpenRouter ? (fingerprint ?? null) : fingerprint,
    choices: reasoning === null ? choices : formatReasoning(answer, reasoning),
    provider,
    usage: { ...toOpenAiUsage(usage), ...costFields(costMicro) },
  };
}

/** Writes a stream. Reuses the previous chunk's JSON if only the text differs. */
class ChatStream extends OpenAiStreamWriter implements StreamWriter {
  readonly #reasoning: ReasoningFormat | null;
  #last: Chunk = { choices: [] };
  #template: (EventTemplate & { readonly index: number }) | null = null;

  constructor(head: ResponseHead, { usage, isOpenRouter, reasoning }: ChatFormat) {
    super("chat.completion.chunk", head, usage, isOpenRouter);
    this.#reasoning = reasoning;
  }

  chunk(reported: Chunk): string {
    const chunk =
      this.#reasoning === null ? reported : formatChunkReasoning(reported, this.#reasoning);
    this.#last = chunk;
    this.#template = null;
    const isEmpty = chunk.choices.length === 0 && reported.choices.length > 0;
    return isEmpty ? "" : this.event(chunk);
  }

  text(index: number, json: string): string {
    if (this.#template?.index !== index) this.#template = this.#makeTemplate(index);
    return this.#template.before + json + this.#template.after;
  }

  #makeTemplate(index: number): EventTemplate & { readonly index: number } {
    const choice = {
      index,
      delta: { content: TEXT_PLACEHOLDER },
      logprobs: null,
      finish_reason: null,
    };
    return { index, ...splitAtPlaceholder(this.event({ ...this.#last, choices: [choice] })) };
  }
}

const MESSAGE_FIELDS = fieldSet(
  "role content name refusal reasoning reasoning_content reasoning_details tool_calls function_call tool_call_id",
);
const PART_FIELDS = fieldSet("type text image_url file refusal cache_control");
const CALL_FIELDS = fieldSet("id index type function custom extra_content");
const TOOL_FIELDS = fieldSet("type function custom cache_control");
const CALLED_FIELDS = fieldSet("name arguments input");
const DECLARED_FIELDS = fieldSet("name description parameters strict format");
const NAMES_MAX = 100;

/**
 * Returns the names of unknown fields inside messages and tools, for the header `x-dropped`.
 * Providers never get these fields.
 */
function unknownNestedFields({ messages, tools }: KnownFields<"messages" | "tools">): string[] {
  const found = new Set<string>();
  const addUnknown = (value: unknown, known: ReadonlySet<string>, place: string): void => {
    if (!isObject(value) || found.size >= NAMES_MAX) return;
    for (const [field, inner] of Object.entries(value)) {
      if (!known.has(field) && hasValue(inner)) found.add(`${place}.${field}`);
    }
  };
  for (const message of objectsIn(messages)) {
    const { content, tool_calls: calls }: KnownFields<"content" | "tool_calls"> = message;
    addUnknown(message, MESSAGE_FIELDS, "messages");
    for (const part of objectsIn(content)) addUnknown(part, PART_FIELDS, "messages.content");
    for (const call of objectsIn(calls)) {
      addUnknown(call, CALL_FIELDS, "messages.tool_calls");
      addUnknown(functionOf(call), CALLED_FIELDS, "messages.tool_calls.function");
    }
  }
  for (const tool of objectsIn(tools)) {
    addUnknown(tool, TOOL_FIELDS, "tools");
    addUnknown(functionOf(tool), DECLARED_FIELDS, "tools.function");
  }
  return [...found];
}

function functionOf({ function: called }: KnownFields<"function">): unknown {
  return called;
}

function hasValue(value: unknown): boolean {
  return value !== null && !(Array.isArray(value) && value.length === 0);
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return listOf(value).filter(isObject);
}

function fieldSet(names: string): ReadonlySet<string> {
  return new Set(names.split(" "));
}
