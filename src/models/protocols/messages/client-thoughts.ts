import { textOf } from "../../core/json-value.ts";
import { isSerializedThoughts, parseThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import type { JsonObject } from "../../core/provider.ts";
import { claudeThoughtDetail } from "../../claude/thoughts.ts";

export type RecalledThoughts = Pick<StoredThoughts, "details"> & {
  /** The text of other providers' thoughts. Some hosts require it between tool calls. */
  readonly reasoning: string;
  readonly extras: ReadonlyMap<string, JsonObject>;
};

/**
 * Reads the thoughts that a client sends back. Those of Claude are unchanged blocks. Those of other
 * providers are encoded in `signature`, and Claude never gets them.
 */
export function recallThoughts(blocks: readonly JsonObject[]): RecalledThoughts {
  const details: JsonObject[] = [];
  const extras = new Map<string, JsonObject>();
  let reasoning = "";
  for (const block of blocks) {
    const [type, data] = [textOf(block["type"]), textOf(block["data"])];
    const [thinking, signature] = [textOf(block["thinking"]), textOf(block["signature"])];
    if (type === "redacted_thinking" || !isSerializedThoughts(signature)) {
      const detail = claudeThoughtDetail({ type, data, thinking, signature });
      if (detail !== null) details.push(detail);
      continue;
    }
    reasoning += thinking;
    const stored = parseThoughts(signature); // null if the client altered it
    details.push(...(stored?.details ?? []));
    for (const [id, extra] of Object.entries(stored?.extras ?? {})) extras.set(id, extra);
  }
  return { details, reasoning, extras };
}
