import { pickFields, textOf } from "../../core/json-value.ts";
import { isSerializedThoughts, parseThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import type { JsonObject } from "../../core/provider.ts";
import { claudeThoughtToDetail } from "../../claude/thoughts.ts";
import { chooseEffortForShare } from "../../core/core-request.ts";
import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import type {
  MessagesInputBlock,
  CountTokensBody,
  MessagesMessage,
  MessagesBody,
  VisibleContentBlock,
  TextBlock,
} from "./client-request.ts";
import { ConversionLosses, toChatToolFields } from "./client-tools.ts";

type RecalledThoughts = Pick<StoredThoughts, "details"> & {
  /** The text of other providers' thoughts. Some hosts require this text between tool calls. */
  readonly reasoning: string;
  readonly extras: ReadonlyMap<string, JsonObject>;
};

/**
 * Reads the thoughts that a client sends back. Claude's thoughts are kept unchanged. Other
 * providers' thoughts are encoded in `signature` and never sent to Claude.
 */
export function readReturnedThoughts(blocks: readonly JsonObject[]): RecalledThoughts {
  const details: JsonObject[] = [];
  const extras = new Map<string, JsonObject>();
  let reasoning = "";
  for (const block of blocks) {
    const [type, data] = [textOf(block["type"]), textOf(block["data"])];
    const [thinking, signature] = [textOf(block["thinking"]), textOf(block["signature"])];
    if (type === "redacted_thinking" || !isSerializedThoughts(signature)) {
      const detail = claudeThoughtToDetail({ type, data, thinking, signature });
      if (detail !== null) details.push(detail);
      continue;
    }
    reasoning += thinking;
    // The result is null if the client altered the signature.
    const stored = parseThoughts(signature);
    details.push(...(stored?.details ?? []));
    for (const [id, extra] of Object.entries(stored?.extras ?? {})) extras.set(id, extra);
  }
  return { details, reasoning, extras };
}

type ConvertedRequest = { readonly body: JsonObject; readonly losses: ConversionLosses };

const ATTRIBUTION_PREFIX = "x-anthropic-billing-header:";
const STOP_SEQUENCES_MAX = 4;

type Content = string | readonly JsonObject[];
type CoreMessage = { readonly role: string; readonly content?: Content } & JsonObject;

/**
 * Converts a Messages request to a chat request. Drops and reports tuning fields that chat requests
 * lack. Other fields without an equivalent require a native route.
 */
export function convertMessagesToChatBody(body: MessagesBody): Result<ConvertedRequest> {
  const losses = new ConversionLosses(body);
  if (body.max_tokens === 0) {
    losses.recordMissingFeature(
      "max_tokens",
      "must be at least 1, because this model has no cache to warm with 0",
    );
  }
  const prompt = toChatPromptFields(body, losses);
  if (!prompt.ok) return prompt;
  for (const field of ["top_k", "context_management"] as const) {
    if (body[field] !== undefined && body[field] !== null) losses.dropped.add(field);
  }
  const stops = (body.stop_sequences ?? []).filter((stop) => stop.trim() !== "");
  if (stops.length > STOP_SEQUENCES_MAX) losses.dropped.add("stop_sequences");
  return success({
    losses,
    body: {
      model: body.model,
      ...prompt.value,
      max_completion_tokens: Math.max(1, body.max_tokens),
      ...(body.stream === true && { stream: true }),
      ...(stops.length > 0 && { stop: stops.slice(0, STOP_SEQUENCES_MAX) }),
      ...pickFields(body, ["temperature", "top_p"]),
    },
  });
}

export function toChatPromptFields(
  body: CountTokensBody,
  losses: ConversionLosses,
): Result<JsonObject> {
  const messages = toChatMessages(body, losses);
  if (!messages.ok) return messages;
  const tools = toChatToolFields(body, losses);
  if (!tools.ok) return tools;
  const format = body.output_config?.format ?? body.output_format;
  return success({
    messages: messages.value,
    ...tools.value,
    ...effortOf(body),
    ...(format && {
      response_format: {
        type: "json_schema",
        json_schema: { name: "output", strict: true, schema: format.schema },
      },
    }),
  });
}

function toChatMessages(body: CountTokensBody, losses: ConversionLosses): Result<CoreMessage[]> {
  const chatMessages: CoreMessage[] = [];
  const system = systemText(body.system ?? []);
  if (system.length > 0) chatMessages.push({ role: "system", content: system });
  for (const [index, message] of body.messages.entries()) {
    const path = `messages[${index}]`;
    const parts = messagesOfTurn(message, path, losses);
    if (!parts.ok) return parts;
    chatMessages.push(...parts.value);
  }
  if (chatMessages.length === 0) {
    return invalid("messages: at least one message must have content", "messages");
  }
  return success(chatMessages);
}

function systemText(system: string | readonly TextBlock[]): readonly JsonObject[] {
  const texts = typeof system === "string" ? [system] : system.map(({ text }) => text);
  return texts
    .filter((text) => text.trim() !== "" && !text.startsWith(ATTRIBUTION_PREFIX))
    .map(textPart);
}

function messagesOfTurn(
  message: MessagesMessage,
  path: string,
  losses: ConversionLosses,
): Result<CoreMessage[]> {
  const { role, content } = message;
  if (role === "system") {
    const parts = systemText(content);
    return success(parts.length === 0 ? [] : [{ role, content: parts }]);
  }
  if (typeof content === "string") {
    return success(content === "" ? [] : [{ role, content }]);
  }
  return role === "user"
    ? userMessages(content, path, losses)
    : assistantMessages(content, path, losses);
}

function userMessages(
  blocks: readonly MessagesInputBlock[],
  path: string,
  losses: ConversionLosses,
): Result<CoreMessage[]> {
  const results: CoreMessage[] = [];
  const parts: JsonObject[] = [];
  const images: JsonObject[] = [];
  for (const [index, block] of blocks.entries()) {
    const blockPath = `${path}.content[${index}]`;
    if (block.type === "tool_result") {
      const result = toToolMessage(block, blockPath, losses);
      results.push(result.message);
      images.push(...result.images);
    } else if (isVisibleBlock(block)) {
      const contentParts = toContentParts(block, blockPath, losses);
      parts.push(...contentParts);
    } else if (block.type === "tool_use") {
      return invalid(`${blockPath}: only assistant messages can have tool calls`, blockPath);
    } else losses.dropped.add(block.type);
  }
  const userContent = [...images, ...parts];
  return success(
    userContent.length === 0 ? results : [...results, { role: "user", content: userContent }],
  );
}

type ToolResult = Extract<MessagesInputBlock, { type: "tool_result" }>;
type ToolUse = Extract<MessagesInputBlock, { type: "tool_use" }>;
type ResultParts = { readonly message: CoreMessage; readonly images: readonly JsonObject[] };

/**
 * Converts a tool result. Moves images to the next user message, because no host accepts images in
 * a result.
 */
function toToolMessage(block: ToolResult, path: string, losses: ConversionLosses): ResultParts {
  const texts: string[] = [];
  const images: JsonObject[] = [];
  for (const part of resultParts(block, path, losses)) {
    if (part["type"] === "text") texts.push(String(part["text"]));
    else images.push(part);
  }
  const text = texts.join("\n");
  return {
    message: {
      role: "tool",
      tool_call_id: block.tool_use_id,
      content: block.is_error === true ? `Error: ${text}` : text,
    },
    images,
  };
}

function resultParts(
  { content }: ToolResult,
  path: string,
  losses: ConversionLosses,
): JsonObject[] {
  if (typeof content === "string") return [textPart(content)];
  return (content ?? []).flatMap((block, at) => {
    if (block.type !== "tool_reference") {
      return toContentParts(block, `${path}.content[${at}]`, losses);
    }
    const name = losses.names.nameFor(block.tool_name);
    return [textPart(`The tool ${name} is available now: call it by this name.`)];
  });
}

function assistantMessages(
  blocks: readonly MessagesInputBlock[],
  path: string,
  losses: ConversionLosses,
): Result<CoreMessage[]> {
  const texts: string[] = [];
  const thoughts: JsonObject[] = [];
  const calls: ToolUse[] = [];
  for (const [index, block] of blocks.entries()) {
    const blockPath = `${path}.content[${index}]`;
    if (block.type === "text") texts.push(block.text);
    else if (block.type === "tool_use") calls.push(block);
    else if (block.type === "thinking" || block.type === "redacted_thinking") thoughts.push(block);
    else if (block.type === "tool_result" || isVisibleBlock(block)) {
      return invalid(
        `${blockPath}: an assistant message can only have text, thinking and tool calls`,
        blockPath,
      );
    } else losses.dropped.add(block.type);
  }
  const text = texts.join("");
  const hasNoOutput = text === "" && calls.length === 0;
  if (hasNoOutput) return success([]);
  const namedCalls = calls.map((call) => [call, losses.names.nameFor(call.name)] as const);
  return success([assistantMessage(text, readReturnedThoughts(thoughts), namedCalls)]);
}

function assistantMessage(
  text: string,
  { details, reasoning, extras }: RecalledThoughts,
  calls: readonly (readonly [call: ToolUse, name: string])[],
): CoreMessage {
  return {
    role: "assistant",
    ...(text !== "" && { content: text }),
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(([call, name]) => toToolCall(call, name, extras)),
    }),
  };
}

