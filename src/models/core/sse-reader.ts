import { EVENT_LENGTH_MAX, SseDecoder } from "../../shared/http/server-sent-events.ts";
import type { StreamReader } from "./http-provider.ts";
import type { StreamEvent } from "./provider.ts";
import { eventTooLarge } from "./spent.ts";

/** Reads the payloads of server-sent events, one provider's dialect. */
export type PayloadReader = {
  /** The events of one payload; `name` is the server-sent event's, "message" when it has none. */
  read(data: string, name: string): StreamEvent[];
  /** Ends the stream with an upstream failure of our own finding. */
  fail(reason: string): StreamEvent[];
  /**
   * The end of file, for dialects without a terminal marker; where absent, it completes nothing.
   * `foreign`: the stream's lines that are no server-sent event's.
   */
  endOfFile?(foreign: string): StreamEvent[];
  /** Fields that the dialect repeats, which are not read of an event that is very long: they are null in it. */
  readonly repeated?: ReadonlySet<string>;
  readonly ended: boolean;
};

/** A stream reader for a dialect of server-sent events. */
export function sseReader(payloads: PayloadReader): StreamReader {
  const decoder = new SseDecoder(EVENT_LENGTH_MAX, payloads.repeated);
  const eventsOf = (messages: ReturnType<SseDecoder["events"]>): StreamEvent[] => {
    const events: StreamEvent[] = [];
    for (const { name, data } of messages) events.push(...payloads.read(data, name));
    if (!decoder.overflowed || payloads.ended) return events;
    const failure = eventTooLarge(EVENT_LENGTH_MAX);
    payloads.fail(failure.reason);
    return [...events, { kind: "error", failure }];
  };
  return {
    push: (bytes) => eventsOf(decoder.events(bytes)),
    flush() {
      const events = eventsOf(decoder.flushEvents());
      if (!payloads.ended) events.push(...(payloads.endOfFile?.(decoder.foreign) ?? []));
      return events;
    },
    get ended() {
      return payloads.ended;
    },
  };
}
