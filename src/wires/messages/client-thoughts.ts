import { fromBase64, toBase64 } from "../../core/base64.ts";
import { isObject, isShallow, listOf, parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

/**
 * Reasoning in the Messages dialect and in the core (`reasoning_details`). Claude's own blocks travel
 * byte for byte: altered, they are refused. What another maker needs back travels in `signature`,
 * behind a mark of ours, and is dropped where Claude itself would read it.
 */
const THINKING = "anthropic.thinking";
const REDACTED = "anthropic.redacted_thinking";
/** What stands beside a tool call (`extra_content`: Google's thought signature), for the call of that id. */
const CALL_EXTRA = "turnpike.call_extra";
/** Begins every signature that we made. */
const MARK = "tpk1.";

/** What an assistant's thinking blocks bring back to the core. */
export type Remembered = {
  readonly details: readonly JsonObject[];
  /** Readable thoughts without anything to send back; some hosts want them in a tool loop. */
  readonly reasoning: string;
  /** `extra_content` by the id of its tool call. */
  readonly extras: ReadonlyMap<string, JsonObject>;
};

/** A signature that carries what other makers need back; without details it marks the text as ours. */
export function signatureOf(details: readonly JsonObject[]): string {
  return (
    MARK + (details.length === 0 ? "" : toBase64(new TextEncoder().encode(JSON.stringify(details))))
  );
}

/** Whether a signature is one of ours, which Claude itself would refuse. */
export function isOurs(signature: string): boolean {
  return signature.startsWith(MARK);
}

/** The detail that keeps what stands beside a tool call. */
export function callExtra(id: string, extra: JsonObject): JsonObject {
  return { type: CALL_EXTRA, id, extra };
}

/** The block that is a core detail of Claude's; null for everybody else's. */
export function claudeBlock(detail: JsonObject): JsonObject | null {
  const { type, signature, data } = detail;
  if (type === REDACTED && textOf(data) !== "") return { type: "redacted_thinking", data };
  if (type !== THINKING || textOf(signature) === "") return null;
  return { type: "thinking", thinking: textOf(detail["thinking"]), signature };
}

/** What the thinking blocks of one assistant message say to the core; broken ones say nothing. */
export function remembered(blocks: readonly JsonObject[]): Remembered {
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
    if (!isOurs(signature)) {
      if (signature !== "") details.push({ type: THINKING, thinking, signature });
      continue;
    }
    reasoning += thinking;
    for (const detail of detailsIn(signature)) {
      if (detail["type"] === CALL_EXTRA && isObject(detail["extra"])) {
        extras.set(textOf(detail["id"]), detail["extra"]);
      } else details.push(detail);
    }
  }
  return { details, reasoning, extras };
}

/** No detail of any provider nests deeper. */
const LEVELS_MAX = 32;

/** The details in a signature of ours; none in one that was altered: it is the client's own loss. */
function detailsIn(signature: string): readonly JsonObject[] {
  const text = decoded(signature.slice(MARK.length));
  const list = text === null ? null : parseObject(`{"list":${text}}`);
  return listOf(list?.["list"])
    .filter(isObject)
    .filter((detail) => textOf(detail["type"]) !== "" && isShallow(detail, LEVELS_MAX));
}

function decoded(base64: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(fromBase64(base64));
  } catch {
    return null;
  }
}
