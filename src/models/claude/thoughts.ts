import type { Part, Turn } from "../core/conversation.ts";
import { textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/provider.ts";

/**
 * The format of Claude's thoughts. They are passed on unchanged, because altered ones are rejected.
 */
const THINKING = "anthropic.thinking";
const REDACTED = "anthropic.redacted_thinking";

/** Returns a block's `reasoning_details`, or null if it can't be sent back. */
export function thoughtDetail({ type, data, thinking, signature }: Thought): JsonObject | null {
  if (type === "redacted_thinking") return data === "" ? null : { type: REDACTED, data };
  return signature === "" ? null : { type: THINKING, thinking, signature };
}

type Thought = {
  readonly type: string;
  readonly data: string;
  readonly thinking: string;
  readonly signature: string;
};

/** Returns the block for `reasoning_details`, or null for invalid ones and other providers'. */
export function thoughtBlock(
  detail: JsonObject,
): (JsonObject & { readonly type: "thinking" | "redacted_thinking" }) | null {
  const { type, signature, data, thinking } = detail;
  if (type === REDACTED && textOf(data) !== "") return { type: "redacted_thinking", data };
  if (type !== THINKING || textOf(signature) === "") return null;
  return { type: "thinking", thinking: textOf(thinking), signature };
}

/** Reports whether pending calls have no thought, which is a 400 with a thinking budget. */
export function startsWithoutThought(turns: readonly Turn[]): boolean {
  const requested = turns.findLastIndex(
    (turn) => turn.role === "user" && turn.parts.some((part) => part.kind !== "result"),
  );
  const parts = (turns[requested + 1]?.parts ?? []).filter((part) => !isForeignThought(part));
  return parts.some((part) => part.kind === "call") && parts[0]?.kind !== "thought";
}

function isForeignThought(part: Part): boolean {
  return part.kind === "thought" && thoughtBlock(part.detail) === null;
}
