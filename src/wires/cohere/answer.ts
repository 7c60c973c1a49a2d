import type { Usage } from "../../lib/usage.ts";
import type { FinishReason } from "../../core/chunk-builder.ts";
import { completionOf } from "../../core/completion.ts";
import { embeddingList, textsIn } from "../../core/embedding-batches.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import { readUsage } from "../../core/chat-usage.ts";
import type { Answer, EmbeddingsCall, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { textIn, withSpent } from "../../core/spent.ts";

/** The answer of POST /v2/chat as OpenAI's completion; null when it is none. */
export function chatAnswer(raw: JsonObject): Answer | ProviderFailure | null {
  const { message } = raw;
  if (!isObject(message)) return null;
  const finish = finishOf(raw["finish_reason"]);
  const parts = listOf(message["content"]).filter(isObject);
  const joined = (field: string) => parts.map((part) => textOf(part[field])).join("");
  const tools = listOf(message["tool_calls"])
    .filter(isObject)
    .map((call) => {
      const called = objectOf(call["function"]);
      const name = textOf(called["name"]);
      return { id: textOf(call["id"]), name, arguments: argumentsOf(called["arguments"]) };
    });
  const content = textOf(message["tool_plan"]) + joined("text");
  const reasoning = joined("thinking");
  const said = { content, reasoning, tools, finish: finish ?? "stop" };
  const answer = completionOf([said], usageOf(raw["usage"]));
  if (finish !== null) return answer;
  const spent = { usage: answer.usage, said: textIn(answer.body) };
  return withSpent(gaveUp(raw["finish_reason"]), spent);
}

/** Tools without arguments are called with null, also as a text. */
export function argumentsOf(raw: unknown): string {
  if (isObject(raw)) return JSON.stringify(raw);
  return raw === "null" ? "" : textOf(raw);
}

/** What is billed; the larger `tokens` count Cohere's own instructions too, cached ones among them. */
export function usageOf(raw: unknown): Usage | null {
  const billed = objectOf(objectOf(raw)["billed_units"]);
  return billedUsage(billed["input_tokens"], billed["output_tokens"]);
}

function billedUsage(input: unknown, output: unknown): Usage | null {
  return readUsage({ prompt_tokens: input, completion_tokens: output }, "chat");
}

const FINISH: Readonly<Record<string, FinishReason>> = {
  COMPLETE: "stop",
  STOP_SEQUENCE: "stop",
  MAX_TOKENS: "length",
  TOOL_CALL: "tool_calls",
};

/** Null where the model gave up (ERROR, TIMEOUT) or does not say why it ended. */
export function finishOf(raw: unknown): FinishReason | null {
  if (typeof raw !== "string" || /^(ERROR|TIMEOUT)/.test(raw)) return null;
  return Object.hasOwn(FINISH, raw) ? (FINISH[raw] ?? "stop") : "stop";
}

/** The failure of an answer whose finish reason is none. An ERROR is of the answer, which the request may have provoked. */
export function gaveUp(raw: unknown): ProviderFailure {
  if (textOf(raw).startsWith("ERROR")) {
    return { kind: "retry", reason: "broken_off", fault: "request" };
  }
  return { kind: "retry", reason: raw === "TIMEOUT" ? "timeout" : "broken_off" };
}

/** The answer of POST /v2/embed; null when a vector is missing. */
export function embedAnswer(raw: JsonObject, call: EmbeddingsCall): Answer | null {
  const vectors = listOf(objectOf(raw["embeddings"])["float"]);
  if (vectors.length !== textsIn(call).length || !vectors.every(isVector)) return null;
  const billed = objectOf(objectOf(raw["meta"])["billed_units"]);
  return embeddingList(vectors, billedUsage(billed["input_tokens"], 0));
}

function isVector(raw: unknown): boolean {
  return Array.isArray(raw) && raw.length > 0 && raw.every((value) => typeof value === "number");
}
