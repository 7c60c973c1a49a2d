import { listOf } from "../../core/json-value.ts";
import { anyValue, objectReader } from "../../core/shape.ts";
import { badImageFailure, conversationOf } from "../../core/conversation.ts";
import type { ProviderCall, ProviderFailure } from "../../core/provider.ts";
import { claudeMessagesOf } from "./host-messages.ts";

const readType = objectReader({ type: anyValue });

const BLOCK_PATH = /^messages\.(\d+)\.content\.(\d+)\.image\b/;
const UNNAMED_IMAGE_ERROR = /^(?:could not process image|unable to download the file)/i;

/**
 * Adds `param` to a failure about an image. If the host names no block, the last image failed,
 * because the host accepted the earlier turns.
 */
export function addImageParam(failure: ProviderFailure, call: ProviderCall): ProviderFailure {
  const { kind, message = "" } = failure;
  if (kind !== "refused" || call.kind !== "chat" || call.native !== undefined) return failure;
  const [, turn, block] = BLOCK_PATH.exec(message) ?? [];
  if (turn === undefined && !UNNAMED_IMAGE_ERROR.test(message)) return failure;
  const conversation = conversationOf(call.body);
  if ("reason" in conversation) return failure;
  const imagePaths = conversation.turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.kind === "image" ? [part.at] : [])),
  );
  const { messages } = claudeMessagesOf(conversation, true);
  const messageContent = messages[Number(turn)]?.["content"];
  const imageBlock: unknown = Array.isArray(messageContent)
    ? messageContent[Number(block)]
    : undefined;
  const images = messages
    .flatMap(({ content }) => listOf(content))
    .filter((one) => readType(one).type === "image");
  const at = imagePaths.at(images.findIndex((image) => image === imageBlock));
  return at === undefined ? failure : { ...failure, ...badImageFailure(message, at) };
}
