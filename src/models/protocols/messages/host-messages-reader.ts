import { ChunkBuilder } from "../../core/output-part.ts";
import { numberOf, textOf, readAnyValue, createObjectReader } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import {
  STREAM_END_EVENT,
  FrameReader,
  createRetryableFailure,
  createFailureEvents,
} from "../../core/frame-reader.ts";
import { claudeThoughtToDetail } from "../../claude/thoughts.ts";
import {
  readMessagesBlock,
  readMessagesStopFields,
  convertStopFieldsToParts,
  mergeLaterUsage,
  readMessagesUsage,
  hasOutputTokenCount,
} from "./host-answer.ts";
import type { MessagesOutputBlock } from "./host-answer.ts";
import { parseMessagesErrorEvent } from "./host-failure.ts";

const readEvent = createObjectReader({
  type: textOf,
  index: numberOf,
  message: createObjectReader({ usage: readAnyValue }),
  content_block: readAnyValue,
  delta: readAnyValue,
  usage: readAnyValue,
});
export type MessagesEvent = ReturnType<typeof readEvent>;
const readDelta = createObjectReader({
  type: textOf,
  text: textOf,
  thinking: textOf,
  signature: textOf,
  partial_json: textOf,
});

/** A block that hasn't ended. A thought is collected, because its signature covers all of it. */
type OpenBlock =
  | {
      readonly kind: "thought";
      readonly type: string;
      thinking: string;
      signature: string;
      readonly data: string;
    }
  /**
   * A tool call, or the JSON output if `tool` is null. The first delta replaces the initial
   * `input`.
   */
  | { readonly kind: "tool"; readonly tool: number | null; input: string };

/** Reads the errors, usage and end of a stream. */
export abstract class MessagesReader extends FrameReader {
  #usage: JsonObject = {};
  /**
   * Whether an event after `message_start` reported the output tokens. `message_start` reports at
   * most one.
   */
  #isCounted = false;
  readonly #requestsHour: boolean;

  constructor(secret: string, requestsHour = false) {
    super(secret);
    this.#requestsHour = requestsHour;
  }

  protected convertFrame(raw: JsonObject, name: string, data: string): StreamEvent[] {
    const reported = readEvent(raw);
    const { type, message, usage } = reported;
    if (name === "error" || type === "error") {
      return createFailureEvents(parseMessagesErrorEvent(raw, this.secret));
    }
    if (type === "message_start") this.#usage = mergeLaterUsage({}, message.usage);
    if (type === "message_delta") {
      this.#usage = mergeLaterUsage(this.#usage, usage);
      this.#isCounted ||= hasOutputTokenCount(usage);
    }
    if (type !== "message_stop") return this.convertEvent(reported, raw, data);
    return this.isFinished
      ? [STREAM_END_EVENT]
      : createFailureEvents(createRetryableFailure("no_finish_reason"));
  }

  protected abstract convertEvent(
    reported: MessagesEvent,
    raw: JsonObject,
    data: string,
  ): StreamEvent[];

  /** Returns the usage, which is final once there is a stop reason and an output count. */
  protected usageEvents(): StreamEvent[] {
    const usage = readMessagesUsage(this.#usage, this.#requestsHour);
    if (usage === null) return [];
    const isPartial = !(this.isFinished && this.#isCounted);
    return [{ kind: "usage", usage, ...(isPartial && { partial: true }) }];
  }
}

/** Converts a stream to chunks. */
export class MessagesStreamReader extends MessagesReader {
  #toolCount = 0;
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #builder = new ChunkBuilder();
  readonly #jsonTool: string | null;

  constructor(jsonTool: string | null, secret: string) {
    super(secret);
    this.#jsonTool = jsonTool;
  }

  protected get isFinished(): boolean {
    return this.#builder.finished;
  }

  protected convertEvent({ type, index = -1, content_block, delta }: MessagesEvent): StreamEvent[] {
    switch (type) {
      case "message_start": // The role is sent with the first content. Until then, another route can be tried.
        return this.usageEvents();
      case "message_delta":
        return this.#finish(delta);
      case "content_block_start":
        return this.#start(index, readMessagesBlock(content_block));
      case "content_block_delta":
        return this.#delta(this.#blocks.get(index), readDelta(delta));
      case "content_block_stop":
        return this.#stop(index);
      default:
        return [];
    }
  }

  #start(
    index: number,
    { type, text, data, name, id, input, ...thought }: MessagesOutputBlock,
  ): StreamEvent[] {
    if (type === "text") return this.#builder.addText(text);
    if (type === "thinking" || type === "redacted_thinking") {
      const open: OpenBlock = { kind: "thought", type, thinking: "", signature: "", data };
      this.#blocks.set(index, open);
      return this.#thoughtEvents(open, thought);
    }
    if (type !== "tool_use") return [];
    const isAnswer = name === this.#jsonTool;
    const inputJson = JSON.stringify(input);
    const tool = isAnswer ? null : this.#toolCount++;
    // A cut-off call may have no input. Only a complete call gets `{}`.
    this.#blocks.set(index, {
      kind: "tool",
      tool,
      input: inputJson === "{}" && !isAnswer ? "" : inputJson,
    });
    return isAnswer ? [] : this.#builder.addTool(id, name);
  }

  #delta(open: OpenBlock | undefined, piece: ReturnType<typeof readDelta>): StreamEvent[] {
    if (piece.type === "text_delta") return this.#builder.addText(piece.text);
    if (open === undefined) return [];
    if (open.kind === "thought") return this.#thoughtEvents(open, piece);
    if (piece.partial_json !== "") open.input = "";
    return this.#inputEvents(open.tool, piece.partial_json);
  }

  #inputEvents(tool: number | null, json: string): StreamEvent[] {
    return tool === null ? this.#builder.addText(json) : this.#builder.addToolArguments(json, tool);
  }

  #thoughtEvents(
    open: OpenBlock & { kind: "thought" },
    { thinking, signature }: Pick<MessagesOutputBlock, "thinking" | "signature">,
  ): StreamEvent[] {
    open.thinking += thinking;
    if (signature !== "") open.signature = signature;
    return this.#builder.addReasoning(thinking);
  }

  #stop(index: number): StreamEvent[] {
    const open = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (open?.kind === "tool") return this.#inputEvents(open.tool, open.input);
    const detail = open === undefined ? null : claudeThoughtToDetail(open);
    return detail === null ? [] : this.#builder.addPart({ kind: "detail", detail });
  }

  #finish(messageDelta: unknown): StreamEvent[] {
    const end = readMessagesStopFields(messageDelta);
    const hasEnded = typeof end.stop_reason === "string";
    const parts = hasEnded ? convertStopFieldsToParts(end, this.secret) : [];
    const events = parts.flatMap((one) => this.#builder.addPart(one));
    return [...events, ...this.usageEvents()];
  }
}
