import {
  toArgumentsText,
  readToolCallExtras,
  createIncompleteFailure,
  readContentText,
  readCustomToolCall,
  readChunkHead,
  readExtraMessageFields,
  toChatFinishReason,
  hasErrorField,
  readChoiceLogprobs,
  readTextOrNull,
  readToolCallId,
} from "../../core/chat-message.ts";
import type { RawToolCall, ChatMessageFields } from "../../core/chat-message.ts";
import type { Usage } from "../../../shared/usage.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type { KnownFields } from "../../core/json-value.ts";
import { readUsage, findRawUsage } from "../../core/openai-usage.ts";
import type { UsageDifferences } from "../../core/openai-usage.ts";
import type { Chunk, ChunkChoice, Delta, ToolCallDelta } from "../../core/chunk.ts";
import { getItemIndex } from "./answer.ts";
import { isCausedByRequest } from "../../core/provider.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "../../core/provider.ts";
import { createFailureEvents, STREAM_END_EVENT, FrameReader } from "../../core/frame-reader.ts";
import { isCutOffReason } from "../../core/output-part.ts";
import { sumPromptTokens } from "../../../shared/usage.ts";
import { RepeatedTextReader } from "../../core/text-template.ts";
import { parseStreamFailure } from "../../core/upstream-failure.ts";

type ChoiceState = {
  readonly tools: Tool[];
  readonly toolBySentIndex: Map<number, number>;
  finished: boolean;
};
type RawChoice = JsonObject & KnownFields<"index" | "delta" | "finish_reason">;
type Tool = { readonly id: string; argumentsJson: string; readonly isCustom: boolean };
type Report = { readonly usage: Usage; readonly finished: number };

/**
 * Converts a host's chunks to OpenAI's order. Each choice's role and each call's ID, type and name
 * come once, then a separate finish chunk, then the usage.
 */
export class ChatChunkReader extends FrameReader {
  readonly #texts = new RepeatedTextReader();
  /** The failure of a choice. Reported late, because the next chunk can contain usage. */
  #failure: ProviderFailure | null = null;
  #head: Omit<Chunk, "choices"> | null = null;
  #report: Report | null = null;
  #lastReport: Report | null = null;
  #isReportStale = false;
  readonly #choices = new Map<number, ChoiceState>();
  readonly #usageShape: UsageDifferences;
  readonly #choicesRequested: number;

  constructor(secret?: string, shape: UsageDifferences = {}, choicesRequested = 1) {
    super(secret);
    this.#usageShape = shape;
    this.#choicesRequested = choicesRequested;
  }

  protected get isFinished(): boolean {
    return (
      this.#choices.size >= this.#choicesRequested && this.#finishedChoices === this.#choices.size
    );
  }

