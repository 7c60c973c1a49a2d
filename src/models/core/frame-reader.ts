import { parseStringLiteral, parseObject } from "./json-value.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import type { Usage } from "../../shared/usage.ts";
import { joinOutputText } from "./chunk.ts";
import { isCausedByRequest } from "./provider.ts";
import type { ProviderFailure, StreamEvent, JsonObject } from "./provider.ts";
import type { Chunk, Completion } from "./chunk.ts";
import { EVENT_LENGTH_MAX, SseDecoder } from "../../shared/http/server-sent-events.ts";

/**
 * Adds to a failure the tokens that the provider may bill, as reported or estimated from the text.
 */
export function addUsageToFailure(
  failure: ProviderFailure,
  { usage, text }: { readonly usage: Usage | null; readonly text: string },
): ProviderFailure {
  if (usage === null && text === "") return failure;
  const output = usage === null ? Math.ceil(estimateTokens(text)) : 0;
  return { ...failure, spent: { usage, output } };
}

/**
 * Returns the final events of a failed stream. Partial usage is charged only if the request may
 * have caused the failure.
 */
export function createFailureEvents(
  failure: ProviderFailure,
  usage: Usage | null = null,
): StreamEvent[] {
  const error: StreamEvent = { kind: "error", failure };
  if (usage === null) return [error];
  const partial = !isCausedByRequest(failure);
  return [{ kind: "usage", usage, ...(partial && { partial }) }, error];
}

/**
 * Returns the failure for an event above `bytesMax`. The request counts as the cause, because other
 * hosts would send a similar event.
 */
export function createEventTooLargeFailure(bytesMax: number): ProviderFailure {
  return {
    kind: "refused",
    reason: "event_too_large",
    message: `The response has an event larger than ${bytesMax / 1024 / 1024} MB. Request less output.`,
    spent: { usage: null, output: 0 },
  };
}

export function addEventUsageToFailure(
  failure: ProviderFailure,
  events: readonly StreamEvent[],
): ProviderFailure {
  let usage: Usage | null = null;
  let text = "";
  for (const event of events) {
    if (event.kind === "usage") usage = event.partial === true ? null : event.usage;
    else if (event.kind === "text") text += parseStringLiteral(event.json);
    else if (event.kind === "native") text += event.text;
    else if (event.kind === "chunk") text += joinOutputTextOfChoices(event.chunk);
  }
  return addUsageToFailure(failure, { usage, text });
}

export function joinOutputTextOfChoices({ choices }: Chunk | Completion): string {
  return choices
    .map((choice) => joinOutputText("delta" in choice ? choice.delta : choice.message))
    .join("");
}

export const STREAM_END_EVENT: StreamEvent = { kind: "end" };
const DONE = "[DONE]";

export type StreamReader = {
  push(bytes: Uint8Array): StreamEvent[];
  flush(): StreamEvent[];
  readonly ended: boolean;
};

/**
 * Reads the frames of one stream. Skips empty frames, comments and frames that aren't JSON objects.
 * If a stream ends early after an unreadable frame, it fails with `bad_event`. Once every choice
 * has finished, ignores errors but still reads usage. No event follows an `end` or an `error`.
 */
export abstract class FrameReader {
  readonly repeated?: ReadonlySet<string>;
  ended = false;
  /** The provider's key, which error texts must not contain. */
  protected readonly secret: string | undefined;
  #hasUnreadable = false;

  constructor(secret?: string) {
    this.secret = secret;
  }

  read(data: string, name: string): StreamEvent[] {
    if (this.ended) return [];
    const text = this.repeatedText(data, name);
    if (text !== null) return [text];
    const payload = data.trim();
    if (payload === "" || payload.startsWith(":")) return [];
    if (payload === DONE) return this.#accept(this.eventsAtMarker(), this.isFinished);
    const raw = parseObject(payload);
    const wasFinished = this.isFinished;
    if (raw !== null) return this.#accept(this.convertFrame(raw, name, data), wasFinished);
    this.#hasUnreadable = true;
    const events =
      name === "error" ? createFailureEvents(createRetryableFailure("error_event")) : [];
    return this.#accept(events, wasFinished);
  }

  endOfFile(unparsedData = ""): StreamEvent[] {
    if (this.ended) return [];
    const events = this.#accept(this.eventsAtEnd(unparsedData), this.isFinished);
    if (this.ended) return events;
    if (this.isFinished) return this.#accept([...events, STREAM_END_EVENT], true);
    return this.#hasUnreadable
      ? [...events, ...this.fail(createRetryableFailure("bad_event"))]
      : events;
  }

  /** Ends a broken stream. Returns an error unless every choice has finished. */
  fail(failure: ProviderFailure): StreamEvent[] {
    if (this.ended) return [];
    return this.#accept(this.isFinished ? [STREAM_END_EVENT] : createFailureEvents(failure), false);
  }

  protected abstract get isFinished(): boolean;

  protected abstract convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[];

  /** Returns the frame's event if only its text differs from the previous frame, otherwise null. */
  protected repeatedText(_data: string, _name: string): StreamEvent | null {
    return null;
  }

  protected eventsAtMarker(): StreamEvent[] {
    return this.isFinished ? [STREAM_END_EVENT] : [];
  }

  protected eventsAtEnd(_foreign: string): StreamEvent[] {
    return [];
  }

  #accept(events: StreamEvent[], wasFinished: boolean): StreamEvent[] {
    const keptEvents = wasFinished ? events.filter(({ kind }) => kind !== "error") : events;
    const last = keptEvents.findIndex(({ kind }) => kind === "end" || kind === "error");
    if (last === -1) return keptEvents;
    this.ended = true;
    return keptEvents.slice(0, last + 1);
  }
}

export function createRetryableFailure(reason: string): ProviderFailure {
  return { kind: "retry", reason };
}

export type StreamFrame = { readonly name: string; readonly data: string };

/** Splits the bytes of a stream into frames. */
export type FrameSource = {
  events(bytes: Uint8Array): readonly StreamFrame[];
  flushEvents(): readonly StreamFrame[];
  readonly broken: ProviderFailure | null;
  readonly foreign?: string;
};

export function toStreamReader(source: FrameSource, reader: FrameReader): StreamReader {
  const eventsOf = (frames: readonly StreamFrame[]): StreamEvent[] => {
    const events = frames.flatMap(({ name, data }) => reader.read(data, name));
    return source.broken === null ? events : [...events, ...reader.fail(source.broken)];
  };
  return {
    push: (bytes) => eventsOf(source.events(bytes)),
    flush: () => [...eventsOf(source.flushEvents()), ...reader.endOfFile(source.foreign)],
    get ended() {
      return reader.ended;
    },
  };
}

export function createSseReader(reader: FrameReader): StreamReader {
  const decoder = new SseDecoder(EVENT_LENGTH_MAX, reader.repeated);
  const source: FrameSource = {
    events: (bytes) => decoder.events(bytes),
    flushEvents: () => decoder.flushEvents(),
    get broken() {
      return decoder.overflowed ? createEventTooLargeFailure(EVENT_LENGTH_MAX) : null;
    },
    get foreign() {
      return decoder.foreign;
    },
  };
  return toStreamReader(source, reader);
}
