import type { FinishReason } from "../../core/chunk-builder.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import { argumentsText } from "../../core/chat-message.ts";
import type { JsonObject } from "../../core/provider.ts";

/** What an answer, or one event of a stream, says: in Workers AI's own form or in OpenAI's. */
export type Piece = {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly WireCall[];
  /** Null where it names none; "error" and "abort" where the model gave up. */
  readonly finish: FinishReason | "error" | "abort" | null;
};
/** A tool call or a part of one; "" for what it does not name. */
export type WireCall = {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
};

/**
 * Reads either form. The form is told by the answer: models change theirs,
 * and streams in OpenAI's form end with an event in the other one. Where an event carries both, they
 * say the same, and OpenAI's counts.
 */
export function pieceOf(raw: JsonObject): Piece {
  if (!Array.isArray(raw["choices"])) {
    return {
      text: jsonText(raw["response"]),
      reasoning: "",
      calls: listOf(raw["tool_calls"]).filter(isObject).map(callOf),
      finish: finishOf(raw["finish_reason"]),
    };
  }
  const choice = objectOf(raw["choices"][0]);
  const said = objectOf(choice["message"] ?? choice["delta"]);
  return {
    text: textOf(said["content"]),
    reasoning: textOf(said["reasoning_content"]) || textOf(said["reasoning"]),
    calls: listOf(said["tool_calls"]).filter(isObject).map(callOf),
    finish: finishOf(choice["finish_reason"]),
  };
}

/** JSON mode answers with the value itself. */
function jsonText(response: unknown): string {
  if (typeof response === "string") return response;
  return response === null || response === undefined ? "" : JSON.stringify(response);
}

/** OpenAI's nesting, or name and arguments on the call itself. */
function callOf(raw: JsonObject): WireCall {
  const called = isObject(raw["function"]) ? raw["function"] : raw;
  return {
    index: Number.isSafeInteger(raw["index"]) ? (raw["index"] as number) : null,
    id: textOf(raw["id"]),
    name: textOf(called["name"]),
    arguments: argumentsText(called["arguments"]),
  };
}

const FINISH: Readonly<Record<string, Piece["finish"]>> = {
  "": null,
  length: "length",
  model_length: "length",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
  error: "error",
  abort: "abort",
};

function finishOf(raw: unknown): Piece["finish"] {
  if (typeof raw !== "string") return null;
  return Object.hasOwn(FINISH, raw) ? (FINISH[raw] ?? null) : "stop";
}
