import type { FinishReason } from "../../core/chunk-builder.ts";
import { completionOf } from "../../core/completion.ts";
import type { Said, SaidTool } from "../../core/completion.ts";
import { isObject, listOf, numberOf, objectOf, textOf } from "../../core/json-value.ts";
import type { Answer, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { textIn, withSpent } from "../../core/spent.ts";
import { readUsage } from "./usage.ts";

/** One part of a candidate's content; those that we have no word for are left out. */
export type AnswerPart =
  | { readonly kind: "text" | "thought"; readonly text: string }
  | { readonly kind: "call"; readonly tool: SaidTool };

const FINISHED: Readonly<Record<string, FinishReason>> = {
  MAX_TOKENS: "length",
  SAFETY: "content_filter",
  RECITATION: "content_filter",
  BLOCKLIST: "content_filter",
  PROHIBITED_CONTENT: "content_filter",
  SPII: "content_filter",
  LANGUAGE: "content_filter",
  MODEL_ARMOR: "content_filter",
  IMAGE_SAFETY: "content_filter",
  IMAGE_PROHIBITED_CONTENT: "content_filter",
  IMAGE_RECITATION: "content_filter",
};
/** The model said something that cannot be used: another route may do better, and the request may have provoked it. */
const FAILED: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
  "MALFORMED_RESPONSE",
]);

/** What a `finishReason` means: a plain stop unless it is known to mean more. */
export function finishOf(reason: string): FinishReason | ProviderFailure {
  if (FAILED.has(reason)) return { kind: "retry", reason: reason.toLowerCase(), fault: "request" };
  return Object.hasOwn(FINISHED, reason) ? (FINISHED[reason] ?? "stop") : "stop";
}

/** Whether the prompt itself was blocked: an answer without candidates. */
export function isBlocked(raw: JsonObject): boolean {
  const reason = textOf(objectOf(raw["promptFeedback"])["blockReason"]);
  return candidatesOf(raw).length === 0 && reason !== "";
}

/** The candidates of an answer or a chunk, each with its index. */
export function candidatesOf(raw: JsonObject): readonly (readonly [number, JsonObject])[] {
  return listOf(raw["candidates"])
    .filter(isObject)
    .map((candidate, position) => {
      const index = numberOf(candidate["index"]) ?? position;
      return [Number.isSafeInteger(index) && index >= 0 ? index : position, candidate] as const;
    });
}

/** The parts of a candidate in their order; empty texts are none. */
export function partsOf(candidate: JsonObject): AnswerPart[] {
  return listOf(objectOf(candidate["content"])["parts"]).filter(isObject).flatMap(partOf);
}

function partOf(part: JsonObject): AnswerPart[] {
  const text = textOf(part["text"]);
  if (text !== "") return [{ kind: part["thought"] === true ? "thought" : "text", text }];
  const called = objectOf(part["functionCall"]);
  const name = textOf(called["name"]);
  if (name === "") return [];
  const id = textOf(called["id"]);
  const signature = textOf(part["thoughtSignature"]);
  const more = { extra_content: { google: { thought_signature: signature } } };
  const tool = {
    id,
    name,
    arguments: isObject(called["args"]) ? JSON.stringify(called["args"]) : "",
    ...(signature !== "" && { more }),
  };
  return [{ kind: "call", tool }];
}

/** A chat completion of generateContent's answer; null when it is none. */
export function chatAnswer(raw: JsonObject): Answer | ProviderFailure | null {
  const usage = readUsage(raw["usageMetadata"]);
  if (isBlocked(raw)) return completionOf([{ content: "", finish: "content_filter" }], usage);
  const said: Said[] = [];
  for (const [, candidate] of candidatesOf(raw).toSorted(([a], [b]) => a - b)) {
    const finish = finishOf(textOf(candidate["finishReason"]));
    const one = saidOf(partsOf(candidate), typeof finish === "object" ? "stop" : finish);
    said.push(one);
    if (typeof finish === "object") {
      return withSpent(finish, { usage, said: textIn(completionOf(said, null).body) });
    }
  }
  return said.length === 0 ? null : completionOf(said, usage);
}

function saidOf(parts: readonly AnswerPart[], finish: FinishReason): Said {
  const joined = (kind: "text" | "thought"): string =>
    parts.map((part) => (part.kind === kind ? part.text : "")).join("");
  const tools = parts.flatMap((part) => (part.kind === "call" ? [part.tool] : []));
  return { content: joined("text"), reasoning: joined("thought"), tools, finish };
}
