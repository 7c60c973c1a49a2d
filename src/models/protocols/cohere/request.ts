import type {
  ConversationPart,
  ConversationTurn,
  OutputFormat,
  RequestedTools,
} from "../../core/conversation.ts";
import type { ParsedImageUrl } from "../../core/data-url.ts";
import { COHERE_INPUT_TYPES } from "../../core/embeddings.ts";
import { reportDroppedFields } from "../../core/dropped-fields.ts";
import type { SentFieldPaths } from "../../core/dropped-fields.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { parsePrompt, toOpenAiTool } from "../../core/conversation.ts";
import type { ChatCall, EmbeddingsCall, JsonObject, ProviderFailure } from "../../core/provider.ts";

/** Returns the body of Cohere's POST /v2/chat. */
export function toCohereChatRequest(call: ChatCall): JsonObject | ProviderFailure {
  const { body, cap, stream, upstreamId } = call;
  const prompt = parsePrompt(body);
  if ("kind" in prompt) return prompt;
  const { conversation, tools, format } = prompt;
  const system = conversation.system.map((content) => ({ role: "system", content }));
  const request = {
    model: upstreamId,
    messages: [...system, ...conversation.turns.flatMap(messagesOf)],
    stream,
    max_tokens: cap,
    ...samplingFields(body),
    ...toolFields(tools),
    ...responseFormat(body, format),
    ...thinkingField(body.reasoning_effort, upstreamId, cap),
  };
  reportDroppedFields(call, request, SENT_FIELD_PATHS);
  return request;
}

const SENT_FIELD_PATHS: SentFieldPaths = {
  frequency_penalty: ["frequency_penalty"],
  presence_penalty: ["presence_penalty"],
  reasoning_effort: ["thinking"],
  seed: ["seed"],
  stop: ["stop_sequences"],
  temperature: ["temperature"],
  top_k: ["k"],
  top_p: ["p"],
};

function messagesOf({ role, parts }: ConversationTurn): JsonObject[] {
  return role === "user" ? userMessages(parts) : assistantMessages(parts);
}

function userMessages(parts: readonly ConversationPart[]): JsonObject[] {
  const messages: JsonObject[] = [];
  const content: JsonObject[] = [];
  for (const part of parts) {
    if (part.kind === "result") {
      messages.push({ role: "tool", tool_call_id: part.id, content: part.text });
    } else if (part.kind === "text") content.push({ type: "text", text: part.text });
    else if (part.kind === "image") {
      content.push({ type: "image_url", image_url: { url: urlOf(part.image) } });
    }
  }
  const first = parts.find(({ kind }) => kind === "text" || kind === "image");
  const singleText = content.length === 1 && first?.kind === "text" ? first.text : content;
  return content.length === 0 ? messages : [...messages, { role: "user", content: singleText }];
}

/** Text next to tool calls becomes `tool_plan`, because Cohere allows no content next to calls. */
function assistantMessages(parts: readonly ConversationPart[]): JsonObject[] {
  const text = parts.map((part) => (part.kind === "text" ? part.text : "")).filter(Boolean);
  const calls = parts.flatMap((part) =>
    part.kind === "call"
      ? [
          {
            id: part.id,
            type: "function",
            function: { name: part.name, arguments: JSON.stringify(part.input) },
          },
        ]
      : [],
  );
  const joinedText = text.join("\n");
  if (calls.length === 0) {
    return joinedText === "" ? [] : [{ role: "assistant", content: joinedText }];
  }
  return [
    { role: "assistant", tool_calls: calls, ...(joinedText !== "" && { tool_plan: joinedText }) },
  ];
}

function urlOf(image: ParsedImageUrl): string {
  return "url" in image ? image.url : `data:${image.mediaType};base64,${image.base64}`;
}

const SAMPLING_LIMITS = [
  ["temperature", "temperature", 0, 2],
  ["top_p", "p", 0.01, 0.99],
  ["top_k", "k", 0, 500],
  ["frequency_penalty", "frequency_penalty", 0, 1],
  ["presence_penalty", "presence_penalty", 0, 1],
] as const;

function samplingFields(body: ChatBody): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const [openAiName, cohereName, min, max] of SAMPLING_LIMITS) {
    const value = body[openAiName];
    if (value !== undefined) fields[cohereName] = Math.min(Math.max(value, min), max);
  }
  const { seed, stop } = body;
  return {
    ...fields,
    ...(seed !== undefined && seed >= 0 && { seed }),
    ...(stop !== undefined && { stop_sequences: [stop].flat() }),
  };
}

function toolFields({ list, choice }: RequestedTools): JsonObject {
  const offeredTools =
    typeof choice === "object" ? list.filter(({ name }) => name === choice.name) : list;
  if (offeredTools.length === 0) return {};
  return {
    tools: offeredTools.map((tool) => toOpenAiTool(tool, false)),
    ...(offeredTools.every((tool) => tool.strict) && { strict_tools: true }),
    ...(choice !== "auto" && { tool_choice: choice === "none" ? "NONE" : "REQUIRED" }),
  };
}

function responseFormat(
  { response_format: requestedFormat }: ChatBody,
  format: OutputFormat,
): JsonObject {
  if (format === "text") return {};
  const schema =
    requestedFormat?.type === "json_schema" ? requestedFormat.json_schema.schema : undefined;
  return {
    response_format: { type: "json_object", ...(schema !== undefined && { json_schema: schema }) },
  };
}

const THINKING_SHARE: Readonly<Record<string, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.9,
  max: 0.9,
};

type Effort = ChatBody["reasoning_effort"];

function thinkingField(effort: Effort, model: string, cap: number): JsonObject {
  if (effort === undefined || !/reasoning/.test(model)) return {};
  const capShare = THINKING_SHARE[effort];
  if (capShare === undefined) return { thinking: { type: "disabled" } };
  return { thinking: { type: "enabled", token_budget: Math.max(1, Math.floor(cap * capShare)) } };
}

/**
 * Returns the body of POST /v2/embed. Clients can set `input_type`, which OpenAI's format lacks.
 */
export function toCohereEmbedRequest({
  body,
  upstreamId,
}: EmbeddingsCall): JsonObject | ProviderFailure {
  const { input_type: purpose = "search_document", dimensions } = body;
  if (!COHERE_INPUT_TYPES.has(purpose)) {
    const message = `'input_type' must be one of ${[...COHERE_INPUT_TYPES].join(", ")}.`;
    return { kind: "refused", reason: "input_type", message, param: "input_type" };
  }
  return {
    model: upstreamId,
    texts: [body.input].flat(),
    input_type: purpose,
    embedding_types: ["float"],
    ...(dimensions !== undefined && { output_dimension: dimensions }),
    truncate: "NONE",
  };
}
