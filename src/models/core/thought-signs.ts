import { isObject, listOf, objectOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./provider.ts";
import { shape } from "./shape.ts";

/** Sealed thoughts are base64 (three bytes in four characters), and a token has about four bytes. */
const SEALED_CHARACTERS_A_TOKEN = 16 / 3;
/** Fields that carry a thought which only its provider can read; their size is proportional to the thought's. */
const SEALS: ReadonlySet<string> = new Set([
  "signature",
  "thought_signature",
  "data",
  "encrypted_content",
]);

/** Returns the tokens of the thoughts that are sealed in `reasoning_details` or `extra_content`. */
export function sealedTokens(sealed: unknown): number {
  return sealedCharacters(sealed) / SEALED_CHARACTERS_A_TOKEN;
}

const DEPTH_MAX = 3;

function sealedCharacters(value: unknown, depth = DEPTH_MAX): number {
  if (depth === 0) return 0;
  let characters = 0;
  for (const one of listOf(value)) characters += sealedCharacters(one, depth - 1);
  if (!isObject(value)) return characters;
  for (const [name, part] of Object.entries(value)) {
    if (SEALS.has(name)) characters += textOf(part).length;
    else if (typeof part === "object") characters += sealedCharacters(part, depth - 1);
  }
  return characters;
}

/** The sign of a thought in an event of the Messages or Responses protocol. */
export type ThoughtSign = {
  /** The text of the event is a thought, or the model begins to think. */
  readonly isThought: boolean;
  /** Tokens of the thought that the event seals. */
  readonly sealed: number;
};

const typed = shape({ type: textOf });
const NO_SIGN: ThoughtSign = { isThought: false, sealed: 0 };

/** Returns what a native event reveals of the model's thoughts. */
export function thoughtSign({ type, delta, content_block: block, item }: JsonObject): ThoughtSign {
  switch (type) {
    case "content_block_start":
    case "content_block_delta": {
      const part = isObject(block) ? block : objectOf(delta);
      if (!/thinking|signature/.test(typed(part).type)) return NO_SIGN;
      return { isThought: true, sealed: sealedTokens(part) };
    }
    case "response.output_item.added":
      return { isThought: typed(item).type === "reasoning", sealed: 0 };
    case "response.output_item.done": {
      const isThought = typed(item).type === "reasoning";
      return isThought ? { isThought, sealed: sealedTokens(item) } : NO_SIGN;
    }
    default:
      return textOf(type).startsWith("response.reasoning")
        ? { isThought: true, sealed: 0 }
        : NO_SIGN;
  }
}
