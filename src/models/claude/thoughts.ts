import type { Part, Turn } from "../core/conversation.ts";
import { textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/provider.ts";

/** What Claude thought travels to the client and back as it was said: altered, it would be refused. */
const THINKING = "anthropic.thinking";
const REDACTED = "anthropic.redacted_thinking";

/** The `reasoning_details` of a thinking block; null for one that could not be sent back. */
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

/** The block that a client's `reasoning_details` stands for; null for other providers' and broken ones. */
export function thoughtBlock(
  detail: JsonObject,
): (JsonObject & { readonly type: "thinking" | "redacted_thinking" }) | null {
  const { type, signature, data, thinking } = detail;
  if (type === REDACTED && textOf(data) !== "") return { type: "redacted_thinking", data };
  if (type !== THINKING || textOf(signature) === "") return null;
  return { type: "thinking", thinking: textOf(thinking), signature };
}

/**
 * Whether the calls that the model is in the midst of began without a thought of its own: with a
 * thinking budget that is a 400.
 */
export function startsWithoutThought(turns: readonly Turn[]): boolean {
  const asked = turns.findLastIndex(
    (turn) => turn.role === "user" && turn.parts.some((part) => part.kind !== "result"),
  );
  const parts = (turns[asked + 1]?.parts ?? []).filter((part) => !isForeignThought(part));
  return parts.some((part) => part.kind === "call") && parts[0]?.kind !== "thought";
}

function isForeignThought(part: Part): boolean {
  return part.kind === "thought" && thoughtBlock(part.detail) === null;
}
