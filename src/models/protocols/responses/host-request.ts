import { DEFAULT_PDF_FILENAME } from "../../core/core-request.ts";
import type { ChatBody } from "../../core/core-request.ts";
import {
  createLegacyFunctionsFailure,
  createRefusalFailure,
  usesLegacyFunctions,
} from "../../core/conversation.ts";
import type { AssistantMessage, UserContent } from "../../core/conversation.ts";
import { reportDroppedFields } from "../../core/dropped-fields.ts";
import type { SentFieldPaths } from "../../core/dropped-fields.ts";
import { isObject, listOf, objectOf, pickFields, removeNulls } from "../../core/json-value.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import {
  AcceptedToolCallIds,
  WORD_CHARACTER_ID_FORMAT,
  MODELS_WITH_TOOL_NAMESPACES,
  removeToolNamespaces,
} from "../../core/tool-calls.ts";
import {
  RESPONSES_OUTPUT_CAP_MIN,
  MODELS_WITHOUT_MINIMAL_EFFORT,
  REASONING_MODEL_PATTERN,
  toReasoningItem,
} from "./host-rules.ts";
import { utf8Bytes } from "../../../shared/tokens.ts";
import { JSON_RESPONSE_BYTES_MAX } from "../../core/response-size.ts";

const UNCHANGED_FIELDS = ["parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention"];
const SAMPLING_FIELDS = ["temperature", "top_p"];

/**
 * Converts a chat call to the body of POST /v1/responses. Returns a failure for unsupported fields
 * that would change the output.
 */
export function toResponsesApiRequest(call: ChatCall): JsonObject | ProviderFailure {
  const { body, cap, upstreamId, stream } = call;
  const problem = checkSupport(body, cap);
  if (problem !== null) return problem;
  const input = inputOf(body);
  if (!Array.isArray(input)) return input;
  const { reasoning_effort: effort } = body;
  const samplingNames = effort === "none" ? SAMPLING_FIELDS : [];
  const request = {
    model: upstreamId,
    input,
    ...pickFields(body, [...UNCHANGED_FIELDS, ...samplingNames]),
    ...toolFields(body),
    ...textField(body),
    ...(effort !== undefined && { reasoning: { effort: hostEffort(upstreamId, effort) } }),
    max_output_tokens: cap,
    ...CONSTANT_FIELDS,
    ...(stream && { stream: true, stream_options: { include_obfuscation: false } }),
  };
  reportDroppedFields(call, request, SENT_FIELD_PATHS);
  return request;
}

const SENT_FIELD_PATHS: SentFieldPaths = {
  ...Object.fromEntries([...UNCHANGED_FIELDS, ...SAMPLING_FIELDS].map((field) => [field, [field]])),
  reasoning_effort: ["reasoning.effort"],
  verbosity: ["text.verbosity"],
};

const INCLUDE_REASONING = "reasoning.encrypted_content";

/**
 * Constant fields of every request. The tier `auto` would use the tier of the operator's OpenAI
 * project.
 */
const CONSTANT_FIELDS: JsonObject = {
  store: false,
  include: [INCLUDE_REASONING],
  service_tier: "default",
};

/** Sets the route's model, cap and tier. Drops tuning fields that the model rejects. */
export function toResponsesNativeBody(call: ChatCall): JsonObject {
  const { upstreamId, cap, stream } = call;
  const { reasoning: rawReasoning } = call.native?.body ?? {};
  const { effort, ...reasoning } = objectOf(rawReasoning);
  const { body, tuned } = tunedBody(call, effort);
  return {
    ...body,
    ...tuned,
    ...(rawReasoning !== undefined && {
      reasoning: removeNulls({ ...reasoning, effort: hostEffort(upstreamId, effort) }),
    }),
    model: upstreamId,
    max_output_tokens: cap,
    ...CONSTANT_FIELDS,
    include: [...new Set([...listOf(tuned.include), INCLUDE_REASONING])],
    stream,
    ...(stream && { stream_options: { include_obfuscation: false } }),
  };
}

