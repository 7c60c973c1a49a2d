import {
  toFinishReason,
  toCompletion,
  joinTextOfOutputParts,
  ChunkBuilder,
} from "../../core/output-part.ts";
import {
  textOf,
  readAnyValue,
  createListReader,
  createOptionalReader,
  createObjectReader,
  isObject,
  listOf,
} from "../../core/json-value.ts";
import { toArgumentsText, createIncompleteFailure } from "../../core/chat-message.ts";
import type {
  JsonObject,
  ProviderResponse,
  ChatCall,
  ProviderFailure,
  StreamEvent,
} from "../../core/provider.ts";
import type { FinishReason, OutputPart, OutputToolCall } from "../../core/output-part.ts";
import type { ValueReader } from "../../core/json-value.ts";
import { parseJson } from "../../../shared/exact-json.ts";
import type { Usage } from "../../../shared/usage.ts";
import { readUsage, readCounts } from "../../core/openai-usage.ts";
import {
  addUsageToFailure,
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import { parseTools } from "../../core/conversation.ts";
import { sumPromptTokens } from "../../../shared/usage.ts";
import { isCausedByRequest } from "../../core/provider.ts";
import { findWorkersAiFailure } from "./failure.ts";

type Piece = {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly StreamedToolCall[];
  /** The finish reason, or null. "error" and "abort" mean that the model gave up. */
  readonly finish: FinishReason | "error" | "abort" | null;
};
type StreamedToolCall = {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
};

/**
 * Reads an event in OpenAI's or Workers AI's format. A stream in OpenAI's format ends with an event
 * in Workers AI's format. If an event has both formats, OpenAI's fields take precedence.
 */
function readWorkersAiPiece(raw: JsonObject): Piece {
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

const functionReader = createObjectReader({ name: textOf, arguments: toArgumentsText });
const callReader = createObjectReader({
  index: (index) => (Number.isSafeInteger(index) ? Number(index) : null),
  id: textOf,
  function: createOptionalReader(functionReader),
});
const readCall: ValueReader<StreamedToolCall> = (raw) => {
  const { function: functionCall, ...call } = callReader(raw);
  return { index: call.index, id: call.id, ...(functionCall ?? functionReader(raw)) };
};
const readMessage = createObjectReader({
  content: textOf,
  reasoning_content: textOf,
  reasoning: textOf,
  tool_calls: createListReader(readCall),
});
const readChoice = createObjectReader({
  message: (raw) => (raw === null || raw === undefined ? null : readMessage(raw)),
  delta: readMessage,
  finish_reason: readAnyValue,
});
const readBody = createObjectReader({
  choices: (raw) => (Array.isArray(raw) ? readChoice(raw[0]) : null),
  response: readAnyValue,
  tool_calls: createListReader(readCall),
  finish_reason: readAnyValue,
});

function toText(response: unknown): string {
  if (typeof response === "string") return response;
  return response === null || response === undefined ? "" : JSON.stringify(response);
}

function readFinishReason(raw: unknown): Piece["finish"] {
  if (typeof raw !== "string" || raw === "") return null;
  return toFinishReason(raw) ?? (raw === "error" ? raw : "abort");
}

/** Converts a response in OpenAI's or Workers AI's format. Returns null for an invalid response. */
export function readWorkersAiChat(
  response: JsonObject,
  call: ChatCall,
): ProviderResponse | ProviderFailure | null {
  const raw = isObject(response["result"]) ? response["result"] : response;
  const { choices, usage: rawUsage } = raw;
  const isAnswer = listOf(choices).length > 0 || "response" in raw || "tool_calls" in raw;
  if (!isAnswer) return null;
  const { text, reasoning, calls, finish } = readWorkersAiPiece(raw);
  const namedCalls = calls.filter((one) => one.name !== "").map(toOutputCall);
  const leakedToolCalls = namedCalls.length === 0 ? leakedCalls(text, call) : [];
  const tools = leakedToolCalls.length > 0 ? leakedToolCalls : namedCalls;
  const usage = readUsage(rawUsage);
  const parts: OutputPart[] = [
    { kind: "text", text },
    { kind: "thought", text: reasoning },
    ...tools,
  ];
  if (finish === "error" || finish === "abort") {
    return addUsageToFailure(createIncompleteFailure(finish), {
      usage,
      text: joinTextOfOutputParts(parts),
    });
  }
  const guessedFinish = tools.length > 0 ? "stop" : guessFinishReason(usage, call.cap);
  const reason = finish ?? guessedFinish;
  const remainingParts = leakedToolCalls.length > 0 ? parts.slice(1) : parts;
  return toCompletion([[...remainingParts, { kind: "finish", reason }]], usage);
}

function toOutputCall({
  id,
  name,
  arguments: argumentsJson,
}: Omit<StreamedToolCall, "index">): OutputToolCall {
  return { kind: "call", id, name, arguments: argumentsJson };
}

/** Guesses the finish reason, which Workers AI omits. Output that reaches the cap was cut off. */
function guessFinishReason(usage: Usage | null, cap: number | null): FinishReason {
  return usage !== null && cap !== null && usage.output >= cap ? "length" : "stop";
}

/** Some models (gpt-oss) write tool calls as text if a call is required. */
function leakedCalls(text: string, call: ChatCall): readonly OutputToolCall[] {
  const tools = parseTools(call.body);
  if ("kind" in tools || tools.choice === "auto" || tools.choice === "none") return [];
  const names = new Set<unknown>(tools.list.map((tool) => tool.name));
  const parsedCalls = parsedList(text);
  if (!parsedCalls.every((one) => isObject(one) && names.has(one["name"]))) return [];
  return parsedCalls.filter(isObject).map(({ name, arguments: given, parameters, ...rest }) => {
    const argumentsJson = toArgumentsText(given ?? parameters ?? rest);
    return toOutputCall({ id: "", name: textOf(name), arguments: argumentsJson });
  });
}

function parsedList(text: string): readonly unknown[] {
  try {
    const value: unknown = parseJson(text);
    return Array.isArray(value) ? value : [value];
  } catch {
    return [];
  }
}

/**
 * Reads a stream in OpenAI's or Workers AI's format. A complete stream has a finish reason or
 * `[DONE]`.
 */
export class WorkersAiStream extends FrameReader {
  readonly #cap: number | null;
  readonly #builder = new ChunkBuilder();
  readonly #calls = new Map<number, { readonly id: string; readonly at: number }>();
  #callCount = 0;
  #usage: Usage | null = null;
  #isComplete = false;
  #isUsageStale = false;
  #hasOutput = false;
  #failure: ProviderFailure | null = null;

  constructor(cap: number | null) {
    super();
    this.#cap = cap;
  }

  protected get isFinished(): boolean {
    return this.#builder.finished;
  }

  protected override eventsAtMarker(): StreamEvent[] {
    if (this.#failure !== null) return createFailureEvents(this.#failure, this.#usage);
    return this.#hasOutput ? this.#end() : createFailureEvents(createRetryableFailure("empty"));
  }

  protected override eventsAtEnd(): StreamEvent[] {
    if (this.#failure !== null) return createFailureEvents(this.#failure, this.#usage);
    return this.#builder.finished ? this.#end() : [];
  }

  protected convertFrame(raw: JsonObject, name: string): StreamEvent[] {
    const failure =
      findWorkersAiFailure(raw) ??
      (name === "error" ? createRetryableFailure("error_event") : null);
    return failure === null
      ? [...this.#pieceEvents(raw), ...this.#usageEvents(raw)]
      : createFailureEvents(failure);
  }

  #pieceEvents(raw: JsonObject): StreamEvent[] {
    this.#hasOutput ||= "response" in raw || hasChoices(raw);
    if (this.#builder.finished || this.#failure !== null) return [];
    const { text, reasoning, calls, finish } = readWorkersAiPiece(raw);
    const events = [...this.#builder.addReasoning(reasoning), ...this.#builder.addText(text)];
    for (const [position, call] of calls.entries()) {
      events.push(...this.#callEvents(call, position));
    }
    if (events.length > 0) {
      this.#hasOutput = true;
      this.#isUsageStale = true;
    }
    if (finish === "error" || finish === "abort") {
      const failure = createIncompleteFailure(finish);
      if (!isCausedByRequest(failure)) return [...events, ...createFailureEvents(failure)];
      this.#failure = failure;
      return events;
    }
    return finish === null ? events : [...events, ...this.#builder.finish(finish)];
  }

  #callEvents(call: StreamedToolCall, position: number): StreamEvent[] {
    const key = call.index ?? position;
    const knownCall = this.#calls.get(key);
    const continuesCall =
      call.id === "" ? call.name === "" || call.index !== null : call.id === knownCall?.id;
    if (knownCall !== undefined && continuesCall) {
      return this.#builder.addToolArguments(call.arguments, knownCall.at);
    }
    if (call.name === "") return [];
    const at = this.#callCount++;
    this.#calls.set(key, { id: call.id, at });
    return [
      ...this.#builder.addTool(call.id, call.name),
      ...this.#builder.addToolArguments(call.arguments, at),
    ];
  }

  /**
   * Reads a usage report. A report with prompt tokens replaces the usage so far. Other reports add
   * output to it. A separate report after the end covers the whole response, and can exceed the
   * earlier total.
   */
  #usageEvents(raw: JsonObject): StreamEvent[] {
    const { usage: reported } = raw;
    const usage = readCounts(reported);
    if (usage === null) return [];
    const hasPrompt = sumPromptTokens(usage) > 0;
    if (hasPrompt) this.#usage = usage;
    else if (this.#usage === null) return [];
    else this.#usage = addOutput(this.#usage, usage);
    this.#isUsageStale = false;
    this.#isComplete = hasPrompt && this.#builder.finished && !hasChoices(raw);
    if (this.#isComplete) return [{ kind: "usage", usage: this.#usage }];
    // Skips a usage report before any output. Without a later report, it would count as the total.
    return this.#usage.output === 0 ? [] : [{ kind: "usage", usage: this.#usage, partial: true }];
  }

  #end(): StreamEvent[] {
    const events = this.#builder.finish(guessFinishReason(this.#usage, this.#cap));
    if (this.#usage !== null && !this.#isComplete && !this.#isUsageStale) {
      events.push({ kind: "usage", usage: this.#usage });
    }
    return [...events, STREAM_END_EVENT];
  }
}

function hasChoices({ choices }: JsonObject): boolean {
  return listOf(choices).length > 0;
}

function addOutput(sum: Usage, { output, reasoning }: Usage): Usage {
  return { ...sum, output: sum.output + output, reasoning: sum.reasoning + reasoning };
}
