import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { numberOf, objectOf, parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import type { PayloadReader } from "../../core/sse-reader.ts";
import { tokenCount } from "../../core/token-count.ts";
import { eventFailure } from "./host-failure.ts";
import { finishOf, refusalOf } from "./host-stop-reason.ts";
import { thoughtDetail } from "../../claude/thoughts.ts";
import { laterUsage, messagesUsage } from "./host-usage.ts";

/** A content block that is being said. Thoughts are kept until they are whole: they are signed as one. */
type Block =
  | {
      readonly kind: "thought";
      readonly type: unknown;
      thinking: string;
      signature: string;
      readonly data: unknown;
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
  readonly #blocks = new Map<number, Block>();
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
    const type = textOf(raw["type"]);
    if (name === "error" || type === "error") {
      this.#ended = true;
      return [{ kind: "error", failure: eventFailure(raw, this.#secret) }];
    }
    return type.startsWith("content_block_") ? this.#content(raw, type) : this.#message(raw, type);
  }

  #message(raw: JsonObject, type: string): StreamEvent[] {
    if (type === "message_start") {
      this.#usage = laterUsage({}, objectOf(raw["message"])["usage"]);
      return this.#reported(true); // the role comes with the first content: until then another route may be asked
    }
    if (type === "message_delta") return this.#finish(objectOf(raw["delta"]), raw["usage"]);
    return type === "message_stop" ? this.#end() : [];
  }

  #content(raw: JsonObject, type: string): StreamEvent[] {
    const index = numberOf(raw["index"]) ?? -1;
    if (type === "content_block_start") return this.#start(index, objectOf(raw["content_block"]));
    if (type === "content_block_delta") {
      return this.#delta(this.#blocks.get(index), objectOf(raw["delta"]));
    }
    return type === "content_block_stop" ? this.#stop(index) : [];
  }

  fail(reason: string): StreamEvent[] {
    this.#ended = true;
    return [{ kind: "error", failure: { kind: "retry", reason } }];
  }

  #start(index: number, raw: JsonObject): StreamEvent[] {
    const { type, data } = raw;
    if (type === "text") return this.#builder.text(textOf(raw["text"]));
    if (type === "thinking" || type === "redacted_thinking") {
      const block: Block = { kind: "thought", type, thinking: "", signature: "", data };
      this.#blocks.set(index, block);
      return this.#thought(block, raw);
    }
    if (type !== "tool_use") return [];
    const name = textOf(raw["name"]);
    if (name === this.#jsonTool) {
      this.#blocks.set(index, { kind: "json", hasText: false });
      return [];
    }
    this.#blocks.set(index, { kind: "tool", tool: this.#tools++ });
    return this.#builder.tool(textOf(raw["id"]), name);
  }

  #delta(block: Block | undefined, raw: JsonObject): StreamEvent[] {
    if (raw["type"] === "text_delta") return this.#builder.text(textOf(raw["text"]));
    if (block === undefined) return [];
    if (block.kind === "thought") return this.#thought(block, raw);
    const json = textOf(raw["partial_json"]);
    if (block.kind === "tool") return this.#builder.toolArguments(json, block.tool);
    if (json !== "") block.hasText = true;
    return this.#builder.text(json);
  }

  #thought(block: Block & { kind: "thought" }, raw: JsonObject): StreamEvent[] {
    const thinking = textOf(raw["thinking"]);
    block.thinking += thinking;
    if (textOf(raw["signature"]) !== "") block.signature = textOf(raw["signature"]);
    return this.#builder.reasoning(thinking);
  }

  #stop(index: number): StreamEvent[] {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (block?.kind === "json" && !block.hasText) return this.#builder.text("{}");
    if (block?.kind !== "thought") return [];
    const detail = thoughtDetail(block);
    return detail === null ? [] : this.#builder.delta({ reasoning_details: [detail] });
  }

  /** The usage here is cumulative; it is the whole's once there is a reason to stop and it says the output. */
  #finish(delta: JsonObject, usage: unknown): StreamEvent[] {
    this.#usage = laterUsage(this.#usage, usage);
    this.#isCounted ||= tokenCount(objectOf(usage)["output_tokens"]) !== null;
    const reason = delta["stop_reason"];
    if (typeof reason !== "string") {
      return this.#reported(!(this.#builder.finished && this.#isCounted));
    }
    const finish = finishOf(reason);
    const refusal =
      finish === "content_filter" ? refusalOf(delta["stop_details"], this.#secret) : "";
    const said = refusal === "" ? [] : this.#builder.delta({ refusal });
    return [...said, ...this.#builder.finish(finish), ...this.#reported(!this.#isCounted)];
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
