import { claudeThoughtBlock } from "../../claude/thoughts.ts";
import { isObject } from "../../core/json-value.ts";
import type { ConversationWithImages, PartWithImages } from "../../core/inline-image.ts";
import type { JsonObject } from "../../core/provider.ts";
import { NINE_CHARACTER_ID, ToolCallIds, WORD_64_ID } from "../../core/tool-call-id.ts";
import type { BedrockFamily } from "./models.ts";

type Block = JsonObject;
export type ConverseMessage = { readonly role: "user" | "assistant"; readonly content: Block[] };

export type InstructedMessages = {
  readonly system?: readonly JsonObject[];
  readonly messages: readonly ConverseMessage[];
};

type MessageRules = {
  readonly family: BedrockFamily;
  /** Whether to send calls and results as blocks. Without tools, Bedrock rejects such blocks. */
  readonly toolBlocks: boolean;
  readonly thoughts: boolean;
};

const OPENING_TEXT = "Hello.";
/** Replaces an empty tool result, because Bedrock returns 400 for blank texts. */
const NO_RESULT = "(empty)";

/**
 * Returns messages that start with the user, alternate roles and contain no blank text. Without
 * tools, calls and results become text.
 */
export function converseMessages(
  { turns }: ConversationWithImages,
  rules: MessageRules,
): readonly ConverseMessage[] {
  const ids = new ToolCallIds(rules.family === "mistral" ? NINE_CHARACTER_ID : WORD_64_ID);
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

function toBlocks(part: PartWithImages, rules: MessageRules, ids: ToolCallIds): Block[] {
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
  const block = claudeThoughtBlock(detail);
  if (block?.type !== "thinking") return []; // Converse has another format for redacted thoughts
  const { thinking: text, signature } = block;
  return [{ reasoningContent: { reasoningText: { text, signature } } }];
}

function trimLastText(message: ConverseMessage | undefined): void {
  const block = message?.role === "assistant" ? message.content.at(-1) : undefined;
  if (!isObject(block) || typeof block["text"] !== "string") return;
  message?.content.splice(-1, 1, { text: block["text"].trimEnd() });
}
