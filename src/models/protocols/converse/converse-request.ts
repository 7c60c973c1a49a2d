import { getClaudeRules, toClaudeToolChoice } from "../../claude/claude-rules.ts";
import { hasCallsWithoutThought, detailToClaudeThought } from "../../claude/thoughts.ts";
import {
  createCallInstruction,
  createRefusalFailure,
  parsePrompt,
} from "../../core/conversation.ts";
import { reportDroppedFields } from "../../core/dropped-fields.ts";
import type { SentFieldPaths } from "../../core/dropped-fields.ts";
import { downloadImages } from "../../core/inline-image.ts";
import type {
  ConversationWithDownloadedImages,
  PartWithDownloadedImage,
} from "../../core/inline-image.ts";
import { createOutgoingBody } from "../../core/outgoing-body.ts";
import type { OutgoingBody } from "../../core/outgoing-body.ts";
import { isProviderFailure } from "../../core/provider.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import {
  chooseConverseOutputFormat,
  toConverseModelFields,
  getBedrockModelFamily,
  getForcingToolChoice,
} from "./model-fields.ts";
import type {
  ConverseModelFields,
  BedrockModelFamily,
  ConverseOutputFormat,
} from "./model-fields.ts";
import { listOf, objectOf, isObject } from "../../core/json-value.ts";
import { copyExactJson } from "../../../shared/exact-json.ts";
import type { FunctionTool, RequestedTools } from "../../core/conversation.ts";
import {
  NINE_CHARACTER_ID_FORMAT,
  AcceptedToolCallIds,
  WORD_CHARACTER_ID_FORMAT,
} from "../../core/tool-calls.ts";

const ADDITIONAL_FIELDS = "additionalModelRequestFields";
const SENT_FIELD_PATHS: SentFieldPaths = {
  prompt_cache_key: ["cachePoint"],
  prompt_cache_options: ["cachePoint"],
  prompt_cache_retention: ["cachePoint"],
  parallel_tool_calls: [`${ADDITIONAL_FIELDS}.tool_choice.disable_parallel_tool_use`],
  reasoning_effort: [
    `${ADDITIONAL_FIELDS}.thinking.budget_tokens`,
    `${ADDITIONAL_FIELDS}.output_config.effort`,
    `${ADDITIONAL_FIELDS}.reasoning_effort`,
    `${ADDITIONAL_FIELDS}.reasoning`,
    `${ADDITIONAL_FIELDS}.reasoningConfig`,
  ],
  stop: ["inferenceConfig.stopSequences"],
  temperature: ["inferenceConfig.temperature"],
  top_p: ["inferenceConfig.topP"],
};

/** Returns the body of a Converse request. Never sends `user`. */
export async function toConverseRequest(call: ChatCall): Promise<OutgoingBody | ProviderFailure> {
  const { body, upstreamId: model, cap } = call;
  const prompt = parsePrompt(body);
  if ("kind" in prompt) return prompt;
  const { conversation } = prompt;
  const withImages = await downloadImages(conversation, call);
  if ("reason" in withImages) return withImages;
  const format = chooseConverseOutputFormat(call);
  const tools = converseToolFields(prompt.tools, format, model);
  const mayThink =
    !tools.isForced && !(usesThinkingBudget(model) && hasCallsWithoutThought(conversation.turns));
  const fields = toConverseModelFields({ body, stops: prompt.stops, model, cap, format, mayThink });
  const instructions = [format.kind === "told" ? format.words : "", tools.instruction];
  const request = requestBody({
    call,
    caches: prompt.caches,
    conversation: instructionText(withImages, instructions),
    tools,
    fields,
  });
  if (isProviderFailure(request)) return request;
  reportDroppedFields(
    call,
    { ...request, ...(hasCachePoint(request) && { cachePoint: true }) },
    SENT_FIELD_PATHS,
  );
  return createOutgoingBody(request, withImages.downloads);
}

type RequestParts = {
  readonly call: ChatCall;
  readonly caches: boolean;
  readonly conversation: ConversationWithDownloadedImages;
  readonly tools: ConverseToolFields;
  readonly fields: ConverseModelFields;
};

function requestBody({
  call,
  caches,
  conversation,
  tools,
  fields,
}: RequestParts): JsonObject | ProviderFailure {
  const { cap, upstreamId } = call;
  const { toolConfig, toolChoice } = tools;
  const {
    inferenceFields: inference,
    additionalFields: additional,
    sendsThoughts: thoughts,
  } = fields;
  const family = getBedrockModelFamily(upstreamId);
  const toolBlocks = toolConfig !== undefined;
  const messages = toConverseMessages(conversation, { family, toolBlocks, thoughts });
  const instructed = addInstructions(conversation.system, messages);
  if (instructed.messages.length === 0) {
    return createRefusalFailure("The messages have no content.", "messages");
  }
  const additionalFields = {
    ...additional,
    ...(toolChoice !== undefined && { tool_choice: toolChoice }),
  };
  return {
    ...(caches ? addCachePoint(instructed, family) : instructed),
    inferenceConfig: { maxTokens: cap, ...inference },
    ...(toolBlocks && { toolConfig }),
    ...(Object.keys(additionalFields).length > 0 && {
      additionalModelRequestFields: additionalFields,
    }),
  };
}

