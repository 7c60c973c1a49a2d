import type { Usage } from "../../../shared/usage.ts";
import {
  createObjectReader,
  numberOf,
  objectOf,
  textOf,
  readAnyValue,
  createListReader,
  createOptionalReader,
} from "../../core/json-value.ts";
import {
  discardUsageWithoutPrompt,
  readCountOrZero,
  readTokenCount,
} from "../../core/openai-usage.ts";
import {
  toFinishReason,
  toCompletion,
  joinTextOfOutputParts,
  ChunkBuilder,
} from "../../core/output-part.ts";
import type {
  ProviderResponse,
  JsonObject,
  ProviderFailure,
  StreamEvent,
} from "../../core/provider.ts";
import type { FinishReason, OutputPart } from "../../core/output-part.ts";
import {
  addUsageToFailure,
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import { findGeminiFailure, parseJsonOrNull } from "./failure.ts";

const readCounts = createObjectReader({
  promptTokenCount: readTokenCount,
  cachedContentTokenCount: readCountOrZero,
  toolUsePromptTokenCount: readCountOrZero,
  candidatesTokenCount: readCountOrZero,
  thoughtsTokenCount: readCountOrZero,
});

/**
 * Reads `usageMetadata` (ai.google.dev). The prompt count includes cached tokens and excludes tool
 * prompts. The candidates count excludes thoughts. Returns null for a missing or zero prompt count.
 */
export function readGeminiUsage(raw: unknown): Usage | null {
  const parsed = readCounts(raw);
  const { promptTokenCount: promptTokens, cachedContentTokenCount: cachedTokens } = parsed;
  const { toolUsePromptTokenCount: toolPromptTokens, candidatesTokenCount: outputTokens } = parsed;
  const { thoughtsTokenCount: thoughtTokens } = parsed;
  if (promptTokens === null || cachedTokens === null || toolPromptTokens === null) return null;
  if (outputTokens === null || thoughtTokens === null) return null;
  const cacheRead = Math.min(cachedTokens, promptTokens);
  return discardUsageWithoutPrompt({
    input: promptTokens - cacheRead + toolPromptTokens,
    cacheRead,
    cacheWrite: 0,
    output: outputTokens + thoughtTokens,
    reasoning: thoughtTokens,
  });
}

const readPart = createObjectReader({
  text: textOf,
  thought: readAnyValue,
  thoughtSignature: textOf,
  functionCall: createObjectReader({
    id: textOf,
    name: textOf,
    args: createOptionalReader(objectOf),
  }),
});
const readCandidate = createObjectReader({
  index: numberOf,
  content: createObjectReader({ parts: createListReader(readPart) }),
  finishReason: textOf,
});
const readResponse = createObjectReader({
  candidates: createListReader(readCandidate),
  promptFeedback: createObjectReader({ blockReason: textOf }),
  usageMetadata: readAnyValue,
});

const FAILURE_REASONS: ReadonlySet<string> = new Set([
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
]);

export function parseGeminiFinishReason(reason: string): FinishReason | ProviderFailure {
  const finishReason = FAILURE_REASONS.has(reason) ? null : toFinishReason(reason);
  return finishReason ?? { kind: "retry", reason: reason.toLowerCase(), fault: "request" };
}

type Candidate = {
  readonly index: number;
  readonly parts: readonly OutputPart[];
  readonly finish: string;
};

/** Returns the candidates and usage, and whether the prompt was blocked. */
function readGeminiCandidates(raw: JsonObject) {
  const { candidates, promptFeedback, usageMetadata } = readResponse(raw);
  const isBlocked = candidates.length === 0 && promptFeedback.blockReason !== "";
  const parsedCandidates = candidates.map(
    ({ index = -1, content, finishReason: finish }, position): Candidate => {
      const choiceIndex = Number.isSafeInteger(index) && index >= 0 ? index : position;
      return { index: choiceIndex, parts: content.parts.flatMap(toOutputParts), finish };
    },
  );
  return { isBlocked, candidates: parsedCandidates, usage: readGeminiUsage(usageMetadata) };
}

function toOutputParts({
  text,
  thought,
  functionCall,
  thoughtSignature,
}: ReturnType<typeof readPart>): OutputPart[] {
  if (text !== "") return [{ kind: thought === true ? "thought" : "text", text }];
  const { id, name, args } = functionCall;
  if (name === "") return [];
  const more = { extra_content: { google: { thought_signature: thoughtSignature } } };
  const argumentsJson = args === null ? "" : JSON.stringify(args);
  return [
    { kind: "call", id, name, arguments: argumentsJson, ...(thoughtSignature !== "" && { more }) },
  ];
}

export function readGeminiChat(raw: JsonObject): ProviderResponse | ProviderFailure | null {
  const { isBlocked, candidates, usage } = readGeminiCandidates(raw);
  if (isBlocked) {
    return toCompletion([[EMPTY_TEXT, { kind: "finish", reason: "content_filter" }]], usage);
  }
  const choices: (readonly OutputPart[])[] = [];
  for (const { parts, finish } of candidates.toSorted((a, b) => a.index - b.index)) {
    const reason = parseGeminiFinishReason(finish);
    if (typeof reason === "object") {
      return addUsageToFailure(reason, {
        usage,
        text: joinTextOfOutputParts([...choices.flat(), ...parts]),
      });
    }
    choices.push([EMPTY_TEXT, ...parts, { kind: "finish", reason }]);
  }
  return choices.length === 0 ? null : toCompletion(choices, usage);
}

const EMPTY_TEXT: OutputPart = { kind: "text", text: "" };

/**
 * Converts a Gemini stream. A stream has no end marker and is complete once every candidate has
 * finished. An error can arrive outside an event.
 */
export class GeminiChunkReader extends FrameReader {
  #hasOutput = false;
  readonly #choices = new Map<number, ChunkBuilder>();
  readonly #secrets: () => readonly string[];
  readonly #choicesRequested: number;

  constructor(secrets: () => readonly string[], choicesRequested = 1) {
    super();
    this.#secrets = secrets;
    this.#choicesRequested = choicesRequested;
  }

  protected get isFinished(): boolean {
    return this.#choices.size >= this.#choicesRequested && this.#haveAllFinished();
  }

  protected convertFrame(raw: JsonObject): StreamEvent[] {
    const failure = findGeminiFailure(raw, this.#secrets());
    return failure === null
      ? this.#chunk(raw)
      : createFailureEvents(failure, readGeminiCandidates(raw).usage);
  }

  protected override eventsAtEnd(textOutsideEvents: string): StreamEvent[] {
    const failure = findGeminiFailure(parseJsonOrNull(textOutsideEvents), this.#secrets());
    if (failure !== null) return createFailureEvents(failure);
    if (this.#haveAllFinished()) return [STREAM_END_EVENT];
    return textOutsideEvents.trim() === ""
      ? []
      : createFailureEvents(createRetryableFailure("bad_event"));
  }

  #chunk(raw: JsonObject): StreamEvent[] {
    const { isBlocked, candidates, usage } = readGeminiCandidates(raw);
    const events = isBlocked ? this.#finishBlocked() : [];
    for (const { index, parts, finish: reason } of candidates) {
      const choice = this.#choice(index);
      if (choice.finished) continue;
      events.push(...parts.flatMap((one) => choice.addPart(one)));
      if (reason === "") continue;
      const finish = parseGeminiFinishReason(reason);
      if (typeof finish === "object") return [...events, ...createFailureEvents(finish, usage)];
      events.push(...choice.finish(finish));
    }
    this.#hasOutput ||= events.length > 0;
    // Drops usage before the first content, because another route can still be tried. Later chunks
    // repeat the usage.
    if (usage === null || !this.#hasOutput) return events;
    return [...events, { kind: "usage", usage, ...(!this.isFinished && { partial: true }) }];
  }

  #finishBlocked(): StreamEvent[] {
    this.#choice(0);
    return [...this.#choices.values()].flatMap((choice) => choice.finish("content_filter"));
  }

  #choice(index: number): ChunkBuilder {
    const builder = this.#choices.get(index) ?? new ChunkBuilder(index);
    this.#choices.set(index, builder);
    return builder;
  }

  #haveAllFinished(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.finished);
  }
}
