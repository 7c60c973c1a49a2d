import { claudeRules } from "../../claude/claude-rules.ts";
import { startsWithoutThought } from "../../claude/thoughts.ts";
import { refusal } from "../../core/conversation.ts";
import { reportDropped } from "../../core/dropped.ts";
import type { FieldPaths } from "../../core/dropped.ts";
import { withInlineImages } from "../../core/inline-image.ts";
import type { InlineConversation } from "../../core/inline-image.ts";
import { outgoingBody } from "../../core/outgoing-body.ts";
import type { OutgoingBody } from "../../core/outgoing-body.ts";
import { isFailure } from "../../core/provider.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import { promptOf } from "../../core/prompt.ts";
import { answerFormat } from "./answer-format.ts";
import { converseMessages } from "./converse-messages.ts";
import type { InstructedMessages, Message } from "./converse-messages.ts";
import { toolFields } from "./converse-tools.ts";
import type { ToolFields } from "./converse-tools.ts";
import { modelFields } from "./model-fields.ts";
import type { ModelFields } from "./model-fields.ts";
import { familyOf } from "./models.ts";
import { listOf, objectOf } from "../../core/json-value.ts";
import type { Family } from "./models.ts";

const MORE = "additionalModelRequestFields";
const cachePoint = "somewhere in it";
const PLACES: FieldPaths = {
  prompt_cache_key: ["cachePoint"],
  prompt_cache_options: ["cachePoint"],
  prompt_cache_retention: ["cachePoint"],
  parallel_tool_calls: [`${MORE}.tool_choice.disable_parallel_tool_use`],
  reasoning_effort: [
    `${MORE}.thinking.budget_tokens`,
    `${MORE}.output_config.effort`,
    `${MORE}.reasoning_effort`,
    `${MORE}.reasoning`,
    `${MORE}.reasoningConfig`,
  ],
  stop: ["inferenceConfig.stopSequences"],
  temperature: ["inferenceConfig.temperature"],
  top_p: ["inferenceConfig.topP"],
};

/**
 * A chat call as the body of a Converse request (Bedrock API reference, Converse). Only what is named
 * here is sent; `user` never is. Throws only when the call's signal ends it
 * while images are downloaded.
 */
export async function converseRequest(call: ChatCall): Promise<OutgoingBody | ProviderFailure> {
  const { body, upstreamId: model, cap } = call;
  const prompt = promptOf(body);
  if ("kind" in prompt) return prompt;
  const { said } = prompt;
  const inline = await withInlineImages(said, call);
  if ("reason" in inline) return inline;
  const format = answerFormat(call);
  const tools = toolFields(prompt.tools, format, model);
  const mayThink = !tools.isForced && !(isBudgeted(model) && startsWithoutThought(said.turns));
  const fields = modelFields({ body, stops: prompt.stops, model, cap, format, mayThink });
  const words = [format.kind === "told" ? format.words : "", tools.words];
  const request = bodyOf({ call, caches: prompt.caches, said: told(inline, words), tools, fields });
  if (isFailure(request)) return request;
  reportDropped(call, { ...request, ...(hasCachePoint(request) && { cachePoint }) }, PLACES);
  return outgoingBody(request, inline.downloads);
}

type Sendable = {
  readonly call: ChatCall;
  readonly caches: boolean;
  readonly said: InlineConversation;
  readonly tools: ToolFields;
  readonly fields: ModelFields;
};

/** The body, once it is known what is said, with which tools, and what the model takes. */
function bodyOf({ call, caches, said, tools, fields }: Sendable): JsonObject | ProviderFailure {
  const { cap, upstreamId } = call;
  const { toolConfig, toolChoice } = tools;
  const { inference, additional, thoughts } = fields;
  const family = familyOf(upstreamId);
  const toolBlocks = toolConfig !== undefined;
  const messages = converseMessages(said, { family, toolBlocks, thoughts });
  const asked = withInstructions(said.system, messages);
  if (asked.messages.length === 0) return refusal("These messages say nothing.", "messages");
  const more = { ...additional, ...(toolChoice !== undefined && { tool_choice: toolChoice }) };
  return {
    ...(caches ? withCachePoint(asked, family) : asked),
    inferenceConfig: { maxTokens: cap, ...inference },
    ...(toolBlocks && { toolConfig }),
    ...(Object.keys(more).length > 0 && { additionalModelRequestFields: more }),
  };
}

/** Instructions alone are what is asked. */
function withInstructions(
  system: readonly string[],
  messages: readonly Message[],
): InstructedMessages {
  const texts = system.filter((text) => text.trim() !== "").map((text) => ({ text }));
  if (texts.length === 0) return { messages };
  if (messages.length > 0) return { system: texts, messages };
  return { messages: [{ role: "user", content: texts }] };
}

/** The conversation with our own words at its end: what is before them stays as it was cached. */
function told(said: InlineConversation, words: readonly string[]): InlineConversation {
  const parts = words
    .filter((text) => text !== "")
    .map((text) => ({ kind: "text" as const, text: `<system>${text}</system>` }));
  return parts.length === 0
    ? said
    : { ...said, turns: [...said.turns, { role: "user" as const, parts }] };
}

function isBudgeted(model: string): boolean {
  return familyOf(model) === "claude" && claudeRules(model).thinking === "budget";
}

/** Five minutes: an hour is priced apart. */
const CACHE_POINT = { cachePoint: { type: "default" } };

/**
 * What is asked with one cache point (Bedrock user guide, prompt caching) where the client wants its prompt
 * cached: Claude's after the last thing that the user said, so that the next turn finds all before it;
 * Nova's after the instructions, where it is sure to be taken.
 */
function withCachePoint(asked: InstructedMessages, family: Family): InstructedMessages {
  if (family === "nova" && asked.system !== undefined) {
    return { ...asked, system: [...asked.system, CACHE_POINT] };
  }
  if (family !== "claude") return asked;
  const last = asked.messages.findLastIndex(({ role }) => role === "user");
  const messages = asked.messages.map((message, index) =>
    index === last ? { ...message, content: [...message.content, CACHE_POINT] } : message,
  );
  return { ...asked, messages };
}

/** Whether a request has a cache point of ours. */
function hasCachePoint({ system, messages }: JsonObject): boolean {
  const contents = listOf(messages).map(objectOf);
  return [system, ...contents.map(({ content }) => content)].flat().includes(CACHE_POINT);
}
