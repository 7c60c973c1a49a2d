import { ChunkBuilder } from "../../core/chunk-builder.ts";
import type { StreamReader } from "../../core/http-provider.ts";
import { END_EVENT, FrameReader, retryFailure } from "../../core/frame-reader.ts";
import { numberOf, parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { anyValue, optionalReader, objectReader } from "../../core/shape.ts";
import { toStreamReader } from "../../core/sse-reader.ts";
import type { FrameSource, NamedFrame } from "../../core/sse-reader.ts";
import { eventTooLargeFailure, failureEvents } from "../../core/failed-usage.ts";
import { exceptionFailure } from "./bedrock-failure.ts";
import {
  INCOMPLETE_FAILURE,
  claudeReasoningDetail,
  converseFinishReason,
} from "./converse-answer.ts";
import { readConverseUsage } from "./converse-usage.ts";
import { FRAME_BYTES_MAX, FrameDecoder } from "./event-frames.ts";
import type { EventStreamFrame } from "./event-frames.ts";

const readEvent = objectReader({
  contentBlockIndex: numberOf,
  start: objectReader({
    toolUse: optionalReader(objectReader({ toolUseId: textOf, name: textOf })),
  }),
  delta: objectReader({
    text: textOf,
    toolUse: objectReader({ input: textOf }),
    reasoningContent: objectReader({ text: textOf, signature: textOf }),
  }),
  __type: textOf,
  stopReason: anyValue,
  usage: anyValue,
});
type Event = Omit<ReturnType<typeof readEvent>, "__type">;

type Block = {
  /**
   * The index of a tool call. "answer" for the first call of the answer tool, "spare" for its
   * further calls, null for other blocks.
   */
  readonly tool: number | "answer" | "spare" | null;
  thought: string;
};

/**
 * Converts a Converse stream to events (Bedrock API reference, ConverseStream: Response Syntax).
 * The finish chunk waits for the usage in `metadata`, which can come before `messageStop`.
 */
export class ConverseReader extends FrameReader {
  readonly #chunks = new ChunkBuilder();
  readonly #blocks = new Map<number, Block>();
  readonly #answerTool: string | null;
  readonly #secrets: readonly string[];
  #toolCount = 0;
  #hasAnswerCall = false;
  #heldText = "";
  #messageStop: Event | null = null;
  #metadata: Event | null = null;

  constructor(answerTool: string | null, secrets: readonly string[]) {
    super();
    this.#answerTool = answerTool;
    this.#secrets = secrets;
  }

  protected get isFinished(): boolean {
    return (
      this.#messageStop !== null && converseFinishReason(this.#messageStop.stopReason) !== null
    );
  }

  protected override eventsAtEnd(): StreamEvent[] {
    return this.#messageStop === null ? [] : this.#end(this.#messageStop);
  }

  protected convertFrame(raw: JsonObject, type: string): StreamEvent[] {
    const { __type: exception, ...reported } = readEvent(raw);
    if (type !== "error" && !type.endsWith("Exception")) return this.#event(type, reported);
    const name = type === "error" ? exception : type;
    return failureEvents(exceptionFailure({ name, raw }, this.#secrets));
  }

  #event(type: string, fields: Event): StreamEvent[] {
    const { contentBlockIndex: index = 0, start, delta } = fields;
    switch (type) {
      case "messageStart":
        return this.#chunks.begin();
      case "contentBlockStart":
        return this.#startBlock(index, start.toolUse);
      case "contentBlockDelta":
        return this.#delta(this.#blockAt(index), delta);
      case "messageStop":
        this.#messageStop ??= fields;
        break;
      case "metadata":
        this.#metadata ??= fields;
        break;
      default: // contentBlockStop and unknown events
        return [];
    }
    return this.#messageStop === null || this.#metadata === null
      ? []
      : this.#end(this.#messageStop);
  }

  #startBlock(index: number, use: Event["start"]["toolUse"]): StreamEvent[] {
    if (use === null) return [];
    const { toolUseId: id, name } = use;
    if (name === this.#answerTool) {
      this.#blocks.set(index, { tool: this.#hasAnswerCall ? "spare" : "answer", thought: "" });
      this.#hasAnswerCall = true;
      this.#heldText = "";
      return [];
    }
    this.#blocks.set(index, { tool: this.#toolCount, thought: "" });
    this.#toolCount += 1;
    return [...this.#releaseText(), ...this.#chunks.addTool(id, name)];
  }

  #delta(block: Block, { text, toolUse, reasoningContent }: Event["delta"]): StreamEvent[] {
    if (block.tool === "spare") return [];
    if (block.tool === "answer") return this.#chunks.addText(toolUse.input);
    if (block.tool !== null) return this.#chunks.addToolArguments(toolUse.input, block.tool);
    block.thought += reasoningContent.text;
    const events = [...this.#text(text), ...this.#chunks.addReasoning(reasoningContent.text)];
    const detail = claudeReasoningDetail(block.thought, reasoningContent.signature);
    return detail === null
      ? events
      : [...events, ...this.#chunks.addPart({ kind: "detail", detail })];
  }

  #text(text: string): StreamEvent[] {
    if (this.#answerTool === null) return this.#chunks.addText(text);
    if (!this.#hasAnswerCall) this.#heldText += text;
    return [];
  }

  #releaseText(): StreamEvent[] {
    const text = this.#heldText;
    this.#heldText = "";
    return this.#chunks.addText(text);
  }

  #blockAt(index: number): Block {
    const known = this.#blocks.get(index);
    if (known !== undefined) return known;
    const block: Block = { tool: null, thought: "" };
    this.#blocks.set(index, block);
    return block;
  }

  #end(stop: Event): StreamEvent[] {
    const reason = converseFinishReason(stop.stopReason);
    const usage = readConverseUsage(this.#metadata?.usage);
    if (reason === null) return failureEvents(INCOMPLETE_FAILURE, usage);
    const usageEvents = usage === null ? [] : [{ kind: "usage" as const, usage }];
    return [...this.#releaseText(), ...this.#chunks.finish(reason), ...usageEvents, END_EVENT];
  }
}

export function converseReader(reader: ConverseReader): StreamReader {
  const decoder = new FrameDecoder();
  const source: FrameSource = {
    events: (bytes) => decoder.push(bytes).map(textFrame),
    flushEvents: () => [],
    get broken() {
      if (!decoder.broken) return null;
      return decoder.overflowed ? eventTooLargeFailure(FRAME_BYTES_MAX) : retryFailure("bad_frame");
    },
  };
  return toStreamReader(source, reader);
}

/** An exception becomes an event named "error" with the exception's name in `__type`. */
function textFrame({ headers, payload }: EventStreamFrame): NamedFrame {
  const data = new TextDecoder().decode(payload);
  const kind = headers.get(":message-type") ?? "event";
  if (kind === "event") return { name: headers.get(":event-type") ?? "", data };
  const fields =
    kind === "error" ? { message: headers.get(":error-message") ?? "" } : (parseObject(data) ?? {});
  const name = headers.get(kind === "error" ? ":error-code" : ":exception-type") ?? "";
  return { name: "error", data: JSON.stringify({ ...fields, __type: name }) };
}
