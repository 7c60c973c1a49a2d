import { toCompletion, joinTextOfOutputParts } from "../../core/output-part.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type {
  ProviderResponse,
  JsonObject,
  NativeOutput,
  ProviderFailure,
} from "../../core/provider.ts";
import { addUsageToFailure } from "../../core/frame-reader.ts";
import {
  readItems,
  readParts,
  parseResponsesFinishReason,
  toReasoningDetail,
  parseResponsesApiFailure,
  readResponsesUsage,
} from "./host-rules.ts";
import type { RawResponsesItem, RawResponse } from "./host-rules.ts";

export function readResponsesCompletion(
  raw: RawResponse,
  secret: string | undefined,
): ProviderResponse | ProviderFailure | null {
  if (!Array.isArray(raw.output)) return null;
  const items = readItems(raw.output);
  const parts = items.flatMap((item) => readParts(item.content));
  const joinText = (field: "text" | "refusal"): string =>
    parts.map((part) => textOf(part[field])).join("");
  const refusal = joinText("refusal");
  const finish = parseResponsesFinishReason(raw);
  const details = items.filter(isReasoning).map(toReasoningDetail);
  const annotations = parts.flatMap((part) => listOf(part.annotations)).flatMap(toChatAnnotations);
  const output: OutputPart[] = [
    { kind: "thought", text: items.map(reasoningText).filter(Boolean).join("\n\n") },
    ...details.flatMap((detail): OutputPart[] =>
      detail === null ? [] : [{ kind: "detail", detail }],
    ),
    { kind: "text", text: joinText("text") },
    { kind: "refusal", text: refusal },
    ...annotations.map((annotation): OutputPart => ({ kind: "annotation", annotation })),
    ...items.flatMap(toOutputCalls),
  ];
  const usage = readResponsesUsage(raw.usage);
  if (finish === null) {
    return failureWithSpent(raw, { usage, text: joinTextOfOutputParts(output) }, secret);
  }
  return toCompletion([[...output, { kind: "finish", reason: finish }]], usage);
}

/** Reads a response without converting it. */
export function readNativeResponse(
  raw: RawResponse,
  secret: string | undefined,
): (ProviderResponse & { readonly native: NativeOutput }) | ProviderFailure | null {
  if (!Array.isArray(raw.output)) return null;
  const usage = readResponsesUsage(raw.usage);
  const text = readItems(raw.output).map(joinItemText).join("");
  const finish = parseResponsesFinishReason(raw);
  if (finish === null) return failureWithSpent(raw, { usage, text }, secret);
  return { body: raw, usage, native: { text, finish } };
}

export function joinItemText(item: RawResponsesItem): string {
  const parts = [...readParts(item.content), ...readParts(item.summary)];
  const texts = parts.map((part) => textOf(part.text) + textOf(part.refusal));
  return [item.name, item.arguments, item.input].map(textOf).join("") + texts.join("");
}

function failureWithSpent(
  raw: RawResponse,
  spent: Parameters<typeof addUsageToFailure>[1],
  secret: string | undefined,
): ProviderFailure {
  if (!isObject(raw.error)) return { kind: "retry", reason: "not_completed" };
  return addUsageToFailure(parseResponsesApiFailure(raw, secret), spent);
}

function isReasoning(item: RawResponsesItem): boolean {
  return item.type === "reasoning";
}

function reasoningText(item: RawResponsesItem): string {
  if (!isReasoning(item)) return "";
  const parts = readParts(item.summary);
  return parts.map((part) => textOf(part.text)).join("\n\n");
}

function toOutputCalls(item: RawResponsesItem): OutputPart[] {
  const id = textOf(item.call_id);
  const name = textOf(item.name);
  if (item.type === "function_call") {
    return [{ kind: "call", id, name, arguments: textOf(item.arguments) }];
  }
  if (item.type !== "custom_tool_call") return [];
  return [{ kind: "call", id, name, arguments: textOf(item.input), isCustom: true }];
}

export function toChatAnnotations(raw: unknown): JsonObject[] {
  const { type, ...citation } = objectOf(raw);
  return type === "url_citation" ? [{ type, url_citation: citation }] : [];
}
