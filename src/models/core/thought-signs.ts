import { isObject, listOf, objectOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./provider.ts";
import { objectReader } from "./shape.ts";

/**
 * Encrypted reasoning is base64 (four characters for three bytes), with about four bytes per token.
 */
const ENCRYPTED_CHARACTERS_PER_TOKEN = 16 / 3;
const ENCRYPTED_FIELDS: ReadonlySet<string> = new Set([
  "signature",
  "thought_signature",
  "data",
  "encrypted_content",
]);

export function encryptedReasoningTokens(sealed: unknown): number {
  return encryptedCharacters(sealed) / ENCRYPTED_CHARACTERS_PER_TOKEN;
}

const DEPTH_MAX = 3;

function encryptedCharacters(value: unknown, depth = DEPTH_MAX): number {
  if (depth === 0) return 0;
  let characters = 0;
  for (const one of listOf(value)) characters += encryptedCharacters(one, depth - 1);
  if (!isObject(value)) return characters;
  for (const [name, part] of Object.entries(value)) {
    if (ENCRYPTED_FIELDS.has(name)) characters += textOf(part).length;
    else if (typeof part === "object") characters += encryptedCharacters(part, depth - 1);
  }
  return characters;
}

type ReasoningSign = {
  readonly isThought: boolean;
  readonly sealed: number;
};

const typeReader = objectReader({ type: textOf });
const NO_REASONING_SIGN: ReasoningSign = { isThought: false, sealed: 0 };

export function reasoningSignOf({
  type,
  delta,
  content_block: block,
  item,
}: JsonObject): ReasoningSign {
  switch (type) {
    case "content_block_start":
    case "content_block_delta": {
      const part = isObject(block) ? block : objectOf(delta);
      if (!/thinking|signature/.test(typeReader(part).type)) return NO_REASONING_SIGN;
      return { isThought: true, sealed: encryptedReasoningTokens(part) };
    }
    case "response.output_item.added":
      return { isThought: typeReader(item).type === "reasoning", sealed: 0 };
    case "response.output_item.done": {
      const isThought = typeReader(item).type === "reasoning";
      return isThought ? { isThought, sealed: encryptedReasoningTokens(item) } : NO_REASONING_SIGN;
    }
    default:
      return textOf(type).startsWith("response.reasoning")
        ? { isThought: true, sealed: 0 }
        : NO_REASONING_SIGN;
  }
}
