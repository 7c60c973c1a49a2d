import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { END_EVENT, FrameReader, retryFailure } from "../../core/frame-reader.ts";
import { failureEvents } from "../../core/failed-usage.ts";
import { anyValue, objectReader } from "../../core/shape.ts";
import {
  readCohereCall,
  cohereFinishReason,
  cohereGaveUpFailure,
  readCoherePart,
  readCohereUsage,
} from "./answer.ts";

const readEvent = objectReader({
  type: textOf,
  message: anyValue,
  delta: objectReader({
    message: objectReader({
      content: readCoherePart,
      tool_plan: textOf,
      tool_calls: (raw) => readCohereCall(Array.isArray(raw) ? raw[0] : raw),
    }),
    finish_reason: anyValue,
    usage: anyValue,
    error: textOf,
  }),
});
type Event = ReturnType<typeof readEvent>;

/** Reads a stream of POST /v2/chat. It ends with `message-end`. Tool calls don't overlap. */
export class CohereStream extends FrameReader {
  readonly #builder = new ChunkBuilder();

  protected get isFinished(): boolean {
    return this.#builder.finished;
  }

  protected convertFrame(raw: JsonObject, name: string): StreamEvent[] {
    const streamEvent = readEvent(raw);
    return this.#event(streamEvent.type === "" ? { ...streamEvent, type: name } : streamEvent);
  }

  #event({ type, delta, message: text }: Event): StreamEvent[] {
    const { message } = delta;
    switch (type) {
      case "message-start":
        return this.#builder.begin();
      case "content-start":
      case "content-delta":
        return [
          ...this.#builder.addReasoning(message.content.thinking),
          ...this.#builder.addText(message.content.text),
        ];
      case "tool-plan-delta":
        return this.#builder.addText(message.tool_plan);
      case "tool-call-start":
      case "tool-call-delta":
        return this.#toolCall(type === "tool-call-start", message.tool_calls);
      case "message-end":
        return this.#end(delta);
      case "message": // an error has no type, only an ID and a text
        return typeof text === "string" ? failureEvents(retryFailure("error_event")) : [];
      default:
        return [];
    }
  }

  #toolCall(
    isStart: boolean,
    { id, function: called }: ReturnType<typeof readCohereCall>,
  ): StreamEvent[] {
    return [
      ...(isStart ? this.#builder.addTool(id, called.name) : []),
      ...this.#builder.addToolArguments(called.arguments),
    ];
  }

  #end({ finish_reason: rawReason, usage: rawUsage, error }: Event["delta"]): StreamEvent[] {
    const finish = cohereFinishReason(rawReason);
    const usage = readCohereUsage(rawUsage);
    if (finish === null || error !== "") {
      return failureEvents(cohereGaveUpFailure(rawReason), usage);
    }
    const usageEvents = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [...this.#builder.finish(finish), ...usageEvents, END_EVENT];
  }
}