function tunedBody(
  { native, upstreamId, onDropped }: ChatCall,
  effort: unknown,
): { readonly body: JsonObject; readonly tuned: JsonObject & { readonly include?: unknown } } {
  const nativeBody = native?.body ?? {};
  const flatBody = MODELS_WITH_TOOL_NAMESPACES.test(upstreamId)
    ? nativeBody
    : removeToolNamespaces(nativeBody);
  const { temperature, top_p, top_logprobs, include, ...body } = flatBody;
  const samplingFields = removeNulls({ temperature, top_p, top_logprobs });
  if (!REASONING_MODEL_PATTERN.test(upstreamId) || effort === "none") {
    return { body, tuned: { ...samplingFields, include } };
  }
  const includesOtherFields = listOf(include).some((one) => one !== INCLUDE_REASONING);
  onDropped?.([...Object.keys(samplingFields), ...(includesOtherFields ? ["include"] : [])]);
  return { body, tuned: {} };
}

/** Replaces "minimal", which models since GPT-5.1 don't support. */
function hostEffort(upstreamId: string, effort: unknown): unknown {
  return effort === "minimal" && MODELS_WITHOUT_MINIMAL_EFFORT.test(upstreamId) ? "low" : effort;
}

function checkSupport(body: ChatBody, cap: number): ProviderFailure | null {
  const { functions, function_call: legacyChoice } = body;
  if (functions !== undefined || legacyChoice !== undefined) {
    return createRefusalFailure(
      "This model does not support 'functions'. Send 'tools'.",
      "functions",
    );
  }
  if ((body.n ?? 1) > 1) {
    return createRefusalFailure("This model returns only one choice, so 'n' must be 1.", "n");
  }
  if (cap >= RESPONSES_OUTPUT_CAP_MIN) return null;
  return createRefusalFailure(
    `This model requires an output limit of at least ${RESPONSES_OUTPUT_CAP_MIN} tokens.`,
    "max_tokens",
  );
}

function inputOf({ messages }: ChatBody): JsonObject[] | ProviderFailure {
  const ids = new AcceptedToolCallIds(WORD_CHARACTER_ID_FORMAT);
  const customCallIds = new Set<string>();
  const items: JsonObject[] = [];
  for (const message of messages) {
    if (message.role === "function" || usesLegacyFunctions(message)) {
      return createLegacyFunctionsFailure();
    }
    if (message.role === "assistant") items.push(...assistantItems(message, ids, customCallIds));
    else if (message.role === "tool") {
      const { tool_call_id: id, content } = message;
      const type = customCallIds.has(id) ? "custom_tool_call_output" : "function_call_output";
      items.push({ type, call_id: ids.idFor(id), output: toText(content) });
    } else {
      items.push({ type: "message", role: message.role, content: userParts(message.content) });
    }
  }
  return items;
}

function assistantItems(
  message: AssistantMessage,
  ids: AcceptedToolCallIds,
  customCallIds: Set<string>,
): JsonObject[] {
  const thoughts = (message.reasoning_details ?? []).map(toReasoningItem);
  const text = toText(message.content ?? "");
  const refusalText = message.refusal ?? "";
  const content = [
    ...(text === "" ? [] : [{ type: "output_text", text }]),
    ...(refusalText === "" ? [] : [{ type: "refusal", refusal: refusalText }]),
  ];
  const calls = (message.tool_calls ?? []).map((call) => {
    const call_id = ids.idFor(call.id);
    if (call.type === "custom") {
      customCallIds.add(call.id);
      const { name, input } = call.custom;
      return { type: "custom_tool_call", call_id, name, input };
    }
    const { name, arguments: argumentsJson } = call.function;
    return { type: "function_call", call_id, name, arguments: argumentsJson || "{}" };
  });
  return [
    ...thoughts.filter((item) => item !== null),
    ...(content.length === 0 ? [] : [{ type: "message", role: "assistant", content }]),
    ...calls,
  ];
}

