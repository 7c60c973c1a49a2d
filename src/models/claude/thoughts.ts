import type { ConversationPart, ConversationTurn } from "../core/conversation.ts";
import { textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/provider.ts";

const THINKING = "anthropic.thinking";
const REDACTED = "anthropic.redacted_thinking";

/**
 * Converts a thinking block to an entry of `reasoning_details`. Returns null for a block without a
 * signature or data, which Claude would reject later.
 */
export function claudeThoughtToDetail({
  type,
  data,
  thinking,
  signature,
}: Thought): JsonObject | null {
  if (type === "redacted_thinking") return data === "" ? null : { type: REDACTED, data };
  return signature === "" ? null : { type: THINKING, thinking, signature };
}

type Thought = {
  readonly type: string;
  readonly data: string;
  readonly thinking: string;
  readonly signature: string;
};

/**
 * Converts an entry of `reasoning_details` to a thinking block. Returns null if Claude would reject
 * the block.
 */
export function detailToClaudeThought(
  detail: JsonObject,
): (JsonObject & { readonly type: "thinking" | "redacted_thinking" }) | null {
  const { type, signature, data, thinking } = detail;
  if (type === REDACTED && textOf(data) !== "") return { type: "redacted_thinking", data };
  if (type !== THINKING || textOf(signature) === "") return null;
  return { type: "thinking", thinking: textOf(thinking), signature };
}

/**
 * Reports whether the turn after the last user message calls tools but doesn't begin with a
 * thought. With a thinking budget, Claude returns 400 for such a turn.
 */
export function hasCallsWithoutThought(turns: readonly ConversationTurn[]): boolean {
  const lastUserTurn = turns.findLastIndex(
    (turn) => turn.role === "user" && turn.parts.some((part) => part.kind !== "result"),
  );
  const parts = (turns[lastUserTurn + 1]?.parts ?? []).filter((part) => !isForeignThought(part));
  return parts.some((part) => part.kind === "call") && parts[0]?.kind !== "thought";
}

function isForeignThought(part: ConversationPart): boolean {
  return part.kind === "thought" && detailToClaudeThought(part.detail) === null;
}
