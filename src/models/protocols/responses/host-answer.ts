import { toCompletion, textOfOutputParts } from "../../core/output-part.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type {
  ProviderResponse,
  JsonObject,
  NativeOutput,
  ProviderFailure,
} from "../../core/provider.ts";
import { failureWithUsage } from "../../core/frame-reader.ts";
import {
  rawItemsOf,
  rawPartsOf,
  responsesFinishReason,
  reasoningDetail,
  responseFailure,
  readResponsesUsage,
} from "./host-rules.ts";
import type { RawItem, RawResponse } from "./host-rules.ts";

export function readResponsesCompletion(
  raw: RawResponse,
  secret: string | undefined,
): ProviderResponse | ProviderFailure | null {
  if (!Array.isArray(raw.output)) return null;
  const items = rawItemsOf(raw.output);
  const parts = items.flatMap((item) => rawPartsOf(item.content));
  const joinText = (field: "text" | "refusal"): string =>
    parts.map((part) => textOf(part[field])).join("");
  const refusal = joinText("refusal");
  const finish = responsesFinishReason(raw);
  const details = items.filter(isReasoning).map(reasoningDetail);
  const annotations = parts.flatMap((part) => listOf(part.annotations)).flatMap(toChatAnnotation);
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
    return failureWithSpent(raw, { usage, text: textOfOutputParts(output) }, secret);
  }
  return toCompletion([[...output, { kind: "finish", reason: finish }]], usage);
}

/** Reads an unconverted response. */
export function readNativeResponse(
  raw: RawResponse,
  secret: string | undefined,
): (ProviderResponse & { readonly native: NativeOutput }) | ProviderFailure | null {
  if (!Array.isArray(raw.output)) return null;
  const usage = readResponsesUsage(raw.usage);
  const text = rawItemsOf(raw.output).map(itemText).join("");
  const finish = responsesFinishReason(raw);
  if (finish === null) return failureWithSpent(raw, { usage, text }, secret);
  return { body: raw, usage, native: { text, finish } };
}

export function itemText(item: RawItem): string {
  const parts = [...rawPartsOf(item.content), ...rawPartsOf(item.summary)];
  const texts = parts.map((part) => textOf(part.text) + textOf(part.refusal));
  return [item.name, item.arguments, item.input].map(textOf).join("") + texts.join("");
}

function failureWithSpent(
  raw: RawResponse,
  spent: Parameters<typeof failureWithUsage>[1],
  secret: string | undefined,
): ProviderFailure {
  if (!isObject(raw.error)) return { kind: "retry", reason: "not_completed" };
  return failureWithUsage(responseFailure(raw, secret), spent);
}

function isReasoning(item: RawItem): boolean {
  return item.type === "reasoning";
}

function reasoningText(item: RawItem): string {
  if (!isReasoning(item)) return "";
  const parts = rawPartsOf(item.summary);
  return parts.map((part) => textOf(part.text)).join("\n\n");
}

function toOutputCalls(item: RawItem): OutputPart[] {
  const id = textOf(item.call_id);
  const name = textOf(item.name);
  if (item.type === "function_call") {
    return [{ kind: "call", id, name, arguments: textOf(item.arguments) }];
  }
  if (item.type !== "custom_tool_call") return [];
  return [{ kind: "call", id, name, arguments: textOf(item.input), isCustom: true }];
}

export function toChatAnnotation(raw: unknown): JsonObject[] {
  const { type, ...citation } = objectOf(raw);
  return type === "url_citation" ? [{ type, url_citation: citation }] : [];
}
