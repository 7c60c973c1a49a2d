import type { Model } from "../catalog/model.ts";
import type { UnitCounts } from "../../shared/usage.ts";
import { estimateTokens, utf8Bytes } from "../../shared/tokens.ts";
import { isObject, listOf, objectOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./json-value.ts";
import { PDF_DATA_URL_PREFIX } from "./core-request.ts";
import { isImageData } from "./data-url.ts";
import { joinNamespaceAndName } from "./tool-calls.ts";
import type { ChatBody, ChatMessage } from "./core-request.ts";
import { computeMaxPdfPages } from "./pdf-pages.ts";

const MESSAGE_OVERHEAD = 8;
const RESULT_OVERHEAD = 48;
/**
 * Extra tokens of an instruction after the first user message. Some protocols send it as tagged
 * text.
 */
const LATER_INSTRUCTION_OVERHEAD = 24;
const PART_OVERHEAD = 4;
const REQUEST_OVERHEAD = 16;
const TOOLS_TOKENS = 350;
const KNOWN_TOOL_TOKENS = 1500;
/** Maximum bytes of a short prompt. Its upper bound replaces its estimate, which is inaccurate. */
const SHORT_PROMPT_BYTES = 512;
/** Maximum bytes that an estimate counts as one token. */
const BYTES_PER_TOKEN_MAX = 4;

/**
 * A prompt's size in tokens. `bound` is a strict upper bound, because a token has at least one
 * byte. `estimate` is the maximum in practice. `likely` is charged if the provider reports no
 * usage.
 */
export type PromptSize = {
  readonly bound: number;
  readonly estimate: number;
  readonly likely: number;
  /** Whether the request can cache parts for an hour, at twice the input price. */
  readonly hourCache?: true;
  readonly units?: UnitCounts;
};

/** The rule for counting a non-text part of a native body. */
export type NativePartCountRule =
  /**
   * The field that contains an image as base64. Null for an image URL, which also counts as text.
   */
  | { readonly image: string | null }
  | { readonly pdf: string }
  /** A provider's own tool. The tokens of its definition also count. */
  | "known_tool";

export type NativePartCountRules = ReadonlyMap<object, NativePartCountRule>;

/** The counting rules for bodies that contain only text. */
export const NO_PART_RULES: NativePartCountRules = new Map();

export function measureChatPrompt(body: ChatBody, model: Model): PromptSize {
  const tally = new PromptTokenCounter(model);
  for (const message of body.messages) tally.addMessage(message);
  for (const field of [body.tools, body["functions"], body.response_format]) {
    if (field === undefined) continue;
    tally.overhead += model.toolsTokens ?? TOOLS_TOKENS;
    tally.addValue(field);
  }
  tally.addClosedObjects(body.response_format);
  tally.addClosedObjects(
    body.tools?.filter((tool) => tool.type === "function" && tool.function.strict),
  );
  for (const field of TUNING_FIELDS) if (Object.hasOwn(body, field)) tally.addValue(body[field]);
  tally.overhead += REQUEST_OVERHEAD;
  return tally.size();
}

/** Returns the total size of the messages, each sent as a separate request. */
export function measureSeparatePrompts(body: ChatBody, model: Model): PromptSize {
  const sum = { bound: 0, estimate: 0, likely: 0 };
  for (const message of body.messages) {
    const one = measureChatPrompt({ ...body, messages: [message] }, model);
    sum.bound += one.bound;
    sum.estimate += one.estimate;
    sum.likely += one.likely;
  }
  return sum;
}

const TUNING_FIELDS = [
  "function_call",
  "logit_bias",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "stop",
  "tool_choice",
];

/** Counts every string and every key of a native request. */
export function measureNativePrompt(
  body: JsonObject,
  weights: NativePartCountRules,
  model: Model,
): PromptSize {
  const tally = new PromptTokenCounter(model, weights);
  for (const [field, value] of Object.entries(body)) {
    if (CONVERSATION_FIELDS.has(field)) tally.addNested(value);
    else if (field === "tools") for (const tool of listOf(value)) tally.addTool(tool);
    else tally.addValue(value);
  }
  const { tools, output_config: output, text } = body;
  for (const field of [tools, objectOf(output)["format"], objectOf(text)["format"]]) {
    if (field !== undefined) tally.overhead += model.toolsTokens ?? TOOLS_TOKENS;
  }
  tally.overhead += REQUEST_OVERHEAD;
  return tally.size();
}

const CONVERSATION_FIELDS: ReadonlySet<string> = new Set([
  "messages",
  "system",
  "input",
  "instructions",
]);

export function getLargerPromptSize(one: PromptSize, other: PromptSize): PromptSize {
  return {
    bound: Math.max(one.bound, other.bound),
    estimate: Math.max(one.estimate, other.estimate),
    likely: Math.max(one.likely, other.likely),
  };
}

export function hasPartsOfType(body: ChatBody, type: "image_url" | "file"): boolean {
  return body.messages.some(
    ({ content }) => Array.isArray(content) && content.some((part) => part.type === type),
  );
}

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly refusal: string }
  | {
      readonly type: "file";
      readonly file: { readonly file_data: string; readonly filename?: string | null | undefined };
    }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

