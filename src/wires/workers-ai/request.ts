import { plainText, refusal, unsupported } from "../../core/conversation.ts";
import { tellDropped } from "../../core/dropped.ts";
import type { Places } from "../../core/dropped.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type { JsonObject, ProviderCall, ProviderFailure } from "../../core/provider.ts";
import { NINE, ToolCallIds } from "../../core/tool-call-id.ts";
import { toolsOf } from "../../core/tools.ts";
import type { Tools } from "../../core/tools.ts";
import { familyOf, nearestEffort } from "./models.ts";

/** What its models take as it is; `stop` only those that take OpenAI's own request. */
const FIELDS = [
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "seed",
  "temperature",
  "top_k",
  "top_p",
];

/**
 * The inputs of a chat model on Workers AI: OpenAI's request without its
 * model and stream options. Refused: what its models cannot do (images by address, several choices).
 */
export function chatInputs(call: ProviderCall): JsonObject | ProviderFailure {
  const { body, cap, stream, upstreamId } = call;
  if (typeof body["n"] === "number" && body["n"] > 1) return unsupported("Several choices", "n");
  const tools = toolsOf(body);
  if ("kind" in tools) return tools;
  const isOpenAi = familyOf(upstreamId).openAi === true;
  const messages = messagesOf(listOf(body["messages"]).filter(isObject), upstreamId);
  if ("kind" in messages) return messages;
  const fields = isOpenAi ? [...FIELDS, "stop"] : FIELDS;
  const inputs = {
    messages,
    ...Object.fromEntries(
      fields.filter((field) => body[field] !== undefined).map((field) => [field, body[field]]),
    ),
    ...(cap !== null && { max_tokens: cap }),
    ...(stream && { stream }),
    ...toolInputs(tools, isOpenAi),
    ...responseFormat(body["response_format"], isOpenAi),
    ...reasoning(textOf(body["reasoning_effort"]), upstreamId),
  };
  tellDropped(call, inputs, PLACES);
  return inputs;
}

const PLACES: Places = {
  ...Object.fromEntries([...FIELDS, "stop"].map((field) => [field, [field]])),
  reasoning_effort: ["reasoning_effort", "chat_template_kwargs"],
};

function messagesOf(
  messages: readonly JsonObject[],
  model: string,
): readonly JsonObject[] | ProviderFailure {
  const nine = familyOf(model).nineLetterIds === true ? new ToolCallIds(NINE) : null;
  const idFor = (id: unknown): string => nine?.idFor(textOf(id)) ?? textOf(id);
  const names = new Map<string, unknown>();
  const mapped: JsonObject[] = [];
  for (const [index, message] of messages.entries()) {
    const problem = messageProblem(message, `messages[${index}]`);
    if (problem !== null) return problem;
    const calls = listOf(message["tool_calls"]).filter(isObject);
    for (const call of calls) names.set(textOf(call["id"]), objectOf(call["function"])["name"]);
    const given = message["tool_call_id"];
    const { role } = message;
    const called = message["name"] ?? names.get(textOf(given));
    mapped.push({
      role: role === "developer" ? "system" : role,
      content: contentOf(message),
      ...(typeof called === "string" && { name: called }),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => toolCall(call, idFor)) }),
      ...(typeof given === "string" && { tool_call_id: idFor(given) }),
    });
  }
  return mapped;
}

/** Only parts with an image stay parts; the binding's schema knows no null. */
function contentOf({ content, refusal: refused }: JsonObject): unknown {
  const hasImage = listOf(content).some((part) => isObject(part) && isObject(part["image_url"]));
  return hasImage ? content : plainText(content) || textOf(refused);
}

function toolCall(call: JsonObject, idFor: (id: unknown) => string): JsonObject {
  const called = objectOf(call["function"]);
  const json = textOf(called["arguments"]).trim() === "" ? "{}" : called["arguments"];
  return {
    id: idFor(call["id"]),
    type: "function",
    function: { name: called["name"], arguments: json },
  };
}

function messageProblem(message: JsonObject, place: string): ProviderFailure | null {
  if (message["role"] === "function" || isObject(message["function_call"])) {
    return unsupported("Legacy function calls", place);
  }
  for (const [at, call] of listOf(message["tool_calls"]).filter(isObject).entries()) {
    if (isObject(call["function"])) continue;
    return unsupported("Custom tool calls", `${place}.tool_calls[${at}]`);
  }
  for (const [at, part] of listOf(message["content"]).entries()) {
    if (!isObject(part) || !isObject(part["image_url"])) continue;
    if (/^data:/i.test(textOf(part["image_url"]["url"]))) continue;
    return refusal(
      "This model takes images as data URLs only.",
      `${place}.content[${at}].image_url`,
    );
  }
  return null;
}

/** Without a choice the tools themselves stay away: what Workers AI makes of `none` is nowhere said. */
function toolInputs({ list, choice }: Tools, openAi: boolean): JsonObject {
  if (list.length === 0 || choice === "none") return {};
  const tools = list.map(({ name, description, parameters, strict }) => ({
    type: "function",
    function: {
      name,
      ...(description !== "" && { description }),
      parameters,
      ...(strict && openAi && { strict }),
    },
  }));
  if (choice === "auto") return { tools };
  const named = choice === "required" ? choice : { type: "function", function: choice };
  return { tools, tool_choice: named };
}

function responseFormat(raw: unknown, openAi: boolean): JsonObject {
  const format = objectOf(raw);
  if (format["type"] === "json_object") return { response_format: { type: "json_object" } };
  if (format["type"] !== "json_schema") return {};
  if (openAi) return { response_format: format };
  const schema = objectOf(objectOf(format["json_schema"])["schema"]);
  return { response_format: { type: "json_schema", json_schema: schema } };
}

function reasoning(asked: string, model: string): JsonObject {
  const { efforts = [], thinkingSwitch } = familyOf(model);
  if (asked === "") return {};
  if (thinkingSwitch === true) {
    return { chat_template_kwargs: { enable_thinking: asked !== "none" } };
  }
  const effort = nearestEffort(asked, efforts);
  return effort === null ? {} : { reasoning_effort: effort };
}
