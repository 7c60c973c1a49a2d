import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { END_EVENT, FrameReader, retry } from "../../core/frame-reader.ts";
import { failureEvents } from "../../core/failed-usage.ts";
import { anyValue, objectReader } from "../../core/shape.ts";
import { call, cohereFinishReason, cohereGaveUpFailure, part, usageOf } from "./answer.ts";

const readEvent = objectReader({
  type: textOf,
  message: anyValue,
  delta: objectReader({
    message: objectReader({
      content: part,
      tool_plan: textOf,
      tool_calls: (raw) => call(Array.isArray(raw) ? raw[0] : raw),
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

  protected frame(raw: JsonObject, name: string): StreamEvent[] {
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
          ...this.#builder.reasoning(message.content.thinking),
          ...this.#builder.text(message.content.text),
        ];
      case "tool-plan-delta":
        return this.#builder.text(message.tool_plan);
      case "tool-call-start":
      case "tool-call-delta":
        return this.#toolCall(type === "tool-call-start", message.tool_calls);
      case "message-end":
        return this.#end(delta);
      case "message": // an error has no type, only an ID and a text
        return typeof text === "string" ? failureEvents(retry("error_event")) : [];
      default:
        return [];
    }
  }

  #toolCall(isStart: boolean, { id, function: called }: ReturnType<typeof call>): StreamEvent[] {
    return [
      ...(isStart ? this.#builder.tool(id, called.name) : []),
      ...this.#builder.toolArguments(called.arguments),
    ];
  }

  #end({ finish_reason: rawReason, usage: rawUsage, error }: Event["delta"]): StreamEvent[] {
    const finish = cohereFinishReason(rawReason);
    const usage = usageOf(rawUsage);
    if (finish === null || error !== "") {
      return failureEvents(cohereGaveUpFailure(rawReason), usage);
    }
    const usageEvents = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [...this.#builder.finish(finish), ...usageEvents, END_EVENT];
  }
}
