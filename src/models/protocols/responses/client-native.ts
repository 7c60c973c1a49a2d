import { DEFAULT_PDF_FILENAME } from "../../core/core-request.ts";
import {
  listOf,
  numberOf,
  objectOf,
  parseStringLiteral,
  pickFields,
  removeNulls,
  textOf,
} from "../../core/json-value.ts";
import { isInlineImage } from "../../core/data-url.ts";
import { joinNamespaceAndName, removeToolNamespaces } from "../../core/tool-calls.ts";
import { toReasoningItem, toReasoningDetail, readItems, readParts } from "./host-rules.ts";
import type { RawEvent, RawResponsesItem } from "./host-rules.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { NativePartCountRule, NativePartCountRules } from "../../core/prompt-size.ts";
import { ToolCallItemDraft, MessageItemDraft } from "./client-drafts.ts";
import type { OutputTextMetadata } from "./client-drafts.ts";
import { getAgentMessageText, toFilePart, parsePartsInText } from "./client-input.ts";
import type { OutputItemWriter, OutputItemOptions } from "./client-output.ts";
import { parseThoughts } from "../../core/stored-thoughts.ts";
import { ReasoningItemDraft } from "./client-reasoning.ts";
import { LOGPROBS_INCLUDE_VALUE, getRequestedOptionalOutput } from "./client-request.ts";
import type { InputItem, InputPart, ResponsesRequest } from "./client-request.ts";
import { toResponsesLogprobs, readNativeUrlCitations } from "./client-response-object.ts";
import { choosesNamespacedTool, isAcceptedNamespace, toNativeToolChoice } from "./client-tools.ts";
import type { FlattenedTools } from "./client-tools.ts";

/**
 * A request for a native route. The adapter sets model, stream, cap, tier and storage, and replaces
 * `prompt_cache_key`. Unlisted fields are dropped, and reported if they could change the output.
 */
type NativeRequest = {
  readonly body: JsonObject;
  readonly dropped: readonly string[];
  readonly weights: NativePartCountRules;
};

const FORWARDED_FIELDS = ["temperature", "top_p", "truncation", "prompt_cache_key"];
const UNSUPPORTED_FIELDS = ["presence_penalty", "frequency_penalty"] as const;

export function toResponsesNativeRequest(
  body: ResponsesRequest,
  tools: FlattenedTools,
): NativeRequest {
  const { instructions, tool_choice: choice, parallel_tool_calls: parallel } = body;
  const { input, left, weights } = inputOf(body);
  const { logprobs } = getRequestedOptionalOutput(body);
  const hasTools = tools.own.length > 0;
  const nativeBody = {
    input,
    ...(instructions && { instructions }),
    ...pickFields(body, FORWARDED_FIELDS),
    ...(hasTools && {
      tools: tools.own,
      ...(choice !== undefined && { tool_choice: toNativeToolChoice(tools, choice) }),
      ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    }),
    ...textSettings(body),
    ...reasoningSettings(body),
    ...(logprobs && { include: [LOGPROBS_INCLUDE_VALUE], top_logprobs: body.top_logprobs ?? 0 }),
  };
  return {
    body: choosesNamespacedTool(tools, choice) ? removeToolNamespaces(nativeBody) : nativeBody,
    dropped: [...UNSUPPORTED_FIELDS.filter((field) => (body[field] ?? 0) !== 0), ...left],
    weights,
  };
}

function textSettings({ text }: ResponsesRequest): JsonObject {
  const { format, verbosity } = text ?? {};
  const { type, name, schema, strict, description } = objectOf(format);
  const fields = removeNulls({
    format: format ? removeNulls({ type, name, schema, strict, description }) : undefined,
    verbosity,
  });
  return Object.keys(fields).length === 0 ? {} : { text: fields };
}

function reasoningSettings({ reasoning }: ResponsesRequest): JsonObject {
  const { effort, summary, generate_summary: legacySummary } = reasoning ?? {};
  const { context }: JsonObject = reasoning ?? {};
  const fields = removeNulls({
    effort,
    summary: summary ?? legacySummary,
    context: typeof context === "string" ? context : undefined,
  });
  return Object.keys(fields).length === 0 ? {} : { reasoning: fields };
}

type Input = {
  readonly input: string | readonly JsonObject[];
  readonly left: readonly string[];
  readonly weights: NativePartCountRules;
};

function inputOf({ input }: ResponsesRequest): Input {
  const weights = new Map<object, NativePartCountRule>();
  if (typeof input === "string") return { input, left: [], weights };
  const left = new Set<string>();
  const items = input.flatMap((item) => {
    const passedFields = toNativeItems(item);
    if (passedFields.length === 0 && item.type !== "additional_tools") {
      left.add(`input.${item.type}`);
    }
    return passedFields;
  });
  for (const { content, output } of items) {
    for (const part of [...readParts(content), ...readParts(output)]) {
      if (part.type === "input_image") weights.set(part, { image: inlineImageBytes(part) });
      if (part.type === "input_file") weights.set(part, { pdf: "file_data" });
    }
  }
  return { input: items.filter(isFollowedByOutput), left: [...left], weights };
}

