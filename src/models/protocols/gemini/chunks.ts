import { ChunkBuilder } from "../../core/chunk-builder.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { END_EVENT, FrameReader, retryFailure } from "../../core/frame-reader.ts";
import { readGeminiCandidates, geminiFinishReason } from "./answer.ts";
import { geminiFailureInside, parseGoogleJson } from "./failure.ts";
import { failureEvents } from "../../core/failed-usage.ts";

/**
 * Converts a Gemini stream. It has no end marker and is complete once every candidate has finished.
 * An error can be outside of events.
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
    const failure = geminiFailureInside(raw, this.#secrets());
    return failure === null
      ? this.#chunk(raw)
      : failureEvents(failure, readGeminiCandidates(raw).usage);
  }

  protected override eventsAtEnd(textOutsideEvents: string): StreamEvent[] {
    const failure = geminiFailureInside(parseGoogleJson(textOutsideEvents), this.#secrets());
    if (failure !== null) return failureEvents(failure);
    if (this.#haveAllFinished()) return [END_EVENT];
    return textOutsideEvents.trim() === "" ? [] : failureEvents(retryFailure("bad_event"));
  }

  #chunk(raw: JsonObject): StreamEvent[] {
    const { isBlocked, candidates, usage } = readGeminiCandidates(raw);
    const events = isBlocked ? this.#finishBlocked() : [];
    for (const { index, parts, finish: reason } of candidates) {
      const choice = this.#choice(index);
      if (choice.finished) continue;
      events.push(...parts.flatMap((one) => choice.addPart(one)));
      if (reason === "") continue;
      const finish = geminiFinishReason(reason);
      if (typeof finish === "object") return [...events, ...failureEvents(finish, usage)];
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
