import { isRequestCaused } from "../core/provider.ts";
import type { ProviderFailure, StreamEvent } from "../core/provider.ts";
import type { StreamWriter, StreamData } from "../core/endpoint-adapter.ts";
import { joinBytes } from "../../shared/http/bounded-body.ts";
import type { StreamEnding } from "./charge.ts";
import type { StreamMeter } from "./stream-meter.ts";

type DigestContext = {
  readonly meter: StreamMeter;
  readonly writer: StreamWriter;
  failure: ProviderFailure | null;
};

/**
 * Counts the usage of a batch of events and converts them to the client's format. Stops at the
 * event that ends the stream.
 */
export function convertEvents(
  streaming: DigestContext,
  batch: readonly StreamEvent[],
): { readonly written: StreamData; readonly over: StreamEnding | null } {
  const { meter } = streaming;
  let written: StreamData = "";
  for (const event of batch) {
    if (event.kind === "error") {
      streaming.failure = event.failure;
      return { written, over: isRequestCaused(event.failure) ? "provoked" : "failed" };
    }
    if (event.kind === "end") return { written, over: endingOf(meter, "complete") };
    if (event.kind === "usage") meter.setUsage(event.usage, event.partial);
    else if (event.kind === "thinking") meter.beginHiddenReasoning();
    else written = joinStreamData(written, writeEvent(streaming, event));
  }
  return { written, over: null };
}

type OutputEvent = Extract<StreamEvent, { kind: "chunk" | "text" | "native" | "piece" | "audio" }>;

function writeEvent({ meter, writer }: DigestContext, event: OutputEvent): StreamData {
  switch (event.kind) {
    case "chunk":
      meter.addChunk(event.chunk);
      return writer.chunk(event.chunk);
    case "text":
      meter.addText(event.json);
      return writer.text(event.index, event.json);
    case "native":
      meter.addNativeEvent(event);
      return writer.native?.(event.event) ?? "";
    case "piece":
      return writer.piece?.(event) ?? "";
    case "audio":
      return writer.audio?.(event.bytes) ?? "";
  }
}

/** Returns `complete` if every choice has finished, or else the fallback. */
export function endingOf(meter: StreamMeter, fallbackEnding: StreamEnding): StreamEnding {
  return meter.finished ? "complete" : fallbackEnding;
}

const encoder = new TextEncoder();

export function joinStreamData(one: StreamData, next: StreamData): StreamData {
  if (typeof one === "string" && typeof next === "string") return one + next;
  if (one.length === 0) return next;
  if (next.length === 0) return one;
  const parts = [one, next].map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  return joinBytes(
    parts,
    parts.reduce((sum, { length }) => sum + length, 0),
  );
}