function userParts(content: UserContent): JsonObject[] {
  if (typeof content === "string") return [{ type: "input_text", text: content }];
  return content.map((part): JsonObject => {
    if (part.type === "text") return { type: "input_text", text: part.text };
    if (part.type === "file") {
      const { file_data, filename } = part.file;
      return { type: "input_file", filename: filename ?? DEFAULT_PDF_FILENAME, file_data };
    }
    const { url, detail } = part.image_url;
    return { type: "input_image", image_url: url, detail: detail ?? "auto" };
  });
}

function toText(
  content: string | NonNullable<Exclude<AssistantMessage["content"], string>>,
): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("");
}

function toolFields({ tools = [], tool_choice: choice }: ChatBody): JsonObject {
  if (tools.length === 0) return {};
  return {
    tools: tools.map(toTool),
    ...(choice !== undefined && { tool_choice: toToolChoice(choice) }),
  };
}
type ToolChoice = NonNullable<ChatBody["tool_choice"]>;

function toTool(tool: NonNullable<ChatBody["tools"]>[number]): JsonObject {
  if (tool.type === "custom") {
    const { name, description, format } = tool.custom;
    const { grammar } = objectOf(format);
    const hostFormat = isObject(grammar) ? { type: "grammar", ...grammar } : format;
    return { type: "custom", name, ...removeNulls({ description, format: hostFormat }) };
  }
  const { name, description, parameters, strict } = tool.function;
  return {
    type: "function",
    name,
    ...removeNulls({ description }),
    parameters: parameters ?? { type: "object", properties: {} },
    strict: strict === true,
  };
}

function toToolChoice(choice: ToolChoice): unknown {
  if (typeof choice === "string") return choice;
  if (choice.type !== "allowed_tools") return toNamedTool(choice);
  const { mode, tools } = choice.allowed_tools;
  return { type: "allowed_tools", mode, tools: tools.map(toNamedTool) };
}

function toNamedTool(one: Exclude<ToolChoice, string | { type: "allowed_tools" }>): JsonObject {
  const { name } = one.type === "function" ? one.function : one.custom;
  return { type: one.type, name };
}

function textField({ response_format: format, verbosity }: ChatBody): JsonObject {
  const text = { ...formatOf(format), ...removeNulls({ verbosity }) };
  return Object.keys(text).length === 0 ? {} : { text };
}

function formatOf(format: ChatBody["response_format"]): JsonObject {
  if (format === undefined || format.type === "text") return {};
  if (format.type !== "json_schema") return { format: { type: format.type } };
  const { name, schema, strict, description } = format.json_schema;
  return {
    format: { type: "json_schema", name, schema, ...removeNulls({ strict, description }) },
  };
}

/**
 * Maximum bytes of the request fields that a response repeats. Prompts that fit a context window
 * stay below half.
 */
const ECHO_BYTES_MAX = JSON_RESPONSE_BYTES_MAX / 4;
const INDENT = 2;

/**
 * Returns a failure if the request fields that the response repeats, all except `input`, are too
 * large.
 */
export function findTooLargeEcho(request: JsonObject): ProviderFailure | null {
  const sizes = Object.entries(request).map(([field, value]) => {
    return { field, bytes: field === "input" ? 0 : indentedJsonBytes(value, INDENT) };
  });
  if (sizes.reduce((sum, { bytes }) => sum + bytes, 0) <= ECHO_BYTES_MAX) return null;
  const { field } = sizes.reduce((largest, size) => (size.bytes > largest.bytes ? size : largest));
  const limit = `${ECHO_BYTES_MAX / 1024 / 1024} MB`;
  return {
    kind: "refused",
    reason: "echo_too_large",
    message: `The response repeats this field, so the field can't exceed ${limit}. Shorten the field, or use a stream.`,
    param: field === "text" ? "response_format" : field,
  };
}

function indentedJsonBytes(value: unknown, indent: number): number {
  if (typeof value === "string") return utf8Bytes(JSON.stringify(value));
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return String(value).length;
  const entries = Object.entries(value);
  if (entries.length === 0) return 2;
  let bytes = indent + 3;
  for (const [key, inner] of entries) {
    bytes += indent + INDENT + 2 + indentedJsonBytes(inner, indent + INDENT);
    if (!isList) bytes += utf8Bytes(JSON.stringify(key)) + 2;
  }
  return bytes;
}
