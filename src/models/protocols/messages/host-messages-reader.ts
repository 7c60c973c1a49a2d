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
type Event = ReturnType<typeof readEvent>;
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

export class MessagesStreamReader extends FrameReader {
  #usage: JsonObject = {};
  /**
   * Whether an event after `message_start` reported the output tokens. `message_start` reports at
   * most one.
   */
  #isCounted = false;
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

  protected convertFrame(raw: JsonObject, name: string): StreamEvent[] {
    const reported = readEvent(raw);
    const { type } = reported;
    if (name === "error" || type === "error") {
      return createFailureEvents(parseMessagesErrorEvent(raw, this.secret));
    }
    return type.startsWith("content_block_")
      ? this.#contentEvents(reported)
      : this.#messageEvents(reported);
  }

  #messageEvents({ type, message, delta: messageDelta, usage }: Event): StreamEvent[] {
    if (type === "message_start") {
      this.#usage = mergeLaterUsage({}, message.usage);
      // The role is sent with the first content. Until then, another route can be tried.
      return this.#usageEvents(true);
    }
    if (type === "message_delta") return this.#finish(messageDelta, usage);
    return type === "message_stop" ? this.#end() : [];
  }

  #contentEvents({ type, index = -1, content_block: started, delta: piece }: Event): StreamEvent[] {
    if (type === "content_block_start") return this.#start(index, readMessagesBlock(started));
    if (type === "content_block_delta") {
      return this.#delta(this.#blocks.get(index), readDelta(piece));
    }
    return type === "content_block_stop" ? this.#stop(index) : [];
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

  /** Handles `message_delta`. Usage is final once there is a stop reason and an output count. */
  #finish(messageDelta: unknown, usage: unknown): StreamEvent[] {
    this.#usage = mergeLaterUsage(this.#usage, usage);
    this.#isCounted ||= hasOutputTokenCount(usage);
    const end = readMessagesStopFields(messageDelta);
    if (typeof end.stop_reason !== "string") {
      return this.#usageEvents(!(this.#builder.finished && this.#isCounted));
    }
    const events = convertStopFieldsToParts(end, this.secret).flatMap((one) =>
      this.#builder.addPart(one),
    );
    return [...events, ...this.#usageEvents(!this.#isCounted)];
  }

  #usageEvents(partial: boolean): StreamEvent[] {
    const usage = readMessagesUsage(this.#usage);
    return usage === null ? [] : [{ kind: "usage", usage, ...(partial && { partial }) }];
  }

  #end(): StreamEvent[] {
    return this.#builder.finished
      ? [STREAM_END_EVENT]
      : createFailureEvents(createRetryableFailure("no_finish_reason"));
  }
}
