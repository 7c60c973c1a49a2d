import { finishReasonOf } from "../../core/finish-reason.ts";
import { textOf } from "../../core/json-value.ts";
import { argumentsText } from "../../core/chat-message.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { FinishReason } from "../../core/finish-reason.ts";
import { anyValue, listReader, optionalReader, objectReader } from "../../core/shape.ts";
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
 * in Workers AI's format. If an event has fields of both formats, OpenAI's fields count.
 */
export function readWorkersAiPiece(raw: JsonObject): Piece {
  const { choices, response, tool_calls: calls, finish_reason: rawReason } = readBody(raw);
  if (choices === null) {
    return { text: toText(response), reasoning: "", calls, finish: readFinishReason(rawReason) };
  }
  const { message, delta, finish_reason: reason } = choices;
  const { content: text, reasoning_content: thought, reasoning, tool_calls } = message ?? delta;
  return {
    text,
    reasoning: thought || reasoning,
    calls: tool_calls,
    finish: readFinishReason(reason),
  };
}

const functionReader = objectReader({ name: textOf, arguments: argumentsText });
const callReader = objectReader({
  index: (index) => (Number.isSafeInteger(index) ? Number(index) : null),
  id: textOf,
  function: optionalReader(functionReader),
});
const readCall: ValueReader<StreamedCall> = (raw) => {
  const { function: functionCall, ...call } = callReader(raw);
  return { index: call.index, id: call.id, ...(functionCall ?? functionReader(raw)) };
};
const readMessage = objectReader({
  content: textOf,
  reasoning_content: textOf,
  reasoning: textOf,
  tool_calls: listReader(readCall),
});
const readChoice = objectReader({
  message: (raw) => (raw === null || raw === undefined ? null : readMessage(raw)),
  delta: readMessage,
  finish_reason: anyValue,
});
const readBody = objectReader({
  choices: (raw) => (Array.isArray(raw) ? readChoice(raw[0]) : null),
  response: anyValue,
  tool_calls: listReader(readCall),
  finish_reason: anyValue,
});

function toText(response: unknown): string {
  if (typeof response === "string") return response;
  return response === null || response === undefined ? "" : JSON.stringify(response);
}

function readFinishReason(raw: unknown): Piece["finish"] {
  if (typeof raw !== "string" || raw === "") return null;
  return finishReasonOf(raw) ?? (raw === "error" ? raw : "abort");
}