  get #finishedChoices(): number {
    if (this.#failure !== null) return 0;
    let count = 0;
    for (const { finished } of this.#choices.values()) if (finished) count += 1;
    return count;
  }

  protected override repeatedText(data: string, name: string): StreamEvent | null {
    if (name !== "message") return null;
    const event = this.#texts.read(data);
    this.#isReportStale ||= event !== null;
    return event;
  }

  protected convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[] {
    const usage = readUsage(findRawUsage(raw, this.#usageShape), this.#usageShape);
    if (this.#failure !== null) return createFailureEvents(this.#failure, usage);
    if (name === "error" || hasErrorField(raw)) {
      return createFailureEvents(parseStreamFailure(raw, this.secret), usage);
    }
    const { choices: rawChoices }: JsonObject & KnownFields<"choices"> = raw;
    const choices = listOf(rawChoices);
    const events = this.#chunks(raw, choices);
    if (this.#failure !== null) {
      this.#texts.clearTemplate();
      const hasEnded = usage !== null || !isCausedByRequest(this.#failure);
      return hasEnded ? [...events, ...createFailureEvents(this.#failure, usage)] : events;
    }
    this.#isReportStale ||= events.length > 0;
    if (usage !== null) events.push(this.#usageEvent(usage, choices.length === 0));
    this.#learnText(data, events);
    return events;
  }

  #usageEvent(reported: Usage, isOnlyReport: boolean): StreamEvent {
    const finished = this.#finishedChoices;
    const usage = isOnlyReport ? this.#addUsage(reported, finished) : reported;
    this.#report = { usage, finished };
    if (isOnlyReport) this.#lastReport = this.#report;
    this.#isReportStale = false;
    return { kind: "usage", usage, ...(!this.isFinished && { partial: true }) };
  }

  #addUsage(usage: Usage, finished: number): Usage {
    const lastReport = this.#lastReport;
    if (lastReport === null || lastReport.finished === 0 || lastReport.finished === finished) {
      return usage;
    }
    if (sumPromptTokens(lastReport.usage) !== sumPromptTokens(usage)) return usage;
    return {
      ...lastReport.usage,
      output: lastReport.usage.output + usage.output,
      reasoning: lastReport.usage.reasoning + usage.reasoning,
    };
  }

  protected override eventsAtMarker(): StreamEvent[] {
    return this.#failure === null ? this.#closingEvents() : createFailureEvents(this.#failure);
  }

  /** Some servers omit `[DONE]`. A stream with usage and a finished choice is complete. */
  protected override eventsAtEnd(): StreamEvent[] {
    if (this.#failure !== null) return createFailureEvents(this.#failure);
    return this.#report !== null && this.#finishedChoices > 0 ? this.#closingEvents() : [];
  }

  #closingEvents(): StreamEvent[] {
    const events: StreamEvent[] = [];
    const report = this.isFinished || this.#isReportStale ? null : this.#report;
    for (const [index, choice] of this.#choices) {
      if (choice.finished) continue;
      const hasValidArguments = choice.tools.every(
        ({ isCustom, argumentsJson }) => isCustom || isJson(argumentsJson),
      );
      for (const part of finishChoice(choice, hasValidArguments ? "stop" : "length")) {
        events.push(this.#event(index, part));
      }
    }
    if (report !== null) events.push({ kind: "usage", usage: report.usage });
    return [...events, STREAM_END_EVENT];
  }

  #event(index: number, part: Omit<ChunkChoice, "index">): StreamEvent {
    return { kind: "chunk", chunk: { ...this.#head, choices: [{ index, ...part }] } };
  }

  #learnText(data: string, [event, ...more]: readonly StreamEvent[]): void {
    const choice =
      event?.kind === "chunk" && more.length === 0 ? event.chunk.choices[0] : undefined;
    const isPlain = choice?.logprobs === null && choice.finish_reason === null;
    const { content, ...rest } = choice?.delta ?? {};
    if (isPlain && typeof content === "string" && Object.keys(rest).length === 0) {
      this.#texts.setTemplate(data, choice.index, content);
    } else this.#texts.clearTemplate();
  }

  #chunks(raw: JsonObject, choices: readonly unknown[]): StreamEvent[] {
    if (choices.length === 0) return []; // Azure's first chunk has no choices.
    this.#head ??= readChunkHead(raw);
    const events: StreamEvent[] = [];
    for (const [position, rawChoice] of choices.entries()) {
      if (!isObject(rawChoice)) continue;
      const choice: RawChoice = rawChoice;
      const index = getItemIndex(choice, position);
      for (const part of this.#parts(choice, index)) {
        if (part === null) {
          this.#failure = createIncompleteFailure(choice.finish_reason);
          return events;
        }
        events.push(this.#event(index, part));
      }
    }
    return events;
  }

  #parts(raw: RawChoice, index: number): (Omit<ChunkChoice, "index"> | null)[] {
    const knownChoice = this.#choices.get(index);
    if (knownChoice?.finished === true) return [];
    const choice: ChoiceState = knownChoice ?? {
      tools: [],
      toolBySentIndex: new Map(),
      finished: false,
    };
    this.#choices.set(index, choice);
    const deltas = this.#deltas(
      isObject(raw.delta) ? raw.delta : {},
      choice,
      knownChoice === undefined,
    );
    const logprobs = readChoiceLogprobs(raw);
    const parts: (Omit<ChunkChoice, "index"> | null)[] = deltas.map((delta, at) => {
      return { delta, logprobs: at === 0 ? logprobs : null, finish_reason: null };
    });
    if (typeof raw.finish_reason !== "string" || raw.finish_reason === "") return parts;
    const reason = toChatFinishReason(raw.finish_reason, choice.tools.length > 0);
    if (reason === null) return [...parts, null];
    return [...parts, ...finishChoice(choice, reason)];
  }

  #deltas(raw: JsonObject & ChatMessageFields, choice: ChoiceState, isFirst: boolean): Delta[] {
    const calls = Array.isArray(raw.tool_calls) ? raw.tool_calls.filter(isObject) : [];
    const [content, refusal] = [readContentText(raw.content), readTextOrNull(raw.refusal)];
    const rest: Delta = {
      ...readExtraMessageFields(raw),
      ...(content !== null && (content !== "" || isFirst) && { content }),
      ...(refusal !== null && refusal !== "" && { refusal }),
    };
    const deltas: Delta[] = [];
    if (isFirst) deltas.push({ role: "assistant", content: calls.length > 0 ? null : "", ...rest });
    else if (Object.keys(rest).length > 0) deltas.push(rest);
    for (const [position, call] of calls.entries()) {
      deltas.push({ tool_calls: [toolDelta(call, choice, position)] });
    }
    return deltas;
  }
}

function toolDelta(raw: RawToolCall, choice: ChoiceState, position: number): ToolCallDelta {
  const sentIndex = getItemIndex(raw, position);
  const id = readTextOrNull(raw.id);
  const knownTool = choice.toolBySentIndex.get(sentIndex);
  const currentTool = knownTool === undefined ? undefined : choice.tools[knownTool];
  if (knownTool === undefined || currentTool === undefined) {
    return startCall(raw, choice, sentIndex);
  }
  // Some hosts give every call the same index. Then a new ID starts another call, and so does a
  // name without an ID or index.
  const hasNoId = id === null || id === "";
  const hasIndex = Number.isSafeInteger(raw.index);
  const isNewCall = hasNoId ? !hasIndex && nameOf(raw) !== "" : id !== currentTool.id;
  return isNewCall ? startCall(raw, choice, sentIndex) : continueCall(raw, currentTool, knownTool);
}

function nameOf(raw: RawToolCall): string {
  const [rawFunction, rawCustom]: readonly KnownFields<"name">[] = [
    objectOf(raw.function),
    objectOf(raw.custom),
  ];
  return textOf(rawFunction?.name) || textOf(rawCustom?.name);
}

function startCall(raw: RawToolCall, choice: ChoiceState, sentIndex: number): ToolCallDelta {
  const index = choice.tools.length;
  const rawFunction: KnownFields<"name" | "arguments"> = objectOf(raw.function);
  const argumentsJson = toArgumentsText(rawFunction.arguments);
  const custom = isObject(raw.custom) ? readCustomToolCall(raw.custom) : null;
  const id = readToolCallId(raw.id);
  choice.tools.push({ id, argumentsJson, isCustom: custom !== null });
  choice.toolBySentIndex.set(sentIndex, index);
  if (custom !== null) return { index, id, type: "custom", custom };
  const namedFunction = { name: readTextOrNull(rawFunction.name) ?? "", arguments: argumentsJson };
  return { index, id, type: "function", function: namedFunction, ...readToolCallExtras(raw) };
}

function continueCall(raw: RawToolCall, tool: Tool, index: number): ToolCallDelta {
  if (tool.isCustom) {
    const custom: KnownFields<"input"> = objectOf(raw.custom);
    return { index, custom: { input: readTextOrNull(custom.input) ?? "" } };
  }
  const rawFunction: KnownFields<"name" | "arguments"> = objectOf(raw.function);
  const piece = toArgumentsText(rawFunction.arguments);
  tool.argumentsJson += piece;
  return { index, function: { arguments: piece }, ...readToolCallExtras(raw) };
}

/** Finishes a choice. Calls without arguments get `{}`, because clients parse arguments as JSON. */
function finishChoice(choice: ChoiceState, proposedReason: string): Omit<ChunkChoice, "index">[] {
  choice.finished = true;
  const reason =
    proposedReason === "stop" && choice.tools.length > 0 ? "tool_calls" : proposedReason;
  const missingArguments = choice.tools.flatMap(({ isCustom, argumentsJson }, index) =>
    isCustom || argumentsJson !== "" || isCutOffReason(reason)
      ? []
      : [{ tool_calls: [{ index, function: { arguments: "{}" } }] }],
  );
  const deltas = missingArguments.map((delta) => ({ delta, logprobs: null, finish_reason: null }));
  return [...deltas, { delta: {}, logprobs: null, finish_reason: reason }];
}

function isJson(json: string): boolean {
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}
