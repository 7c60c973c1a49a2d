import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { numberOf, parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { asIs, shape } from "../../core/shape.ts";
import type { PayloadReader } from "../../core/sse-reader.ts";
import { thoughtDetail } from "../../claude/thoughts.ts";
import { block, ending, endOf } from "./host-answer.ts";
import type { Block } from "./host-answer.ts";
import { eventFailure } from "./host-failure.ts";
import { laterUsage, messagesUsage, saysOutput } from "./host-usage.ts";

/** An event (platform.claude.com, streaming messages); the fields that its type has. */
const event = shape({
  type: textOf,
  index: numberOf,
  message: shape({ usage: asIs }),
  content_block: asIs,
  delta: asIs,
  usage: asIs,
});
type Event = ReturnType<typeof event>;
const delta = shape({
  type: textOf,
  text: textOf,
  thinking: textOf,
  signature: textOf,
  partial_json: textOf,
});

/** A content block that is being said. Thoughts are kept until they are whole: they are signed as one. */
type Open =
  | {
      readonly kind: "thought";
      readonly type: string;
      thinking: string;
      signature: string;
      readonly data: string;
    }
  | { readonly kind: "tool"; readonly tool: number }
  | { readonly kind: "json"; hasText: boolean };

/** Reads the stream of one message. Unknown events and blocks are passed over. */
export class MessagesReader implements PayloadReader {
  #ended = false;
  #usage: JsonObject = {};
  /** An output was reported after the start, whose own is of the first token at most. */
  #isCounted = false;
  #tools = 0;
  readonly #blocks = new Map<number, Open>();
  readonly #builder = new ChunkBuilder();
  readonly #jsonTool: string | null;
  readonly #secret: string;

  /** `jsonTool`: the tool whose input is the answer; `secret`: our key there. */
  constructor(jsonTool: string | null, secret: string) {
    this.#jsonTool = jsonTool;
    this.#secret = secret;
  }

  get ended(): boolean {
    return this.#ended;
  }

  read(data: string, name: string): StreamEvent[] {
    if (this.#ended) return [];
    const raw = parseObject(data);
    if (raw === null) return this.fail("bad_event");
    const said = event(raw);
    const { type } = said;
    if (name === "error" || type === "error") {
      this.#ended = true;
      return [{ kind: "error", failure: eventFailure(raw, this.#secret) }];
    }
    return type.startsWith("content_block_") ? this.#content(said) : this.#message(said);
  }

  #message({ type, message, delta: last, usage }: Event): StreamEvent[] {
    if (type === "message_start") {
      this.#usage = laterUsage({}, message.usage);
      return this.#reported(true); // the role comes with the first content: until then another route may be asked
    }
    if (type === "message_delta") return this.#finish(last, usage);
    return type === "message_stop" ? this.#end() : [];
  }

  #content({ type, index = -1, content_block: started, delta: piece }: Event): StreamEvent[] {
    if (type === "content_block_start") return this.#start(index, block(started));
    if (type === "content_block_delta") return this.#delta(this.#blocks.get(index), delta(piece));
    return type === "content_block_stop" ? this.#stop(index) : [];
  }

  fail(reason: string): StreamEvent[] {
    this.#ended = true;
    return [{ kind: "error", failure: { kind: "retry", reason } }];
  }

  #start(index: number, { type, text, data, name, id, ...thought }: Block): StreamEvent[] {
    if (type === "text") return this.#builder.text(text);
    if (type === "thinking" || type === "redacted_thinking") {
      const open: Open = { kind: "thought", type, thinking: "", signature: "", data };
      this.#blocks.set(index, open);
      return this.#thought(open, thought);
    }
    if (type !== "tool_use") return [];
    if (name === this.#jsonTool) {
      this.#blocks.set(index, { kind: "json", hasText: false });
      return [];
    }
    this.#blocks.set(index, { kind: "tool", tool: this.#tools++ });
    return this.#builder.tool(id, name);
  }

  #delta(open: Open | undefined, piece: ReturnType<typeof delta>): StreamEvent[] {
    if (piece.type === "text_delta") return this.#builder.text(piece.text);
    if (open === undefined) return [];
    if (open.kind === "thought") return this.#thought(open, piece);
    const { partial_json: json } = piece;
    if (open.kind === "tool") return this.#builder.toolArguments(json, open.tool);
    if (json !== "") open.hasText = true;
    return this.#builder.text(json);
  }

  #thought(
    open: Open & { kind: "thought" },
    { thinking, signature }: Pick<Block, "thinking" | "signature">,
  ): StreamEvent[] {
    open.thinking += thinking;
    if (signature !== "") open.signature = signature;
    return this.#builder.reasoning(thinking);
  }

  #stop(index: number): StreamEvent[] {
    const open = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (open?.kind === "json" && !open.hasText) return this.#builder.text("{}");
    const detail = open?.kind === "thought" ? thoughtDetail(open) : null;
    return detail === null ? [] : this.#builder.say({ kind: "detail", detail });
  }

  /** The usage here is cumulative; it is the whole's once there is a reason to stop and it says the output. */
  #finish(last: unknown, usage: unknown): StreamEvent[] {
    this.#usage = laterUsage(this.#usage, usage);
    this.#isCounted ||= saysOutput(usage);
    const end = ending(last);
    if (typeof end.stop_reason !== "string") {
      return this.#reported(!(this.#builder.finished && this.#isCounted));
    }
    const said = endOf(end, this.#secret).flatMap((one) => this.#builder.say(one));
    return [...said, ...this.#reported(!this.#isCounted)];
  }

  #reported(partial: boolean): StreamEvent[] {
    const usage = messagesUsage(this.#usage);
    return usage === null ? [] : [{ kind: "usage", usage, ...(partial && { partial }) }];
  }

  /** The stream ends well only after a reason to stop. */
  #end(): StreamEvent[] {
    if (!this.#builder.finished) return this.fail("no_finish_reason");
    this.#ended = true;
    return [{ kind: "end" }];
  }
}
