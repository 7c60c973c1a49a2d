import { claudeRules } from "../anthropic/claude-rules.ts";
import { conversationOf, refusal, unsupported } from "../conversation.ts";
import { withInlineImages } from "../inline-image.ts";
import type { InlineConversation } from "../inline-image.ts";
import type { JsonObject, ProviderCall, ProviderFailure } from "../provider.ts";
import { toolsOf } from "../tools.ts";
import { answerFormat } from "./answer-format.ts";
import { converseMessages } from "./converse-messages.ts";
import type { Message } from "./converse-messages.ts";
import { toolFields } from "./converse-tools.ts";
import { modelFields } from "./model-fields.ts";
import { familyOf } from "./models.ts";
import type { Family } from "./models.ts";

/**
 * A chat call as the body of a Converse request (Bedrock API reference, Converse; reference/providers.md
 * 1.7). Only what is named here is sent; `user` never is. Throws only when the call's signal ends it
 * while images are downloaded.
 */
export async function converseRequest(call: ProviderCall): Promise<JsonObject | ProviderFailure> {
  const { body, cap, upstreamId } = call;
  if (cap === null) return { kind: "disabled", reason: "no_cap" };
  if (typeof body["n"] === "number" && body["n"] > 1) return unsupported("Several choices", "n");
  const said = conversationOf(body);
  if ("reason" in said) return said;
  const tools = toolsOf(body);
  if ("reason" in tools) return tools;
  const inline = await withInlineImages(said, call.signal);
  if ("reason" in inline) return inline;
  const format = answerFormat(call);
  const { toolConfig, toolChoice, isForced, words } = toolFields(tools, format, upstreamId);
  const mayThink = !isForced && !(isBudgeted(upstreamId) && beginsWithoutThought(inline));
  const { inference, additional, thoughts } = modelFields(body, upstreamId, cap, mayThink);
  const family = familyOf(upstreamId);
  const toldWords = [format.kind === "told" ? format.words : "", words];
  const messages = converseMessages(told(inline, toldWords), {
    family,
    toolBlocks: toolConfig !== undefined,
    thoughts,
  });
  const system = inline.system.filter((text) => text.trim() !== "").map((text) => ({ text }));
  const asked = inOrder(system, messages);
  if (asked.messages.length === 0) return refusal("Nothing is said in these messages.", "messages");
  const more = { ...additional, ...(toolChoice !== undefined && { tool_choice: toolChoice }) };
  return {
    ...(cachesPrompt(body) ? withCachePoint(asked, family) : asked),
    inferenceConfig: { maxTokens: cap, ...inference },
    ...(toolConfig !== undefined && { toolConfig }),
    ...(Object.keys(more).length > 0 && { additionalModelRequestFields: more }),
  };
}

type Text = { readonly text: string };
type Asked = { readonly system?: readonly JsonObject[]; readonly messages: readonly Message[] };

/** Instructions alone are what is asked. */
function inOrder(system: readonly Text[], messages: readonly Message[]): Asked {
  if (system.length === 0) return { messages };
  if (messages.length > 0) return { system, messages };
  return { messages: [{ role: "user", content: [...system] }] };
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

/** Whether the calls that the model is in the midst of began without a thought of its own. */
function beginsWithoutThought({ turns }: InlineConversation): boolean {
  const asked = turns.findLastIndex(
    ({ role, parts }) => role === "user" && parts.some((part) => part.kind !== "result"),
  );
  const parts = turns[asked + 1]?.parts ?? [];
  return parts.some((part) => part.kind === "call") && parts[0]?.kind !== "thought";
}

function cachesPrompt(body: JsonObject): boolean {
  const fields = ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"];
  return fields.some((field) => body[field] !== undefined);
}

/** Five minutes: an hour is priced apart. */
const CACHE_POINT = { cachePoint: { type: "default" } };

/**
 * One cache point (Bedrock user guide, prompt caching): Claude's after the last thing that the user said,
 * so that the next turn finds all before it; Nova's after the instructions, where it is sure to be taken.
 */
function withCachePoint(asked: Asked, family: Family): Asked {
  if (family === "nova") {
    return asked.system === undefined
      ? asked
      : { ...asked, system: [...asked.system, CACHE_POINT] };
  }
  if (family !== "claude") return asked;
  const last = asked.messages.findLastIndex(({ role }) => role === "user");
  const messages = asked.messages.map((message, index) =>
    index === last ? { ...message, content: [...message.content, CACHE_POINT] } : message,
  );
  return { ...asked, messages };
}
