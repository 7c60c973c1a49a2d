import { randomBase62 } from "../../shared/id.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Completion, CompletionChoice, Delta, ToolCallDelta } from "./chunk.ts";
import type { JsonObject, StreamEvent } from "./provider.ts";

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

const REASON_BY_NAME: ReadonlyMap<string, FinishReason> = new Map([
  ...finishReasonEntries(
    "stop",
    "stop stop_sequence end end_turn pause_turn compaction eos eos_token",
  ),
  ...finishReasonEntries("stop", "complete completed"),
  ["", "stop"],
  ["tool_use", "stop"], // With a client's tool call, `stop` becomes `tool_calls`.
  ...finishReasonEntries("tool_calls", "tool_calls tool_call"),
  ...finishReasonEntries(
    "content_filter",
    "content_filter content_filtered guardrail_intervened refusal",
  ),
  ...finishReasonEntries(
    "content_filter",
    "safety recitation blocklist prohibited_content spii language",
  ),
  ...finishReasonEntries(
    "content_filter",
    "model_armor image_safety image_prohibited_content image_recitation",
  ),
]);

const GAVE_UP = /^(?:abort|error|timeout|malformed_|insufficient_system_resource|network_error)/;

function finishReasonEntries(reason: FinishReason, names: string): [string, FinishReason][] {
  return names.split(" ").map((name) => [name, reason]);
}

/**
 * Converts a provider's finish reason, or returns null if the provider gave up. Unknown reasons
 * become `length`, so that clients don't run incomplete calls.
 */
export function toFinishReason(raw: string): FinishReason | null {
  const name = raw.toLowerCase();
  return GAVE_UP.test(name) ? null : (REASON_BY_NAME.get(name) ?? "length");
}

export function isCutOffReason(reason: string | null): boolean {
  return reason === "length" || reason === "content_filter";
}

/** A provider-independent part of one choice's output. */
export type OutputPart =
  | { readonly kind: "text" | "thought" | "refusal"; readonly text: string }
  | { readonly kind: "detail"; readonly detail: JsonObject }
  | { readonly kind: "annotation"; readonly annotation: JsonObject }
  | OutputToolCall
  | { readonly kind: "finish"; readonly reason: FinishReason };

export type OutputToolCall = {
  readonly kind: "call";
  /** The provider's ID. The gateway replaces an empty ID. */
  readonly id: string;
  readonly name: string;
  /** The arguments as JSON text, or "". For a custom tool, its text input. */
  readonly arguments: string;
  readonly isCustom?: true;
  readonly more?: Pick<ToolCallDelta, "extra_content">;
};

export function toCompletion(
  choices: readonly (readonly OutputPart[])[],
  usage: Usage | null,
): { readonly body: Completion; readonly usage: Usage | null } {
  return { body: { choices: choices.map(toChoice) }, usage };
}

export function joinTextOfOutputParts(parts: readonly OutputPart[]): string {
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
  calls: readonly OutputToolCall[],
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
  { id: given, name, arguments: text, isCustom, more }: OutputToolCall,
  cut: boolean,
): ToolCallDelta {
  const id = given === "" ? createToolCallId() : given;
  if (isCustom === true) return { id, type: "custom", custom: { name, input: text } };
  const isEmpty = text === "" || text === "{}";
  const emptyArguments = cut ? "" : "{}";
  const functionCall = { name, arguments: isEmpty ? emptyArguments : text };
  return { id, type: "function", function: functionCall, ...more };
}

export function createToolCallId(): string {
  return `call_${randomBase62(24)}`;
}

/**
 * Builds chunks in OpenAI's order: the role in the first chunk only, numbered tool calls, and a
 * separate finish chunk.
 */
export class ChunkBuilder {
  readonly #index: number;
  readonly #tools: { hasArguments: boolean; readonly isCustom: boolean }[] = [];
  #hasBegun = false;
  finished = false;

  constructor(index = 0) {
    this.#index = index;
  }

  get hasTools(): boolean {
    return this.#tools.length > 0;
  }

  begin(): StreamEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    return [this.#chunk({ role: "assistant", content: "" })];
  }

  addPart(part: OutputPart): StreamEvent[] {
    switch (part.kind) {
      case "text":
        return this.addText(part.text);
      case "thought":
        return this.addReasoning(part.text);
      case "refusal":
        return part.text === "" ? [] : this.addDelta({ refusal: part.text });
      case "detail":
        return this.addDelta({ reasoning_details: [part.detail] });
      case "annotation":
        return this.addDelta({ annotations: [part.annotation] });
      case "call":
        return [
          ...this.addTool(part.id, part.name, part.more),
          ...this.addToolArguments(part.arguments),
        ];
      case "finish":
        return this.finish(part.reason);
    }
  }

  addText(content: string): StreamEvent[] {
    if (content === "") return [];
    return [...this.begin(), { kind: "text", index: this.#index, json: JSON.stringify(content) }];
  }

  addReasoning(text: string): StreamEvent[] {
    return text === "" ? [] : this.addDelta({ reasoning_content: text });
  }

  addDelta(delta: Delta): StreamEvent[] {
    return [...this.begin(), this.#chunk(delta)];
  }

  addTool(
    id: string,
    name: string,
    extraFields: Pick<ToolCallDelta, "extra_content"> = {},
  ): StreamEvent[] {
    const called = { name, arguments: "" };
    return this.#openTool(id, { type: "function", function: called, ...extraFields });
  }

  addCustomTool(id: string, name: string): StreamEvent[] {
    return this.#openTool(id, { type: "custom", custom: { name, input: "" } });
  }

  #openTool(id: string, call: Omit<ToolCallDelta, "index" | "id">): StreamEvent[] {
    const index = this.#tools.length;
    this.#tools.push({ hasArguments: false, isCustom: call.type === "custom" });
    const callId = id === "" ? createToolCallId() : id;
    return this.addDelta({ tool_calls: [{ index, id: callId, ...call }] });
  }

  addToolArguments(json: string, tool = this.#tools.length - 1): StreamEvent[] {
    const known = this.#tools[tool];
    if (json === "" || known === undefined) return [];
    known.hasArguments = true;
    const piece = known.isCustom ? { custom: { input: json } } : { function: { arguments: json } };
    return this.addDelta({ tool_calls: [{ index: tool, ...piece }] });
  }

  /**
   * Ends the choice. Tool calls without arguments get "{}". With tool calls, `stop` becomes
   * `tool_calls`.
   */
  finish(reason: FinishReason): StreamEvent[] {
    if (this.finished) return [];
    const open = this.begin();
    for (const [index, tool] of this.#tools.entries()) {
      if (isCutOffReason(reason) || tool.hasArguments || tool.isCustom) continue;
      open.push(...this.addToolArguments("{}", index));
    }
    this.finished = true;
    const finish = reason === "stop" && this.#tools.length > 0 ? "tool_calls" : reason;
    return [...open, this.#chunk({}, finish)];
  }

  #chunk(delta: Delta, finishReason: FinishReason | null = null): StreamEvent {
    const choice = { index: this.#index, delta, logprobs: null, finish_reason: finishReason };
    return { kind: "chunk", chunk: { choices: [choice] } };
  }
}