function addInstructions(
  system: readonly string[],
  messages: readonly ConverseMessage[],
): InstructedMessages {
  const texts = system.filter((text) => text.trim() !== "").map((text) => ({ text }));
  if (texts.length === 0) return { messages };
  if (messages.length > 0) return { system: texts, messages };
  return { messages: [{ role: "user", content: texts }] };
}

/** Adds the gateway's instructions at the end, so that the text before them stays cached. */
function instructionText(
  conversation: ConversationWithDownloadedImages,
  instructions: readonly string[],
): ConversationWithDownloadedImages {
  const parts = instructions
    .filter((text) => text !== "")
    .map((text) => ({ kind: "text" as const, text: `<system>${text}</system>` }));
  return parts.length === 0
    ? conversation
    : { ...conversation, turns: [...conversation.turns, { role: "user" as const, parts }] };
}

function usesThinkingBudget(model: string): boolean {
  return getBedrockModelFamily(model) === "claude" && getClaudeRules(model).thinking === "budget";
}

/** A cache point for five minutes, because caching for an hour has another price. */
const CACHE_POINT = { cachePoint: { type: "default" } };

/**
 * Adds a cache point. Claude's cache point follows the last user message, so that the next request
 * finds all earlier messages. Nova's cache point follows the instructions.
 */
function addCachePoint(
  requested: InstructedMessages,
  family: BedrockModelFamily,
): InstructedMessages {
  if (family === "nova" && requested.system !== undefined) {
    return { ...requested, system: [...requested.system, CACHE_POINT] };
  }
  if (family !== "claude") return requested;
  const lastUserIndex = requested.messages.findLastIndex(({ role }) => role === "user");
  const messages = requested.messages.map((message, index) =>
    index === lastUserIndex ? { ...message, content: [...message.content, CACHE_POINT] } : message,
  );
  return { ...requested, messages };
}

function hasCachePoint({ system, messages }: JsonObject): boolean {
  const contents = listOf(messages).map(objectOf);
  return [system, ...contents.map(({ content }) => content)].flat().includes(CACHE_POINT);
}

type ConverseToolFields = {
  readonly toolConfig?: JsonObject;
  /** Claude's own `tool_choice`, because Converse's `toolChoice` can't forbid parallel calls. */
  readonly toolChoice?: JsonObject;
  readonly isForced: boolean;
  readonly instruction: string;
};

/**
 * Returns `toolConfig`. Sends no tools for the choice "none", which Converse lacks. Never sends
 * `strict`: newer Claude models reject it, and others reject open schemas with it.
 */
function converseToolFields(
  requested: RequestedTools,
  format: ConverseOutputFormat,
  model: string,
): ConverseToolFields {
  const offeredTools = requested.choice === "none" ? [] : requested.list;
  const tools = format.kind === "tool" ? [...offeredTools, answerToolOf(format)] : offeredTools;
  if (tools.length === 0) return { isForced: false, instruction: "" };
  const wantedChoice = requiredToolChoice(requested, format, offeredTools.length === 0);
  const forcing = getForcingToolChoice(model);
  const isForced = wantedChoice !== "auto" && forcing !== "none";
  const choice = isForced ? wantedChoice : "auto";
  const instruction =
    isForced || wantedChoice === "auto" ? "" : createCallInstruction(wantedChoice);
  const family = getBedrockModelFamily(model);
  const isSent = ({ name }: FunctionTool) =>
    forcing !== "any" || typeof choice === "string" || name === choice.name;
  const specs = tools.filter(isSent).map((tool) => toolSpec(tool, family === "nova"));
  if (family === "claude" && !requested.parallel) {
    const toolChoice = { ...toClaudeToolChoice(choice), disable_parallel_tool_use: true };
    return { toolConfig: { tools: specs }, toolChoice, isForced, instruction };
  }
  const toolChoice = forcing === "any" && isForced ? { any: {} } : converseChoice(choice);
  return { toolConfig: { tools: specs, toolChoice }, isForced, instruction };
}

type ToolChoice = Exclude<RequestedTools["choice"], "none">;

function requiredToolChoice(
  { choice }: RequestedTools,
  format: ConverseOutputFormat,
  isOnlyTool: boolean,
): ToolChoice {
  if (format.kind === "tool") return isOnlyTool ? { name: format.name } : "required";
  return choice === "none" ? "auto" : choice;
}

