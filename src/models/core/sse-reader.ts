import { EVENT_LENGTH_MAX, SseDecoder } from "../../shared/http/server-sent-events.ts";
import type { FrameReader } from "./frame-reader.ts";
import type { StreamReader } from "./http-provider.ts";
import type { ProviderFailure, StreamEvent } from "./provider.ts";
import { eventTooLargeFailure } from "./failed-usage.ts";

export type NamedFrame = { readonly name: string; readonly data: string };

export type FrameSource = {
  events(bytes: Uint8Array): readonly NamedFrame[];
  flushEvents(): readonly NamedFrame[];
  readonly broken: ProviderFailure | null;
  readonly foreign?: string;
};

export function toStreamReader(source: FrameSource, reader: FrameReader): StreamReader {
  const eventsOf = (frames: readonly NamedFrame[]): StreamEvent[] => {
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

export function sseReader(reader: FrameReader): StreamReader {
  const decoder = new SseDecoder(EVENT_LENGTH_MAX, reader.repeated);
  const source: FrameSource = {
    events: (bytes) => decoder.events(bytes),
    flushEvents: () => decoder.flushEvents(),
    get broken() {
      return decoder.overflowed ? eventTooLargeFailure(EVENT_LENGTH_MAX) : null;
    },
    get foreign() {
      return decoder.foreign;
    },
  };
  return toStreamReader(source, reader);
}
