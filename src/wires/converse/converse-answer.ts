import { thoughtDetail } from "../../claude/thoughts.ts";
import type { FinishReason } from "../../core/chunk-builder.ts";
import { completionOf } from "../../core/completion.ts";
import type { SaidTool } from "../../core/completion.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type { Answer, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { textIn, withSpent } from "../../core/spent.ts";
import { converseUsage } from "./converse-usage.ts";

/** Reasons with which a model gave up rather than finished. */
const BROKEN_REASONS: ReadonlySet<string> = new Set([
  "malformed_model_output",
  "malformed_tool_use",
]);
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["guardrail_intervened", "content_filter"],
  ["content_filtered", "content_filter"],
]);

/**
 * OpenAI's reason for a `stopReason`, or null when the model broke off. `tool_use` reads as a stop: that
 * tools were called makes it `tool_calls`, and the answer tool is none of the client's.
 */
export function finishOf(stopReason: unknown): FinishReason | null {
  const reason = textOf(stopReason);
  return BROKEN_REASONS.has(reason) ? null : (FINISH_REASONS.get(reason) ?? "stop");
}

/** The failure of an answer whose model broke off, which the request may have provoked. */
export const BROKEN_OFF: ProviderFailure = {
  kind: "retry",
  reason: "broken_off",
  fault: "request",
};

/**
 * The body of a Converse answer (Bedrock API reference, Converse: Response Syntax); null when it is none.
 * `answerTool`: the tool whose input is the answer, if one was offered.
 */
export function converseAnswer(
  raw: JsonObject,
  answerTool: string | null,
): Answer | ProviderFailure | null {
  const message = objectOf(raw["output"])["message"];
  if (!isObject(message)) return null;
  const finish = finishOf(raw["stopReason"]);
  const said = { content: "", reasoning: "", finish: finish ?? ("stop" as const) };
  const details: JsonObject[] = [];
  const tools: SaidTool[] = [];
  const answers: string[] = [];
  for (const block of listOf(message["content"]).filter(isObject)) {
    said.content += textOf(block["text"]);
    const { text, signature } = objectOf(objectOf(block["reasoningContent"])["reasoningText"]);
    said.reasoning += textOf(text);
    const detail = thoughtDetail({ type: "thinking", thinking: text, signature });
    if (detail !== null) details.push(detail);
    const use = block["toolUse"];
    if (!isObject(use)) continue;
    const input = JSON.stringify(use["input"] ?? {});
    const name = textOf(use["name"]);
    if (name === answerTool) answers.push(input);
    else tools.push({ id: textOf(use["toolUseId"]), name, arguments: input });
  }
  // What is said beside the answer is none; called twice, it was given twice.
  said.content = answers[0] ?? said.content;
  const answer = completionOf([{ ...said, details, tools }], converseUsage(raw["usage"]));
  if (finish !== null) return answer;
  return withSpent(BROKEN_OFF, { usage: answer.usage, said: textIn(answer.body) });
}
