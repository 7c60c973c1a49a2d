import { PDF_MEDIA_TYPE } from "../../core/core-request.ts";
import { CACHE_MARK } from "../../core/cache-marks.ts";
import { createBadImageFailure, toConversation } from "../../core/conversation.ts";
import type { Conversation, ConversationPart, ConversationTurn } from "../../core/conversation.ts";
import type { ParsedImageUrl } from "../../core/data-url.ts";
import type { JsonObject, ProviderFailure, ProviderCall } from "../../core/provider.ts";
import { AcceptedToolCallIds, WORD_CHARACTER_ID_FORMAT } from "../../core/tool-calls.ts";
import { detailToClaudeThought } from "../../claude/thoughts.ts";
import { listOf, readAnyValue, createObjectReader } from "../../core/json-value.ts";

const IMAGE_TYPES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
]);

const OPENING_TEXT = "Hello.";

/**
 * Converts turns. Drops blank texts, for which the host returns 400. With thinking (`thinks`),
 * includes earlier thoughts.
 */
export function toClaudeMessages(
  { system, markedSystem, turns }: Conversation,
  thinks: boolean,
): { readonly system: readonly JsonObject[]; readonly messages: readonly JsonObject[] } {
  const ids = new AcceptedToolCallIds(WORD_CHARACTER_ID_FORMAT);
  const messages = turns
    .map(({ role, parts }) => ({ role, content: toBlocks(parts, thinks, ids) }))
    .filter(({ content }) => content.length > 0);
  const instructions = system.flatMap((text, index) => textBlocks(text, markedSystem?.has(index)));
  if (messages.length === 0) {
    // Without messages, the instructions are the prompt.
    const content = instructions.length > 0 ? instructions : textBlocks(OPENING_TEXT);
    return { system: [], messages: [{ role: "user", content }] };
  }
  if (messages[0]?.role !== "user") {
    messages.unshift({ role: "user", content: textBlocks(OPENING_TEXT) });
  }
  const last = messages.at(-1);
  if (last?.role === "assistant") last.content = trimLastText(last.content);
  return { system: instructions, messages };
}

export function findImageProblem(turns: readonly ConversationTurn[]): ProviderFailure | null {
  for (const { parts } of turns) {
    for (const part of parts) {
      if (part.kind === "image" && imageSource(part.image) === null) {
        return createBadImageFailure(
          "Images must be PNG, JPEG, GIF or WebP, as a base64 data URL or an http or https address.",
          part.at,
        );
      }
    }
  }
  return null;
}

function imageSource(image: ParsedImageUrl): JsonObject | null {
  if ("url" in image) return /^https?:\/\//i.test(image.url) ? { type: "url", ...image } : null;
  const type = image.mediaType === "image/jpg" ? "image/jpeg" : image.mediaType;
  if (!IMAGE_TYPES.has(type) && !isPdf(image)) return null;
  return { type: "base64", media_type: type, data: image.base64 };
}

function isPdf(image: ParsedImageUrl): boolean {
  return "mediaType" in image && image.mediaType === PDF_MEDIA_TYPE;
}

type Block = JsonObject & { readonly text?: unknown };

function toBlocks(
  parts: readonly ConversationPart[],
  thinks: boolean,
  ids: AcceptedToolCallIds,
): Block[] {
  const blocks = parts.flatMap((part) => toBlock(part, thinks, ids));
  // The host rejects a message that ends with reasoning.
  while (isThinkingBlock(blocks.at(-1))) blocks.pop();
  return blocks;
}

function toBlock(part: ConversationPart, thinks: boolean, ids: AcceptedToolCallIds): Block[] {
  switch (part.kind) {
    case "text":
      return textBlocks(part.text, part.isMarked);
    case "image":
      return [
        {
          type: isPdf(part.image) ? "document" : "image",
          source: imageSource(part.image),
          ...(part.isMarked && CACHE_MARK),
        },
      ];
    case "thought": {
      const block = thinks ? detailToClaudeThought(part.detail) : null;
      return block === null ? [] : [block];
    }
    case "call":
      return [{ type: "tool_use", id: ids.idFor(part.id), name: part.name, input: part.input }];
    case "result": {
      const content = part.text.trim() === "" ? {} : { content: part.text };
      return [{ type: "tool_result", tool_use_id: ids.idFor(part.id), ...content }];
    }
  }
}

function textBlocks(text: string, isMarked = false): Block[] {
  return text.trim() === "" ? [] : [{ type: "text", text, ...(isMarked && CACHE_MARK) }];
}

export function isThinkingBlock(block: JsonObject | undefined): boolean {
  const { type } = block ?? {};
  return type === "thinking" || type === "redacted_thinking";
}

function trimLastText(blocks: readonly Block[]): Block[] {
  return blocks.map((block, index) =>
    index === blocks.length - 1 && typeof block.text === "string"
      ? { ...block, text: block.text.trimEnd() }
      : block,
  );
}

const readType = createObjectReader({ type: readAnyValue });

const BLOCK_PATH = /^messages\.(\d+)\.content\.(\d+)\.image\b/;
const UNNAMED_IMAGE_ERROR = /^(?:could not process image|unable to download the file)/i;

/**
 * Adds `param` to a failure about an image. If the host names no block, uses the last image,
 * because the host accepted the earlier turns.
 */
export function addImageParam(failure: ProviderFailure, call: ProviderCall): ProviderFailure {
  const { kind, message = "" } = failure;
  if (kind !== "refused" || call.kind !== "chat" || call.native !== undefined) return failure;
  const [, turn, block] = BLOCK_PATH.exec(message) ?? [];
  if (turn === undefined && !UNNAMED_IMAGE_ERROR.test(message)) return failure;
  const conversation = toConversation(call.body);
  if ("reason" in conversation) return failure;
  const imagePaths = conversation.turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.kind === "image" ? [part.at] : [])),
  );
  const { messages } = toClaudeMessages(conversation, true);
  const messageContent = messages[Number(turn)]?.["content"];
  const imageBlock: unknown = Array.isArray(messageContent)
    ? messageContent[Number(block)]
    : undefined;
  const images = messages
    .flatMap(({ content }) => listOf(content))
    .filter((one) => readType(one).type === "image");
  const at = imagePaths.at(images.findIndex((image) => image === imageBlock));
  return at === undefined ? failure : { ...failure, ...createBadImageFailure(message, at) };
}
