import { FILENAME } from "../../core/core-request.ts";
import { noFunctions, refusal } from "../../core/conversation.ts";
import { tellDropped } from "../../core/dropped.ts";
import type { Places } from "../../core/dropped.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import { ToolCallIds, WORD_64 } from "../../core/tool-call-id.ts";
import { KNOWS_NAMESPACES, withoutNamespaces } from "../../core/namespaces.ts";
import { CAP_MIN, LOW_IS_LEAST, REASONING_MODELS, reasoningItem } from "./host-rules.ts";

/** The fields that go as they are. */
const SAME = ["parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention"];
/** Sampling is taken by models that are told not to reason. */
const SAMPLING = ["temperature", "top_p"];

/**
 * A chat call as the body of POST /v1/responses (platform.openai.com, Create a model response): only what
 * is named here is sent. Refused: what Responses has no field for and would change the answer.
 */
export function responsesRequest(call: ChatCall): JsonObject | ProviderFailure {
  const { body, cap, upstreamId, stream } = call;
  if (cap === null) return { kind: "disabled", reason: "no_cap" };
  const problem = problemOf(body, cap);
  if (problem !== null) return problem;
  const input = inputOf(listOf(body["messages"]).filter(isObject));
  if (!Array.isArray(input)) return input;
  const effort = body["reasoning_effort"];
  const sampling = effort === "none" ? SAMPLING : [];
  const request = {
    model: upstreamId,
    input,
    ...fieldsOf(body, [...SAME, ...sampling]),
    ...toolFields(body),
    ...textField(body),
    ...(typeof effort === "string" && { reasoning: { effort: effortFor(upstreamId, effort) } }),
    max_output_tokens: cap,
    ...FIXED,
    ...(stream && { stream: true, stream_options: { include_obfuscation: false } }),
  };
  tellDropped(call, request, PLACES);
  return request;
}

const PLACES: Places = {
  ...Object.fromEntries([...SAME, ...SAMPLING].map((field) => [field, [field]])),
  reasoning_effort: ["reasoning.effort"],
  verbosity: ["text.verbosity"],
};

const REASONING = "reasoning.encrypted_content";

/** Nothing is stored; reasoning comes back by the client; `auto` would take the tier of our project. */
const FIXED: JsonObject = {
  store: false,
  include: [REASONING],
  service_tier: "default",
};

/** A client's own body: its fields, our model, cap and tier; without what the model refuses though it only tunes. */
export function nativeRequest(call: ChatCall): JsonObject {
  const { upstreamId, cap, stream } = call;
  const { effort, ...reasoning } = objectOf(call.native?.body["reasoning"]);
  const { body, tuned } = tunedBody(call, effort);
  return {
    ...body,
    ...tuned,
    ...(body["reasoning"] !== undefined && {
      reasoning: said({ ...reasoning, effort: effortFor(upstreamId, effort) }),
    }),
    model: upstreamId,
    ...(cap !== null && { max_output_tokens: cap }),
    ...FIXED,
    include: [...new Set([...listOf(tuned["include"]), REASONING])],
    stream,
    ...(stream && { stream_options: { include_obfuscation: false } }),
  };
}

/** The fields of a client's body that the model takes; `tuned`: those that only tune, of which the others are named. */
function tunedBody(
  { native, upstreamId, onDropped }: ChatCall,
  effort: unknown,
): { readonly body: JsonObject; readonly tuned: JsonObject } {
  const given = native?.body ?? {};
  const known = KNOWS_NAMESPACES.test(upstreamId) ? given : withoutNamespaces(given);
  const { temperature, top_p, top_logprobs, include, ...body } = known;
  const sampled = said({ temperature, top_p, top_logprobs });
  if (!REASONING_MODELS.test(upstreamId) || effort === "none") {
    return { body, tuned: { ...sampled, include } };
  }
  const isNarrowed = listOf(include).some((one) => one !== REASONING);
  onDropped?.([...Object.keys(sampled), ...(isNarrowed ? ["include"] : [])]);
  return { body, tuned: {} };
}

/** Since 5.1 the least effort is none, and then low. */
function effortFor(upstreamId: string, effort: unknown): unknown {
  return effort === "minimal" && LOW_IS_LEAST.test(upstreamId) ? "low" : effort;
}

function problemOf(body: JsonObject, cap: number): ProviderFailure | null {
  if (body["functions"] !== undefined || body["function_call"] !== undefined) {
    return refusal("This model does not take 'functions': send 'tools'.", "functions");
  }
  if (Number(body["n"] ?? 1) > 1) {
    return refusal("This model gives one choice only: 'n' must be 1.", "n");
  }
  if (cap >= CAP_MIN) return null;
  return refusal(`This model answers with at least ${CAP_MIN} tokens.`, "max_tokens");
}

function fieldsOf(body: JsonObject, names: readonly string[]): JsonObject {
  const given = names.filter((name) => body[name] !== undefined && body[name] !== null);
  return Object.fromEntries(given.map((name) => [name, body[name]]));
}