function converseChoice(choice: ToolChoice): JsonObject {
  if (typeof choice === "object") return { tool: { name: choice.name } };
  return choice === "required" ? { any: {} } : { auto: {} };
}

function answerToolOf(format: {
  readonly name: string;
  readonly schema: JsonObject;
}): FunctionTool {
  const { name, schema } = format;
  return { name, description: "Gives the answer.", parameters: schema, strict: false };
}

function toolSpec({ name, description, parameters }: FunctionTool, isNova: boolean): JsonObject {
  const schema = isNova ? novaSchema(parameters) : parameters;
  const json = copyExactJson(schema, { ...schema, type: "object" });
  const descriptionField = description.trim() === "" ? {} : { description };
  return { toolSpec: { name, ...descriptionField, inputSchema: { json } } };
}

/** Nova supports only three top-level keywords. */
function novaSchema({ properties = {}, required }: JsonObject): JsonObject {
  return { properties, ...(required !== undefined && { required }) };
}

type Block = JsonObject;
type ConverseMessage = { readonly role: "user" | "assistant"; readonly content: Block[] };

type InstructedMessages = {
  readonly system?: readonly JsonObject[];
  readonly messages: readonly ConverseMessage[];
};

type MessageRules = {
  readonly family: BedrockModelFamily;
  /**
   * Whether to send tool calls and results as blocks. Bedrock rejects such blocks in requests
   * without tools.
   */
  readonly toolBlocks: boolean;
  readonly thoughts: boolean;
};

const OPENING_TEXT = "Hello.";
/** Replaces an empty tool result, because Bedrock returns 400 for blank text. */
const NO_RESULT = "(empty)";

/**
 * Returns messages that start with a user message, alternate between roles, and contain no blank
 * text. Without tools, calls and results become text.
 */
export function toConverseMessages(
  { turns }: ConversationWithDownloadedImages,
  rules: MessageRules,
): readonly ConverseMessage[] {
  const ids = new AcceptedToolCallIds(
    rules.family === "mistral" ? NINE_CHARACTER_ID_FORMAT : WORD_CHARACTER_ID_FORMAT,
  );
  const messages: ConverseMessage[] = [];
  for (const { role, parts } of turns) {
    const content = parts.flatMap((part) => toBlocks(part, rules, ids));
    // Bedrock rejects a message that ends with reasoning.
    while (content.at(-1)?.["reasoningContent"] !== undefined) content.pop();
    if (content.length === 0) continue;
    const last = messages.at(-1);
    if (last?.role === role) for (const block of content) last.content.push(block);
    else messages.push({ role, content });
  }
  if (messages[0]?.role === "assistant") {
    messages.unshift({ role: "user", content: [{ text: OPENING_TEXT }] });
  }
  trimLastText(messages.at(-1));
  return messages;
}

function toBlocks(
  part: PartWithDownloadedImage,
  rules: MessageRules,
  ids: AcceptedToolCallIds,
): Block[] {
  switch (part.kind) {
    case "text":
      return part.text.trim() === "" ? [] : [{ text: part.text }];
    case "image": {
      const { mediaType, base64 } = part.image;
      return [{ image: { format: mediaType.slice("image/".length), source: { bytes: base64 } } }];
    }
    case "thought":
      return rules.thoughts ? thoughtBlocks(part.detail) : [];
    case "call": {
      const { id, name, input } = part;
      if (!rules.toolBlocks) {
        return [{ text: callAsText("tool_call", name, JSON.stringify(input)) }];
      }
      return [{ toolUse: { toolUseId: ids.idFor(id), name: toolName(name), input } }];
    }
    case "result": {
      const text = part.text.trim() === "" ? NO_RESULT : part.text;
      if (!rules.toolBlocks) return [{ text: callAsText("tool_result", part.name, text) }];
      return [{ toolResult: { toolUseId: ids.idFor(part.id), content: [{ text }] } }];
    }
  }
}

function callAsText(element: string, name: string, text: string): string {
  return `<${element} name=${JSON.stringify(name)}>${text}</${element}>`;
}

function toolName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
}

function thoughtBlocks(detail: JsonObject): Block[] {
  const block = detailToClaudeThought(detail);
  if (block?.type !== "thinking") return []; // Converse formats redacted thoughts differently.
  const { thinking: text, signature } = block;
  return [{ reasoningContent: { reasoningText: { text, signature } } }];
}

function trimLastText(message: ConverseMessage | undefined): void {
  const block = message?.role === "assistant" ? message.content.at(-1) : undefined;
  if (!isObject(block) || typeof block["text"] !== "string") return;
  message?.content.splice(-1, 1, { text: block["text"].trimEnd() });
}
