import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { listOf, objectOf, parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import type { PayloadReader } from "../../core/sse-reader.ts";
import { failureEvents } from "../../core/spent.ts";
import { argumentsOf, finishOf, gaveUp, usageOf } from "./answer.ts";

/**
 * Reads one stream of POST /v2/chat. It is over at `message-end`; [DONE] may follow. Calls come one
 * after the other, and `tool_calls` is an object. Citations and unknown events are left out.
 */
export class CohereStream implements PayloadReader {
  readonly #builder = new ChunkBuilder();
  #ended = false;

  get ended(): boolean {
    return this.#ended;
  }

  read(data: string, name: string): StreamEvent[] {
    if (this.#ended || data.trim() === "") return [];
    if (data.trim() === "[DONE]") return this.fail("no_message_end");
    const raw = parseObject(data);
    if (raw === null) return this.fail("bad_event");
    return this.#event(textOf(raw["type"]) || name, raw);
  }

  fail(reason: string): StreamEvent[] {
    this.#ended = true;
    return failureEvents({ kind: "retry", reason });
  }

  #event(type: string, raw: JsonObject): StreamEvent[] {
    const delta = objectOf(raw["delta"]);
    const message = objectOf(delta["message"]);
    switch (type) {
      case "message-start":
        return this.#builder.begin();
      case "content-start":
      case "content-delta":
        return this.#content(objectOf(message["content"]));
      case "tool-plan-delta":
        return this.#builder.text(textOf(message["tool_plan"]));
      case "tool-call-start":
      case "tool-call-delta":
        return this.#toolCall(type === "tool-call-start", message["tool_calls"]);
      case "message-end":
        return this.#end(delta);
      case "message": // of no type: an error has only an id and a text
        return typeof raw["message"] === "string" ? this.fail("error_event") : [];
      default:
        return [];
    }
  }

  #content(content: JsonObject): StreamEvent[] {
    return [
      ...this.#builder.reasoning(textOf(content["thinking"])),
      ...this.#builder.text(textOf(content["text"])),
    ];
  }

  #toolCall(isStart: boolean, raw: unknown): StreamEvent[] {
    const call = objectOf(Array.isArray(raw) ? listOf(raw)[0] : raw);
    const called = objectOf(call["function"]);
    return [
      ...(isStart ? this.#builder.tool(textOf(call["id"]), textOf(called["name"])) : []),
      ...this.#builder.toolArguments(argumentsOf(called["arguments"])),
    ];
  }

  #end(delta: JsonObject): StreamEvent[] {
    const finish = finishOf(delta["finish_reason"]);
    const usage = usageOf(delta["usage"]);
    this.#ended = true;
    if (finish === null || textOf(delta["error"]) !== "") {
      return failureEvents(gaveUp(delta["finish_reason"]), usage);
    }
    const reported = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [...this.#builder.finish(finish), ...reported, { kind: "end" }];
  }
}