function inlineImageBytes({ image_url: url }: JsonObject): string | null {
  return isInlineImage(textOf(url)) ? "image_url" : null;
}

/** Reports whether an item can be sent. OpenAI returns 400 for a reasoning item that no output follows. */
function isFollowedByOutput(
  { type }: RawResponsesItem,
  at: number,
  items: readonly RawResponsesItem[],
): boolean {
  if (type !== "reasoning") return true;
  const next = items.slice(at + 1).find((item) => item.type !== "reasoning");
  return next !== undefined && (next.role === "assistant" || CALL_TYPES.has(next.type));
}

const CALL_TYPES: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call"]);

function toNativeItems(item: InputItem): JsonObject[] {
  // oxlint-disable-next-line switch-exhaustiveness-check -- other items are dropped
  switch (item.type) {
    case "message":
      return [messageOf(item)];
    case "function_call":
    case "custom_tool_call":
      return [callFields(item)];
    case "function_call_output":
    case "custom_tool_call_output": {
      const { type, call_id, output } = item;
      const parts = typeof output === "string" ? parsePartsInText(output) : output;
      return [{ type, call_id, output: parts === null ? output : parts.map(inputPart) }];
    }
    case "reasoning":
      return reasoningItems(item.encrypted_content ?? "");
    case "agent_message":
      return [{ type: "message", role: "user", content: getAgentMessageText(item) }];
    default:
      return [];
  }
}

function callFields(
  item: Extract<InputItem, { type: "function_call" | "custom_tool_call" }>,
): JsonObject {
  const { type, call_id, name, namespace } = item;
  const clientNamespace = namespace ?? null;
  const nameFields = isAcceptedNamespace(clientNamespace)
    ? { name, namespace: clientNamespace }
    : { name: joinNamespaceAndName(clientNamespace, name) };
  const called = { type, call_id, ...nameFields };
  return item.type === "function_call"
    ? { ...called, arguments: item.arguments }
    : { ...called, input: item.input };
}

function messageOf({ role, content, phase }: Extract<InputItem, { type: "message" }>): JsonObject {
  const isAssistant = role === "assistant";
  return {
    type: "message",
    role,
    content:
      typeof content === "string" ? content : content.map(isAssistant ? toNativePart : inputPart),
    ...(isAssistant && phase && { phase }),
  };
}

function toNativePart(part: InputPart): JsonObject {
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  return { type: "output_text", text: "text" in part ? part.text : "" };
}

function inputPart(part: InputPart): JsonObject {
  if (part.type === "input_image") {
    return { type: "input_image", image_url: part.image_url, detail: part.detail ?? "auto" };
  }
  if (part.type === "refusal") return { type: "input_text", text: part.refusal };
  if (part.type !== "input_file") return { type: "input_text", text: part.text };
  const file = toFilePart(part, "");
  if (!file.ok || file.value.type === "text") {
    return { type: "input_text", text: file.ok && "text" in file.value ? file.value.text : "" };
  }
  const { file_data, filename = DEFAULT_PDF_FILENAME } = file.value.file;
  return { type: "input_file", filename, file_data, ...(part.detail && { detail: part.detail }) };
}

function reasoningItems(encrypted: string): JsonObject[] {
  const details = parseThoughts(encrypted)?.details ?? [];
  return details.map(toReasoningItem).filter((item) => item !== null);
}

type Item = MessageItemDraft | ToolCallItemDraft | ReasoningItemDraft;

/**
 * Writes OpenAI's items and events with the gateway's IDs and sequence numbers. Includes reasoning
 * only on request. Drops items of tools that the gateway never sends.
 */
export class NativeItemWriter {
  readonly #output: OutputItemWriter;
  readonly #options: OutputItemOptions;
  /** Items by OpenAI's `output_index`, which also counts hidden items. */
  readonly #items = new Map<number, Item>();
  readonly #endedItems = new Set<number>();
  #last: Item | undefined;

  constructor(output: OutputItemWriter, wanted: OutputItemOptions) {
    this.#output = output;
    this.#options = wanted;
  }

