import { ChunkBuilder } from "../../core/output-part.ts";
import { isObject, listOf, numberOf, objectOf, textOf } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "../../core/provider.ts";
import {
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import { toChatAnnotations, joinItemText } from "./host-answer.ts";
import { RepeatedTextReader } from "../../core/text-template.ts";
import type { RawEvent, RawResponsesItem, RawResponse } from "./host-rules.ts";
import {
  parseResponsesFinishReason,
  toReasoningDetail,
  parseResponsesApiFailure,
  readResponsesUsage,
} from "./host-rules.ts";

function isThinking(type: string, event: RawEvent): boolean {
  const item: RawResponsesItem = objectOf(event.item);
  if (type === "response.output_item.added") return item.type === "reasoning";
  return type.startsWith("response.reasoning");
}

const THINKING: StreamEvent = { kind: "thinking" };

type Call = { readonly index: number; readonly isCustom: boolean; hasInput: boolean };

const REPEATED_FIELDS: ReadonlySet<string> = new Set([
  "instructions",
  "tools",
  "text",
  "output",
  "content",
  "logprobs",
]);

abstract class ResponseReader extends FrameReader {
  override readonly repeated = REPEATED_FIELDS;

  protected get isFinished(): boolean {
    return this.ended;
  }

  protected convertFrame(event: RawEvent, name: string, _data: string): StreamEvent[] {
    const type = textOf(event.type) || name;
    const response: RawResponse = objectOf(event.response);
    switch (type) {
      case "response.completed":
      case "response.incomplete":
        return this.#end(event, response);
      case "response.failed":
        return this.#failed(parseResponsesApiFailure(response, this.secret), response);
      case "error":
        return this.#failed(parseResponsesApiFailure(event, this.secret), response);
      default: {
        const events = this.events(type, event);
        return isThinking(type, event) ? [...events, THINKING] : events;
      }
    }
  }

  #failed(failure: ProviderFailure, response: RawResponse): StreamEvent[] {
    return createFailureEvents(failure, readResponsesUsage(response.usage));
  }

  #end(event: JsonObject, response: RawResponse): StreamEvent[] {
    const finish = parseResponsesFinishReason(response);
    if (finish === null) return this.#failed(createRetryableFailure("no_status"), response);
    const usage = readResponsesUsage(response.usage);
    const usageEvents = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [...this.finished(event, finish), ...usageEvents, STREAM_END_EVENT];
  }

  protected abstract events(type: string, event: RawEvent): StreamEvent[];
  protected abstract finished(
    event: JsonObject,
    finish: "stop" | "length" | "content_filter",
  ): StreamEvent[];
}

/** Converts a stream of the Responses API to chunks. Skips unknown events. */
export class ResponsesChunkReader extends ResponseReader {
  readonly #builder = new ChunkBuilder();
  readonly #calls = new Map<number, Call>();
  #callCount = 0;
  #summaryCount = 0;

  protected events(type: string, event: RawEvent): StreamEvent[] {
    const delta = textOf(event.delta);
    const index = numberOf(event.output_index) ?? 0;
    switch (type) {
      case "response.output_text.delta":
        return this.#builder.addText(delta);
      case "response.refusal.delta":
        return delta === "" ? [] : this.#builder.addDelta({ refusal: delta });
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#input(index, delta);
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#builder.addReasoning(delta);
      default:
        return this.#itemEvent(type, index, event);
    }
  }

  #itemEvent(type: string, index: number, event: RawEvent): StreamEvent[] {
    switch (type) {
      case "response.output_item.added":
        return this.#begin(index, objectOf(event.item));
      case "response.reasoning_summary_part.added":
        return this.#summaryCount++ === 0 ? [] : this.#builder.addReasoning("\n\n");
      case "response.output_text.annotation.added":
        return this.#annotation(event.annotation);
      case "response.output_item.done":
        return this.#done(index, objectOf(event.item));
      default:
        return [];
    }
  }

  protected finished(_: JsonObject, finish: "stop" | "length" | "content_filter"): StreamEvent[] {
    return this.#builder.finish(finish);
  }

  #begin(index: number, item: RawResponsesItem): StreamEvent[] {
    const isCustom = item.type === "custom_tool_call";
    if ((!isCustom && item.type !== "function_call") || this.#calls.has(index)) return [];
    this.#calls.set(index, { index: this.#callCount++, isCustom, hasInput: false });
    const [id, name] = [textOf(item.call_id), textOf(item.name)];
    return isCustom ? this.#builder.addCustomTool(id, name) : this.#builder.addTool(id, name);
  }

  #input(index: number, text: string): StreamEvent[] {
    const call = this.#calls.get(index);
    if (call === undefined || text === "") return [];
    call.hasInput = true;
    return this.#builder.addToolArguments(text, call.index);
  }

  #done(index: number, item: RawResponsesItem): StreamEvent[] {
    if (item.type === "reasoning") {
      const detail = toReasoningDetail(item);
      return detail === null ? [] : this.#builder.addDelta({ reasoning_details: [detail] });
    }
    const startEvents = this.#begin(index, item);
    const call = this.#calls.get(index);
    if (call === undefined || call.hasInput) return startEvents;
    const fullInput = textOf(call.isCustom ? item.input : item.arguments);
    return [...startEvents, ...this.#input(index, fullInput)];
  }

  #annotation(raw: unknown): StreamEvent[] {
    const annotations = toChatAnnotations(raw);
    return annotations.length === 0 ? [] : this.#builder.addDelta({ annotations });
  }
}

const START_EVENTS: ReadonlySet<string> = new Set([
  "response.created",
  "response.queued",
  "response.in_progress",
]);

const SEQUENCE_NUMBER = /"sequence_number":\s?\d+/;
const TEXT_DELTA = "response.output_text.delta";

/** Reads a stream without converting it. */
export class ResponsesNativeReader extends ResponseReader {
  #heldEvents: StreamEvent[] = [];
  readonly #texts = new RepeatedTextReader(/"delta":\s?/);

  protected override repeatedText(data: string): StreamEvent | null {
    return this.#texts.read(data.replace(SEQUENCE_NUMBER, ""));
  }

  protected override convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[] {
    const events = super.convertFrame(raw, name, data);
    const [event] = events;
    if (events.length === 1 && event?.kind === "native" && isPlainDelta(event.event)) {
      this.#texts.setTemplate(data.replace(SEQUENCE_NUMBER, ""), 0, event.text);
    } else this.#texts.clearTemplate();
    return events;
  }

  protected events(type: string, event: RawEvent): StreamEvent[] {
    if (!type.startsWith("response.")) return []; // Drops `keepalive`. The gateway sends its own.
    if (START_EVENTS.has(type)) {
      this.#heldEvents.push({ kind: "native", event, text: "", finish: null });
      return [];
    }
    return this.#forward(event, eventText(type, event), null);
  }

  protected finished(event: JsonObject, finish: string): StreamEvent[] {
    return this.#forward(event, "", finish);
  }

  #forward(event: JsonObject, text: string, finish: string | null): StreamEvent[] {
    const heldEvents = this.#heldEvents;
    this.#heldEvents = [];
    return [...heldEvents, { kind: "native", event, text, finish }];
  }
}

function isPlainDelta({ type, logprobs }: JsonObject): boolean {
  return type === TEXT_DELTA && listOf(logprobs).length === 0;
}

function eventText(type: string, event: RawEvent): string {
  if (type.endsWith(".delta")) return textOf(event.delta);
  const { item } = event;
  return type === "response.output_item.added" && isObject(item) ? joinItemText(item) : "";
}