function toToolCall(
  { id, input }: ToolUse,
  name: string,
  extras: ReadonlyMap<string, JsonObject>,
): JsonObject {
  const extra = extras.get(id);
  return {
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
    ...(extra !== undefined && { extra_content: extra }),
  };
}

const VISIBLE_BLOCK_TYPES: ReadonlySet<string> = new Set([
  "text",
  "image",
  "document",
  "search_result",
]);

function isVisibleBlock(block: MessagesInputBlock): block is VisibleContentBlock {
  return VISIBLE_BLOCK_TYPES.has(block.type);
}

function toContentParts(
  block: VisibleContentBlock,
  path: string,
  losses: ConversionLosses,
): readonly JsonObject[] {
  switch (block.type) {
    case "text":
      return block.text === "" ? [] : [textPart(block.text)];
    case "image":
      return [imagePart(block.source)];
    case "search_result": {
      const { title, source, content } = block;
      return [textPart([title, source, ...content.map(({ text }) => text)].join("\n"))];
    }
    case "document":
      return documentParts(block, path, losses);
  }
}

function documentParts(
  { source, title, context }: Extract<VisibleContentBlock, { type: "document" }>,
  path: string,
  losses: ConversionLosses,
): readonly JsonObject[] {
  const introduction = [title ?? "", context ?? ""].filter((text) => text !== "");
  if (source.type === "text") return [textPart([...introduction, source.data].join("\n"))];
  if (source.type === "content") {
    const { content } = source;
    const innerParts = typeof content === "string" ? [textPart(content)] : content.map(innerPart);
    return [...introduction.map(textPart), ...innerParts];
  }
  losses.recordMissingFeature(
    `${path}.source`,
    "this model does not support PDF files. Send their text",
  );
  return [textPart([...introduction, "(PDF)"].join("\n"))];
}