/** The items of a conversation, in its order; calls and their results are paired by `call_id`. */
function inputOf(messages: readonly JsonObject[]): JsonObject[] | ProviderFailure {
  const ids = new ToolCallIds(WORD_64);
  const customs = new Set<string>();
  const items: JsonObject[] = [];
  for (const message of messages) {
    const { role, content } = message;
    if (role === "function" || isObject(message["function_call"])) return noFunctions();
    if (role === "assistant") {
      items.push(...assistantItems(message, ids, customs));
    } else if (role === "tool") {
      const id = textOf(message["tool_call_id"]);
      const type = customs.has(id) ? "custom_tool_call_output" : "function_call_output";
      items.push({ type, call_id: ids.idFor(id), output: textIn(content) });
    } else {
      items.push({ type: "message", role, content: userParts(content) });
    }
  }
  return items;
}

/** Reasoning stands before what it led to. */
function assistantItems(message: JsonObject, ids: ToolCallIds, customs: Set<string>): JsonObject[] {
  const thoughts = listOf(message["reasoning_details"]).filter(isObject).map(reasoningItem);
  const text = textIn(message["content"]);
  const refused = textOf(message["refusal"]);
  const content = [
    ...(text === "" ? [] : [{ type: "output_text", text }]),
    ...(refused === "" ? [] : [{ type: "refusal", refusal: refused }]),
  ];
  const calls = listOf(message["tool_calls"])
    .filter(isObject)
    .map((call) => {
      const call_id = ids.idFor(textOf(call["id"]));
      if (isObject(call["custom"])) {
        customs.add(textOf(call["id"]));
        const { name, input } = call["custom"];
        return { type: "custom_tool_call", call_id, name, input: textOf(input) };
      }
      const { name, arguments: given } = objectOf(call["function"]);
      return { type: "function_call", call_id, name, arguments: textOf(given) || "{}" };
    });
  return [
    ...thoughts.filter((item) => item !== null),
    ...(content.length === 0 ? [] : [{ type: "message", role: "assistant", content }]),
    ...calls,
  ];
}

function userParts(content: unknown): JsonObject[] {
  if (typeof content === "string") return [{ type: "input_text", text: content }];
  return listOf(content)
    .filter(isObject)
    .map((part): JsonObject => {
      if (isObject(part["file"])) {
        const { file_data, filename } = part["file"];
        return { type: "input_file", filename: filename ?? FILENAME, file_data };
      }
      if (!isObject(part["image_url"])) return { type: "input_text", text: textOf(part["text"]) };
      const { url, detail } = part["image_url"];
      return { type: "input_image", image_url: url, detail: detail ?? "auto" };
    });
}

function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = listOf(content).filter(isObject);
  return parts.map((part) => textOf(part["text"]) || textOf(part["refusal"])).join("");
}

function toolFields({ tools, tool_choice: choice }: JsonObject): JsonObject {
  const list = listOf(tools).filter(isObject).map(toolOf);
  if (list.length === 0) return {};
  return {
    tools: list,
    ...(choice !== undefined && choice !== null && { tool_choice: choiceOf(choice) }),
  };
}

/** Not strict unless said: Responses would be, chat is not. */
function toolOf(tool: JsonObject): JsonObject {
  if (isObject(tool["custom"])) {
    const { name, description, format } = tool["custom"];
    const { grammar } = objectOf(format);
    const flat = isObject(grammar) ? { type: "grammar", ...grammar } : format;
    return { type: "custom", name, ...said({ description, format: flat }) };
  }
  const { name, description, parameters, strict } = objectOf(tool["function"]);
  return {
    type: "function",
    name,
    ...said({ description }),
    parameters: parameters ?? { type: "object", properties: {} },
    strict: strict === true,
  };
}

function choiceOf(choice: unknown): unknown {
  if (!isObject(choice)) return choice;
  if (choice["type"] !== "allowed_tools") return nameOf(choice);
  const { mode, tools } = objectOf(choice["allowed_tools"]);
  return { type: "allowed_tools", mode, tools: listOf(tools).filter(isObject).map(nameOf) };
}

/** Chat nests the name of a tool under its type. */
function nameOf({ type, ...rest }: JsonObject): JsonObject {
  return { type, name: objectOf(rest[textOf(type)])["name"] };
}

function textField({ response_format: format, verbosity }: JsonObject): JsonObject {
  const text = { ...formatOf(format), ...said({ verbosity }) };
  return Object.keys(text).length === 0 ? {} : { text };
}

function formatOf(format: unknown): JsonObject {
  if (!isObject(format) || format["type"] === "text") return {};
  if (format["type"] !== "json_schema") return { format: { type: format["type"] } };
  const { name, schema, strict, description } = objectOf(format["json_schema"]);
  return { format: { type: "json_schema", name, schema, ...said({ strict, description }) } };
}

function said(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}
