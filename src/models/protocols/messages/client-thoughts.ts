import { textOf } from "../../core/json-value.ts";
import { isSealedThoughts, unsealThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import type { JsonObject } from "../../core/provider.ts";

/**
 * Claude rejects changed blocks. Reasoning of other providers is encoded in `signature` for the
 * client to send back. Claude never gets it.
 */
const THINKING = "anthropic.thinking";
const REDACTED = "anthropic.redacted_thinking";
export type RecalledThoughts = Pick<StoredThoughts, "details"> & {
  /** The text of other providers' thoughts. Some hosts require it between tool calls. */
  readonly reasoning: string;
  readonly extras: ReadonlyMap<string, JsonObject>;
};

/** Converts an entry of `reasoning_details`. Returns null if another provider created it. */
export function toClaudeThinkingBlock(detail: JsonObject): JsonObject | null {
  const { type, signature, data } = detail;
  if (type === REDACTED && textOf(data) !== "") return { type: "redacted_thinking", data };
  if (type !== THINKING || textOf(signature) === "") return null;
  return { type: "thinking", thinking: textOf(detail["thinking"]), signature };
}

export function recallThoughts(blocks: readonly JsonObject[]): RecalledThoughts {
  const details: JsonObject[] = [];
  const extras = new Map<string, JsonObject>();
  let reasoning = "";
  for (const block of blocks) {
    if (block["type"] === "redacted_thinking") {
      if (textOf(block["data"]) !== "") details.push({ type: REDACTED, data: block["data"] });
      continue;
    }
    const signature = textOf(block["signature"]);
    const thinking = textOf(block["thinking"]);
    if (!isSealedThoughts(signature)) {
      if (signature !== "") details.push({ type: THINKING, thinking, signature });
      continue;
    }
    reasoning += thinking;
    const stored = unsealThoughts(signature); // null if the client altered it
    details.push(...(stored?.details ?? []));
    for (const [id, extra] of Object.entries(stored?.extras ?? {})) extras.set(id, extra);
  }
  return { details, reasoning, extras };
}
