import { randomBase62 } from "../../shared/id.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Completion, CompletionChoice, Delta, ToolCallDelta } from "./chunk.ts";
import { isCutOffReason } from "./finish-reason.ts";
import type { FinishReason } from "./finish-reason.ts";
import type { JsonObject } from "./provider.ts";
import { openAiUsage } from "./openai-usage.ts";

export type OutputPart =
  | { readonly kind: "text" | "thought" | "refusal"; readonly text: string }
  | { readonly kind: "detail"; readonly detail: JsonObject }
  | { readonly kind: "annotation"; readonly annotation: JsonObject }
  | OutputCall
  | { readonly kind: "finish"; readonly reason: FinishReason };

export type OutputCall = {
  readonly kind: "call";
  /** "" if the provider gave no ID. The gateway then creates one. */
  readonly id: string;
  readonly name: string;
  /** JSON text, or "" if there are none. For a custom tool, its text input. */
  readonly arguments: string;
  readonly isCustom?: true;
  readonly more?: Pick<ToolCallDelta, "extra_content">;
};

export function toCompletion(
  choices: readonly (readonly OutputPart[])[],
  usage: Usage | null,
): { readonly body: Completion; readonly usage: Usage | null } {
  const body = { object: "chat.completion", choices: choices.map(toChoice) };
  return { body: usage === null ? body : { ...body, usage: openAiUsage(usage) }, usage };
}

export function textOfOutputParts(parts: readonly OutputPart[]): string {
  return parts
    .map((one) => {
      if (one.kind === "call") return one.name + one.arguments;
      return "text" in one ? one.text : "";
    })
    .join("");
}

function toChoice(parts: readonly OutputPart[], index: number): CompletionChoice {
  const calls = parts.filter((one) => one.kind === "call");
  const reason = parts.find((one) => one.kind === "finish")?.reason ?? "stop";
  const finish_reason = reason === "stop" && calls.length > 0 ? "tool_calls" : reason;
  return { index, message: toMessage(parts, calls, reason), logprobs: null, finish_reason };
}

function toMessage(
  parts: readonly OutputPart[],
  calls: readonly OutputCall[],
  reason: FinishReason,
): Delta {
  const joinParts = (kind: "text" | "thought" | "refusal"): string =>
    parts.map((one) => (one.kind === kind ? one.text : "")).join("");
  const [text, reasoning, refusal] = [
    joinParts("text"),
    joinParts("thought"),
    joinParts("refusal"),
  ];
  const details = parts.flatMap((one) => (one.kind === "detail" ? [one.detail] : []));
  const annotations = parts.flatMap((one) => (one.kind === "annotation" ? [one.annotation] : []));
  const isCutOff = reason === "content_filter" && !parts.some(({ kind }) => kind === "text");
  const hasNoText = text === "" && (calls.length > 0 || refusal !== "" || isCutOff);
  return {
    role: "assistant",
    content: hasNoText ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(annotations.length > 0 && { annotations }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => toToolCall(call, isCutOffReason(reason))),
    }),
  };
}

function toToolCall(
  { id: given, name, arguments: text, isCustom, more }: OutputCall,
  cut: boolean,
): ToolCallDelta {
  const id = given === "" ? newToolCallId() : given;
  if (isCustom === true) return { id, type: "custom", custom: { name, input: text } };
  const isEmpty = text === "" || text === "{}";
  const emptyArguments = cut ? "" : "{}";
  const functionCall = { name, arguments: isEmpty ? emptyArguments : text };
  return { id, type: "function", function: functionCall, ...more };
}

export function newToolCallId(): string {
  return `call_${randomBase62(24)}`;
}
