import { parseObject } from "./json-value.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "./provider.ts";
import { failureEvents } from "./failed-usage.ts";

export const END_EVENT: StreamEvent = { kind: "end" };
const DONE = "[DONE]";

/**
 * Reads the frames of one stream. Skips empty frames, comments and frames that aren't JSON objects.
 * If a stream with an unreadable frame ends early, it fails with `bad_event`. Once every choice has
 * finished, ignores errors, but usage still counts. Nothing follows an `end` or an `error`.
 */
export abstract class FrameReader {
  readonly repeated?: ReadonlySet<string>;
  #ended = false;
  #hasUnreadable = false;

  get ended(): boolean {
    return this.#ended;
  }

  read(data: string, name: string): StreamEvent[] {
    if (this.#ended) return [];
    const text = this.repeatedText(data, name);
    if (text !== null) return [text];
    const payload = data.trim();
    if (payload === "" || payload.startsWith(":")) return [];
    if (payload === DONE) return this.#accept(this.eventsAtMarker(), this.isFinished);
    const raw = parseObject(payload);
    const wasFinished = this.isFinished;
    if (raw !== null) return this.#accept(this.convertFrame(raw, name, data), wasFinished);
    this.#hasUnreadable = true;
    const events = name === "error" ? failureEvents(retryFailure("error_event")) : [];
    return this.#accept(events, wasFinished);
  }

  endOfFile(unparsedData = ""): StreamEvent[] {
    if (this.#ended) return [];
    const events = this.#accept(this.eventsAtEnd(unparsedData), this.isFinished);
    if (this.#ended) return events;
    if (this.isFinished) return this.#accept([...events, END_EVENT], true);
    return this.#hasUnreadable ? [...events, ...this.fail(retryFailure("bad_event"))] : events;
  }

  /** Ends an unreadable stream. This is a failure unless every choice has finished. */
  fail(failure: ProviderFailure): StreamEvent[] {
    if (this.#ended) return [];
    return this.#accept(this.isFinished ? [END_EVENT] : failureEvents(failure), false);
  }

  protected abstract get isFinished(): boolean;

  protected abstract convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[];

  /** Returns an event if the frame equals the previous one except for its text, otherwise null. */
  protected repeatedText(_data: string, _name: string): StreamEvent | null {
    return null;
  }

  protected eventsAtMarker(): StreamEvent[] {
    return this.isFinished ? [END_EVENT] : [];
  }

  protected eventsAtEnd(_foreign: string): StreamEvent[] {
    return [];
  }

  #accept(events: StreamEvent[], wasFinished: boolean): StreamEvent[] {
    const keptEvents = wasFinished ? events.filter(({ kind }) => kind !== "error") : events;
    const last = keptEvents.findIndex(({ kind }) => kind === "end" || kind === "error");
    if (last === -1) return keptEvents;
    this.#ended = true;
    return keptEvents.slice(0, last + 1);
  }
}

export function retryFailure(reason: string): ProviderFailure {
  return { kind: "retry", reason };
}
