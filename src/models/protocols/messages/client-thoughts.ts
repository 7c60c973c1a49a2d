import { textOf } from "../../core/json-value.ts";
import { isSealedThoughts, unsealThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import type { JsonObject } from "../../core/provider.ts";

/**
 * Reasoning in the Messages dialect and in the core (`reasoning_details`). Claude's own blocks travel
 * byte for byte: altered, they are refused. What another maker needs back travels sealed in `signature`,
 * and is dropped where Claude itself would read it.
 */
const THINKING = "anthropic.thinking";
const REDACTED = "anthropic.redacted_thinking";
/** What an assistant's thinking blocks bring back to the core. */
export type RecalledThoughts = Pick<StoredThoughts, "details"> & {
  /** Readable thoughts without anything to send back; some hosts want them in a tool loop. */
  readonly reasoning: string;
  /** `extra_content` by the id of its tool call. */
  readonly extras: ReadonlyMap<string, JsonObject>;
};

/** The block that is a core detail of Claude's; null for everybody else's. */
export function claudeBlock(detail: JsonObject): JsonObject | null {
  const { type, signature, data } = detail;
  if (type === REDACTED && textOf(data) !== "") return { type: "redacted_thinking", data };
  if (type !== THINKING || textOf(signature) === "") return null;
  return { type: "thinking", thinking: textOf(detail["thinking"]), signature };
}

/** What the thinking blocks of one assistant message say to the core; broken ones say nothing. */
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
    const kept = unsealThoughts(signature); // null where it was altered: it is the client's own loss
    details.push(...(kept?.details ?? []));
    for (const [id, extra] of Object.entries(kept?.extras ?? {})) extras.set(id, extra);
  }
  return { details, reasoning, extras };
}