  plainText({ type, delta, output_index: index }: JsonObject): string | null {
    if (type !== "response.output_text.delta") return null;
    this.#last = this.#items.get(Number(index));
    if (this.#options.shown.logprobs || !this.goesOn) return null;
    return JSON.stringify(textOf(delta));
  }

  get goesOn(): boolean {
    return this.#output.continuesIn(this.#last);
  }

  appendText(json: string): string {
    return this.#text(this.#last, parseStringLiteral(json), this.#textExtras([], []));
  }

  writeEvent(event: RawEvent): string {
    const index = numberOf(event.output_index) ?? 0;
    switch (event.type) {
      case "response.output_item.added":
        return this.#begin(index, objectOf(event.item));
      case "response.reasoning_summary_text.delta":
        return this.#summary(index, textOf(event.delta));
      case "response.output_item.done":
        return this.#end(index, objectOf(event.item));
      case "response.completed":
      case "response.incomplete":
        return this.writeResponse(objectOf(event.response));
      default:
        return this.#contentEvent(this.#items.get(index), event);
    }
  }

  #contentEvent(item: Item | undefined, event: RawEvent): string {
    const delta = textOf(event.delta);
    switch (event.type) {
      case "response.output_text.delta":
        return this.#text(item, delta, this.#textExtras(event.logprobs, []));
      case "response.output_text.annotation.added":
        return this.#text(item, "", this.#textExtras([], [event.annotation]));
      case "response.refusal.delta":
        return item instanceof MessageItemDraft && delta !== "" ? item.refusal(delta) : "";
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return item instanceof ToolCallItemDraft ? item.append(delta) : "";
      case "response.reasoning_summary_part.added":
        return item instanceof ReasoningItemDraft && !item.isEmpty ? item.summary("\n\n") : "";
      default:
        return "";
    }
  }

  writeResponse({ output }: JsonObject): string {
    let text = "";
    for (const [index, item] of readItems(output).entries()) {
      if (this.#endedItems.has(index)) continue;
      text +=
        item.status === "incomplete" ? this.#completeItem(index, item) : this.#end(index, item);
    }
    return text;
  }

  #begin(index: number, raw: RawResponsesItem): string {
    if (this.#items.has(index)) return "";
    switch (raw.type) {
      case "message":
        return this.#addItem(index, this.#output.nativeMessage(raw));
      case "function_call":
      case "custom_tool_call":
        return this.#addItem(index, this.#output.nativeCall(raw));
      default:
        return ""; // A reasoning item is added when its first text arrives.
    }
  }

  #addItem(
    index: number,
    { text, draft }: { readonly text: string; readonly draft: Item },
  ): string {
    this.#items.set(index, draft);
    return text;
  }

  #end(index: number, raw: RawResponsesItem): string {
    if (this.#endedItems.has(index)) return "";
    const text = this.#completeItem(index, raw);
    this.#endedItems.add(index);
    const item = this.#items.get(index);
    return item instanceof ToolCallItemDraft ? text + this.#output.endCall(item) : text;
  }

  #completeItem(index: number, raw: RawResponsesItem): string {
    let written = this.#begin(index, raw);
    if (raw.type === "reasoning") return written + this.#reasoning(index, raw);
    const item = this.#items.get(index);
    if (item instanceof ToolCallItemDraft && item.isEmpty) {
      written += item.append(textOf(raw.arguments ?? raw.input));
    }
    if (!(item instanceof MessageItemDraft) || !item.isEmpty) return written;
    for (const part of readParts(raw.content)) {
      const { text, refusal, logprobs, annotations } = part;
      if (textOf(refusal) !== "") written += item.refusal(textOf(refusal));
      written += this.#text(item, textOf(text), this.#textExtras(logprobs, listOf(annotations)));
    }
    return written;
  }

  #reasoning(index: number, raw: RawResponsesItem): string {
    const { summary, encrypted } = this.#options.shown;
    const keepsThoughts = encrypted || this.#options.storesResponse;
    const knownItem = this.#items.get(index);
    const parts = readParts(raw.summary);
    const text = parts.map((part) => textOf(part.text)).join("\n\n");
    const isSummaryMissing = summary && text !== "" && knownItem === undefined;
    let written = isSummaryMissing ? this.#summary(index, text) : "";
    const detail = keepsThoughts ? toReasoningDetail(raw) : null;
    if (detail === null) return written;
    written += this.#beginReasoning(index);
    const item = this.#items.get(index);
    if (item instanceof ReasoningItemDraft) item.keep({ details: [detail], extras: {}, text: "" });
    return written;
  }

  #summary(index: number, text: string): string {
    if (!this.#options.shown.summary || text === "") return "";
    const startEvents = this.#beginReasoning(index);
    const item = this.#items.get(index);
    return item instanceof ReasoningItemDraft ? startEvents + item.summary(text) : startEvents;
  }

  #beginReasoning(index: number): string {
    if (this.#items.has(index)) return "";
    return this.#addItem(index, this.#output.addReasoning());
  }

  #text(item: Item | undefined, text: string, extras: OutputTextMetadata): string {
    if (!(item instanceof MessageItemDraft)) return "";
    const hasContent = text !== "" || extras.logprobs.length > 0 || extras.annotations.length > 0;
    return hasContent ? item.text(JSON.stringify(text), extras) : "";
  }

  #textExtras(logprobs: unknown, annotations: readonly unknown[]): OutputTextMetadata {
    return {
      logprobs: this.#options.shown.logprobs ? toResponsesLogprobs(logprobs) : [],
      annotations: readNativeUrlCitations(annotations),
    };
  }
}
