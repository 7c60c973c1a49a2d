import { finishReasonOf } from "../../core/finish-reason.ts";
import { textOf } from "../../core/json-value.ts";
import { argumentsText } from "../../core/chat-message.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { FinishReason } from "../../core/finish-reason.ts";
import { asIs, list, optional, shape } from "../../core/shape.ts";
import type { ValueReader } from "../../core/shape.ts";

type Piece = {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly StreamedCall[];
  /** The finish reason, or null. "error" and "abort" mean that the model gave up. */
  readonly finish: FinishReason | "error" | "abort" | null;
};
export type StreamedCall = {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
};

/**
 * Reads an event in OpenAI's or Workers AI's format. A stream in OpenAI's format ends with an event
 * in Workers AI's format. If an event has fields of both, OpenAI's count.
 */
export function readWorkersAiPiece(raw: JsonObject): Piece {
  const { choices, response, tool_calls: calls, finish_reason: why } = own(raw);
  if (choices === null) {
    return { text: jsonText(response), reasoning: "", calls, finish: finishOf(why) };
  }
  const { message, delta, finish_reason: reason } = choices;
  const { content: text, reasoning_content: thought, reasoning, tool_calls } = message ?? delta;
  return { text, reasoning: thought || reasoning, calls: tool_calls, finish: finishOf(reason) };
}

const called = shape({ name: textOf, arguments: argumentsText });
const beside = shape({
  index: (index) => (Number.isSafeInteger(index) ? Number(index) : null),
  id: textOf,
  function: optional(called),
});
const callOf: ValueReader<StreamedCall> = (raw) => {
  const { function: inside, ...call } = beside(raw);
  return { index: call.index, id: call.id, ...(inside ?? called(raw)) };
};
const message = shape({
  content: textOf,
  reasoning_content: textOf,
  reasoning: textOf,
  tool_calls: list(callOf),
});
const choice = shape({
  message: (raw) => (raw === null || raw === undefined ? null : message(raw)),
  delta: message,
  finish_reason: asIs,
});
const own = shape({
  choices: (raw) => (Array.isArray(raw) ? choice(raw[0]) : null),
  response: asIs,
  tool_calls: list(callOf),
  finish_reason: asIs,
});

function jsonText(response: unknown): string {
  if (typeof response === "string") return response;
  return response === null || response === undefined ? "" : JSON.stringify(response);
}

function finishOf(raw: unknown): Piece["finish"] {
  if (typeof raw !== "string" || raw === "") return null;
  return finishReasonOf(raw) ?? (raw === "error" ? raw : "abort");
}