export class PromptTokenCounter {
  overhead = 0;
  tokens = 0;
  readonly #model: Model;
  readonly #weights: NativePartCountRules;
  #bytes = 0;
  #estimate = 0;
  #syntax = 0;
  readonly #pages = { most: 0, likely: 0 };
  readonly #nameByCallId = new Map<string, string>();
  #isBegun = false;

  constructor(model: Model, weights: NativePartCountRules = NO_PART_RULES) {
    this.#model = model;
    this.#weights = weights;
  }

  addText(text: string): void {
    this.#bytes += utf8Bytes(text);
    this.#estimate += estimateTokens(text);
  }

  addValue(value: unknown): void {
    if (typeof value === "string") this.addText(value);
    else if (typeof value === "object" && value !== null) this.addText(JSON.stringify(value));
  }

  addClosedObjects(value: unknown): void {
    this.#syntax += countOpenObjects(value) * CLOSED_OBJECT_BYTES;
  }

  addMessage(message: ChatMessage): void {
    const { role, content } = message;
    this.overhead += this.#messageOverhead(role);
    if (typeof content === "string") this.addText(content);
    else this.addParts(content ?? []);
    if (message.name) this.addText(message.name);
    if (role === "tool") {
      this.addText(message.tool_call_id);
      this.addText(this.#nameByCallId.get(message.tool_call_id) ?? "");
    } else if (role === "assistant") this.#countAssistant(message);
  }

  #messageOverhead(role: ChatMessage["role"]): number {
    if (role === "tool") return RESULT_OVERHEAD;
    const isInstruction = role === "system" || role === "developer";
    if (isInstruction && this.#isBegun) return MESSAGE_OVERHEAD + LATER_INSTRUCTION_OVERHEAD;
    this.#isBegun ||= !isInstruction;
    return MESSAGE_OVERHEAD;
  }

  #countAssistant(message: AssistantMessage): void {
    this.addText(message.reasoning_content ?? "");
    this.addText(message.refusal ?? "");
    const { tool_calls: calls, function_call: call, reasoning_details: details } = message;
    for (const part of [calls, call, details]) {
      if (part) this.addText(JSON.stringify(part));
    }
    this.#countCalls(calls);
  }

  addParts(parts: readonly Part[]): void {
    for (const part of parts) {
      if (part.type === "image_url") this.#countImage(part.image_url.url);
      else if (part.type === "file") {
        this.addText(part.file.filename ?? "");
        this.#countPdf(part.file.file_data.slice(PDF_DATA_URL_PREFIX.length));
      } else {
        this.overhead += PART_OVERHEAD;
        this.addText(part.type === "text" ? part.text : part.refusal);
      }
    }
  }

