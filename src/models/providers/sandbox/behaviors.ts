import type { EventStream, StreamEvent, ProviderFailure } from "../../core/provider.ts";
import type { SandboxCompletion } from "./answer.ts";
import { generateSandboxEvents, isFinishEvent, createContentEvent } from "./answer.ts";
import { splitIntoWords } from "./tokens.ts";
import type { SandboxReplyOptions } from "./reply.ts";

type PlayedStep =
  | { readonly kind: "events"; readonly events: readonly StreamEvent[] }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "cut" };

/** The maximum timer delay in ms (24 days). Stands for an endless wait. */
const FOREVER_MS = 2 ** 31 - 1;

/**
 * Returns the steps as events. `signal` breaks the stream and `cancel` ends it, even during a wait.
 */
export function playSteps(steps: Iterator<PlayedStep>, signal: AbortSignal): EventStream {
  let cancelled = false;
  let broken = false;
  let endCurrentPause: (() => void) | null = null;
  const next = async (): Promise<readonly StreamEvent[] | null> => {
    for (;;) {
      if (cancelled) return null;
      if (broken || signal.aborted) throw new Error("the upstream connection broke");
      const step = steps.next();
      if (step.done === true) return null;
      if (step.value.kind === "events") return step.value.events;
      if (step.value.kind === "cut") {
        broken = true;
        continue;
      }
      const pause = startPause(step.value.ms, signal);
      endCurrentPause = pause.end;
      await pause.over;
    }
  };
  const cancel = (): void => {
    cancelled = true;
    endCurrentPause?.();
  };
  return { next, cancel };
}

export function pauseUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  return startPause(ms, signal).over;
}

function startPause(ms: number, signal: AbortSignal): { over: Promise<void>; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    resolve(undefined);
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  return { over: promise, end };
}

export type SandboxDelays = {
  readonly firstByteMs: number;
  readonly wordMs: number;
  readonly endlessMs: number;
};

export type SandboxBehavior = {
  readonly mode?: SandboxReplyOptions;
  readonly modifyAnswer?: (answer: SandboxCompletion, cap: number) => SandboxCompletion;
  readonly stream: (answer: SandboxCompletion, delays: SandboxDelays) => Generator<PlayedStep>;
  /**
   * Returns the delay before a JSON response in ms, or a failure. Without this function, the
   * response has no delay.
   */
  readonly json?: (delays: SandboxDelays) => number | ProviderFailure;
};

const EVENTS_PER_BATCH = 16;
const WORDS_BEFORE_STALL = 2;
const WORDS_BEFORE_FAULT = 3;
const USAGE_FACTOR = 1000;
const MULTIBYTE = "Grüße, 世界 🌍 ";
const STREAM_ERROR: ProviderFailure = { kind: "retry", reason: "500" };
const CONNECTION_ERROR: ProviderFailure = { kind: "retry", reason: "connection" };

export const SANDBOX_BEHAVIORS: ReadonlyMap<string, SandboxBehavior> = new Map<
  string,
  SandboxBehavior
>([
  ["echo", { stream: inLargeBatches }],
  ["think", { stream: inLargeBatches, mode: { thinks: true } }],
  ["agent", { stream: inLargeBatches, mode: { isAgent: true } }],
  ["slow-first-byte", { stream: slowFirstByte, json: (delays) => delays.firstByteMs }],
  ["slow-stream", { stream: slowStream }],
  ["stall", { stream: stall, json: () => FOREVER_MS }],
  ["cut", { stream: cut, json: () => CONNECTION_ERROR }],
  ["error-mid", { stream: errorMid, json: () => STREAM_ERROR }],
  ["error-first", { stream: errorFirst, json: () => STREAM_ERROR }],
  ["no-usage", { stream: wordByWord, modifyAnswer: (answer) => ({ ...answer, usage: null }) }],
  ["huge-usage", { stream: wordByWord, modifyAnswer: withHugeUsage }],
  [
    "split-utf8",
    { stream: withEmptyBatches, modifyAnswer: splitByCharacter, mode: { opening: MULTIBYTE } },
  ],
  ["endless", { stream: endless, json: () => FOREVER_MS }],
]);

function* inLargeBatches(answer: SandboxCompletion): Generator<PlayedStep> {
  let events: StreamEvent[] = [];
  for (const event of generateSandboxEvents(answer)) {
    events.push(event);
    if (events.length < EVENTS_PER_BATCH) continue;
    yield { kind: "events", events };
    events = [];
  }
  if (events.length > 0) yield { kind: "events", events };
}

function* wordByWord(answer: SandboxCompletion): Generator<PlayedStep> {
  for (const event of generateSandboxEvents(answer)) yield { kind: "events", events: [event] };
}

function* slowFirstByte(answer: SandboxCompletion, delays: SandboxDelays): Generator<PlayedStep> {
  yield { kind: "wait", ms: delays.firstByteMs };
  yield* inLargeBatches(answer);
}

function* slowStream(answer: SandboxCompletion, delays: SandboxDelays): Generator<PlayedStep> {
  let isFirst = true;
  for (const step of wordByWord(answer)) {
    if (!isFirst) yield { kind: "wait", ms: delays.wordMs };
    yield step;
    isFirst = false;
  }
}

function* stall(answer: SandboxCompletion): Generator<PlayedStep> {
  yield* firstPieces(answer, WORDS_BEFORE_STALL);
  for (;;) yield { kind: "wait", ms: FOREVER_MS };
}

function* cut(answer: SandboxCompletion): Generator<PlayedStep> {
  yield* firstPieces(answer, WORDS_BEFORE_FAULT);
  yield { kind: "cut" };
}

function* errorMid(answer: SandboxCompletion): Generator<PlayedStep> {
  yield* firstPieces(answer, WORDS_BEFORE_FAULT);
  yield* errorFirst();
}

function* errorFirst(): Generator<PlayedStep> {
  yield { kind: "events", events: [{ kind: "error", failure: STREAM_ERROR }] };
}

function* withEmptyBatches(answer: SandboxCompletion): Generator<PlayedStep> {
  for (const step of wordByWord(answer)) {
    yield { kind: "events", events: [] };
    yield step;
  }
}

function* endless(answer: SandboxCompletion, delays: SandboxDelays): Generator<PlayedStep> {
  yield* firstPieces(answer, 0);
  const text = answer.replies[0]?.content ?? "";
  const words = splitIntoWords(`${text === "" ? "on and on" : text} `);
  for (;;) {
    for (const word of words) {
      yield { kind: "events", events: [createContentEvent(word)] };
      yield { kind: "wait", ms: delays.endlessMs };
    }
  }
}

function* firstPieces(answer: SandboxCompletion, pieces: number): Generator<PlayedStep> {
  let eventsLeft = answer.replies.length * (1 + pieces);
  for (const event of generateSandboxEvents(answer)) {
    if (eventsLeft-- <= 0 || isFinishEvent(event)) return;
    yield { kind: "events", events: [event] };
  }
}

function withHugeUsage(answer: SandboxCompletion, cap: number): SandboxCompletion {
  if (answer.usage === null) return answer;
  const { input, output } = answer.usage;
  const aboveCap = Number.isFinite(cap) ? cap * answer.replies.length + 1 : 0;
  const hugeOutput = Math.max(output * USAGE_FACTOR, aboveCap);
  return { ...answer, usage: { ...answer.usage, input: input * USAGE_FACTOR, output: hugeOutput } };
}

function splitByCharacter(answer: SandboxCompletion): SandboxCompletion {
  return { ...answer, split: answer.split ?? ((text) => Array.from(text)) };
}
