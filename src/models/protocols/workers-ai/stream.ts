import { promptTokens } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { listOf } from "../../core/json-value.ts";
import { incompleteFailure } from "../../core/chat-message.ts";
import { readCounts } from "../../core/chat-usage.ts";
import { isRequestCaused } from "../../core/provider.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "../../core/provider.ts";
import { END_EVENT, FrameReader, retryFailure } from "../../core/frame-reader.ts";
import { failureEvents } from "../../core/failed-usage.ts";
import { guessFinishReason } from "./answer.ts";
import { workersAiFailureInside } from "./failure.ts";
import { readWorkersAiPiece } from "./piece.ts";
import type { StreamedCall } from "./piece.ts";

/** Reads a stream in OpenAI's or Workers AI's format. It needs a finish reason or [DONE]. */
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
    if (this.#failure !== null) return failureEvents(this.#failure, this.#usage);
    return this.#hasOutput ? this.#end() : failureEvents(retryFailure("empty"));
  }

  protected override eventsAtEnd(): StreamEvent[] {
    if (this.#failure !== null) return failureEvents(this.#failure, this.#usage);
    return this.#builder.finished ? this.#end() : [];
  }

  protected convertFrame(raw: JsonObject, name: string): StreamEvent[] {
    const failure =
      workersAiFailureInside(raw) ?? (name === "error" ? retryFailure("error_event") : null);
    return failure === null
      ? [...this.#pieceEvents(raw), ...this.#usageEvents(raw)]
      : failureEvents(failure);
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
      const failure = incompleteFailure(finish);
      if (!isRequestCaused(failure)) return [...events, ...failureEvents(failure)];
      this.#failure = failure;
      return events;
    }
    return finish === null ? events : [...events, ...this.#builder.finish(finish)];
  }

  #callEvents(call: StreamedCall, position: number): StreamEvent[] {
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
   * Reads a usage report. A report with prompt tokens covers everything so far. Others are added. A
   * separate report after the end covers the whole response and can exceed the sum.
   */
  #usageEvents(raw: JsonObject): StreamEvent[] {
    const { usage: reported } = raw;
    const usage = readCounts(reported);
    if (usage === null) return [];
    const hasPrompt = promptTokens(usage) > 0;
    if (hasPrompt) this.#usage = usage;
    else if (this.#usage === null) return [];
    else this.#usage = addOutput(this.#usage, usage);
    this.#isUsageStale = false;
    this.#isComplete = hasPrompt && this.#builder.finished && !hasChoices(raw);
    if (this.#isComplete) return [{ kind: "usage", usage: this.#usage }];
    // Skips a report before any output. It would count as the total if no other report followed.
    return this.#usage.output === 0 ? [] : [{ kind: "usage", usage: this.#usage, partial: true }];
  }

  #end(): StreamEvent[] {
    const events = this.#builder.finish(guessFinishReason(this.#usage, this.#cap));
    if (this.#usage !== null && !this.#isComplete && !this.#isUsageStale) {
      events.push({ kind: "usage", usage: this.#usage });
    }
    return [...events, END_EVENT];
  }
}

function hasChoices({ choices }: JsonObject): boolean {
  return listOf(choices).length > 0;
}

function addOutput(sum: Usage, { output, reasoning }: Usage): Usage {
  return { ...sum, output: sum.output + output, reasoning: sum.reasoning + reasoning };
}