  #countImage(url: string): void {
    this.tokens += this.#model.imageTokens;
    if (!isImageData(url)) this.addText(url);
  }

  #countCalls(calls: AssistantMessage["tool_calls"]): void {
    for (const call of calls ?? []) {
      if (call.type !== "function") continue;
      const { name, arguments: argumentsJson } = call.function;
      const json = JSON.stringify(name);
      if (!this.#nameByCallId.has(call.id)) this.addText(json);
      this.#nameByCallId.set(call.id, json);
      this.#syntax += GROWING_NUMBER.test(argumentsJson) ? argumentsJson.length * NUMBER_GROWTH : 0;
    }
  }

  addNested(value: unknown): void {
    if (typeof value === "string") {
      this.#syntax += STRING_SYNTAX;
      this.addText(value);
    } else if (Array.isArray(value)) {
      this.#syntax += OBJECT_SYNTAX;
      for (const one of value) this.addNested(one);
    } else if (isObject(value)) this.#walkObject(value);
    else this.#syntax += String(value).length + 1;
  }

  #walkObject(value: JsonObject): void {
    const weight = this.#weights.get(value);
    const bytes = weight === undefined ? null : this.#countByRule(weight, value);
    this.#syntax += OBJECT_SYNTAX;
    for (const [key, inner] of Object.entries(value)) {
      this.#syntax += key.length + STRING_SYNTAX;
      if (key === bytes) continue;
      if (key === "input" && typeof inner !== "string") this.addValue(inner);
      else this.addNested(inner);
    }
  }

  addTool(tool: unknown): void {
    if (isObject(tool) && this.#weights.get(tool) === "known_tool") {
      this.overhead += KNOWN_TOOL_TOKENS;
    }
    this.addValue(tool);
    if (!isObject(tool) || tool["type"] !== "namespace") return;
    for (const { name } of listOf(tool["tools"]).filter(isObject)) {
      this.addText(joinNamespaceAndName(textOf(tool["name"]), textOf(name)));
    }
  }

  #countByRule(weight: NativePartCountRule, value: JsonObject): string | null {
    if (weight === "known_tool") return null;
    if ("image" in weight) {
      this.tokens += this.#model.imageTokens;
      const { image } = weight;
      return image !== null && isImageData(textOf(value[image])) ? image : null;
    }
    const data = textOf(value[weight.pdf]);
    this.#countPdf(
      data.startsWith(PDF_DATA_URL_PREFIX) ? data.slice(PDF_DATA_URL_PREFIX.length) : data,
    );
    return weight.pdf;
  }

  #countPdf(base64: string): void {
    const { most, likely } = pdfTokens(base64, this.#model);
    this.#pages.most += most;
    this.#pages.likely += likely;
  }

  size(): PromptSize {
    const { estimateFactor: factor, context } = this.#model;
    const text = this.#bytes + this.#syntax;
    const pages = Math.min(this.#pages.most, context); // Prompts above the context window are rejected.
    const fixedTokens = this.overhead + this.tokens;
    const bound = text + fixedTokens + pages;
    const estimated = Math.ceil(this.#estimate * factor) + tokensOf(this.#syntax);
    const estimate = Math.max(estimated, tokensOf(text)) + fixedTokens + pages;
    const likely = Math.ceil(this.#estimate) + tokensOf(this.#syntax / 2) + fixedTokens;
    return {
      bound,
      estimate: text <= SHORT_PROMPT_BYTES ? bound : Math.min(bound, estimate),
      likely: Math.min(bound, likely + Math.min(pages, this.#pages.likely)),
    };
  }
}

const STRING_SYNTAX = 4;
const OBJECT_SYNTAX = 3;

function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN_MAX);
}

const GROWING_NUMBER = /\de\+?\d/i;
const NUMBER_GROWTH = 5;

const CLOSED_OBJECT_BYTES = 29;

function countOpenObjects(value: unknown): number {
  if (Array.isArray(value)) {
    return value.reduce<number>((sum, one) => sum + countOpenObjects(one), 0);
  }
  if (!isObject(value)) return 0;
  let open = 0;
  for (const member of Object.values(value)) open += countOpenObjects(member);
  const { type, properties, additionalProperties: additional } = value;
  const isSchema = type === "object" || listOf(type).includes("object") || isObject(properties);
  return isSchema && additional === undefined ? open + 1 : open;
}

/** Maximum tokens of a PDF page's text (platform.claude.com, PDF support: 1,500 to 3,000). */
const PAGE_TEXT_TOKENS = 3000;
const PAGES_MAX = { long: 600, short: 100 };
const SHORT_CONTEXT = 200_000;
const PDF_LIKELY = { least: 5000, charactersPerToken: 16 };

/** Returns a PDF's tokens by Anthropic's rule: each page counts as text and as an image. */
function pdfTokens(pdf: string, model: Model): { readonly most: number; readonly likely: number } {
  const pagesMax = model.context > SHORT_CONTEXT ? PAGES_MAX.long : PAGES_MAX.short;
  const pages = Math.min(computeMaxPdfPages(pdf) ?? pagesMax, pagesMax);
  const tokensBySize = Math.ceil(pdf.length / PDF_LIKELY.charactersPerToken);
  const most = Math.max(pages * (PAGE_TEXT_TOKENS + model.imageTokens), tokensBySize);
  return { most, likely: Math.min(most, Math.max(PDF_LIKELY.least, tokensBySize)) };
}