function innerPart(block: Extract<VisibleContentBlock, { type: "text" | "image" }>): JsonObject {
  return block.type === "text" ? textPart(block.text) : imagePart(block.source);
}

function imagePart(source: Extract<VisibleContentBlock, { type: "image" }>["source"]): JsonObject {
  if (source.type === "base64") {
    const url = `data:${source.media_type};base64,${source.data}`;
    return { type: "image_url", image_url: { url } };
  }
  const { url } = source;
  return { type: "image_url", image_url: { url: typeof url === "string" ? url : "" } };
}

function textPart(text: string): JsonObject {
  return { type: "text", text };
}

function effortOf(body: CountTokensBody): JsonObject {
  const requested = body.output_config?.effort ?? undefined;
  const effort = body.thinking ? thinkingEffort(body, body.thinking, requested) : requested;
  return effort === undefined ? {} : { reasoning_effort: effort };
}

type Thinking = NonNullable<CountTokensBody["thinking"]>;

function thinkingEffort(body: CountTokensBody, thinking: Thinking, requested?: string): string {
  if (thinking.type === "disabled" || thinking.type === "between_tools") return "none";
  if (requested !== undefined) return requested;
  if (thinking.type === "adaptive") return "medium";
  const cap = body["max_tokens"];
  const share = typeof cap === "number" && cap > 0 ? thinking.budget_tokens / cap : 1;
  return chooseEffortForShare(share);
}
