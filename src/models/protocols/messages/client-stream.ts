import { objectOf, parseObject, textOf } from "../../core/json-value.ts";
import { sealThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { BlockSequencer } from "../../core/block-sequencer.ts";
import type { SequencedPart } from "../../core/block-sequencer.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Chunk, ToolCallDelta } from "../../core/chunk.ts";
import type { Usage } from "../../../shared/usage.ts";
import type { ResponseHead, Receipt, StreamWriter } from "../../core/endpoint-adapter.ts";
import {
  messagesInitialUsage,
  DIRECT_CALLER,
  messagesEnvelope,
  estimatedStartUsage,
  messagesStopReason,
  usageOf,
  completeClaudeBlock,
} from "./client-answer.ts";
import type { OriginalToolNames, ClientMessage } from "./client-answer.ts";
import { errorOf } from "./client-dialect.ts";
import { toClaudeThinkingBlock } from "./client-thoughts.ts";

abstract class Block implements SequencedPart {
  isOpen = false;
  readonly index: number;
  #waiting = "";

  constructor(index: number) {
    this.index = index;
  }

  get isWhole(): boolean {
    return true;
  }

  append(piece: string): string {
    this.#waiting += piece;
    if (!this.isOpen || this.#waiting === "") return "";
    const delta = this.delta(this.#waiting);
    this.#waiting = "";
    return this.event("content_block_delta", { delta });
  }

  open(): string {
    this.isOpen = true;
    return this.event("content_block_start", { content_block: this.start() }) + this.append("");
  }

  close(): string {
    return this.event("content_block_stop", {});
  }

  protected abstract start(): JsonObject;
  protected abstract delta(piece: string): JsonObject;

  protected event(type: string, data: JsonObject): string {
    return eventOf(type, { index: this.index, ...data });
  }
}

class TextBlock extends Block {
  protected start(): JsonObject {
    return { type: "text", text: "" };
  }

  protected delta(text: string): JsonObject {
    return { type: "text_delta", text };
  }
}

class ThinkingBlock extends Block {
  readonly details: JsonObject[] = [];
  readonly extras: Record<string, JsonObject> = {};
  readonly text = "";
  /** Whether the block has its signature. If so, further thinking starts a new block. */
  isSigned = false;

  override close(): string {
    const signature = signatureIn(this);
    const delta = { type: "signature_delta", signature };
    return this.event("content_block_delta", { delta }) + super.close();
  }

  protected start(): JsonObject {
    return { type: "thinking", thinking: "", signature: "" };
  }

  protected delta(thinking: string): JsonObject {
    return { type: "thinking_delta", thinking };
  }
}

class RedactedBlock extends Block {
  readonly #block: JsonObject;

  constructor(index: number, block: JsonObject) {
    super(index);
    this.#block = block;
  }

  protected start(): JsonObject {
    return this.#block;
  }

  protected delta(): JsonObject {
    return {};
  }
}

class CallBlock extends Block {
  readonly #called: JsonObject;
  #json = "";

  constructor(index: number, called: { readonly id: string; readonly name: string }) {
    super(index);
    this.#called = called;
  }

  override get isWhole(): boolean {
    return parseObject(this.#json) !== null;
  }

  override append(piece: string): string {
    this.#json += piece;
    return super.append(piece);
  }

  protected start(): JsonObject {
    return { type: "tool_use", ...this.#called, input: {}, caller: DIRECT_CALLER };
  }

  protected delta(partial_json: string): JsonObject {
    return { type: "input_json_delta", partial_json };
  }
}

/**
 * Writes chat chunks as Messages events (platform.claude.com, streaming messages). Block numbers
 * have no gaps, and one block is open at a time.
 */
export class MessagesBlockWriter {
  readonly #blocks = new BlockSequencer<Block>();
  readonly #calls = new Map<number, CallBlock>();
  #finish = "stop";
  #refusal = "";
  readonly #names: OriginalToolNames;

  constructor(names: OriginalToolNames) {
    this.#names = names;
  }

  text(json: string): string {
    const { last } = this.#blocks;
    if (last instanceof TextBlock && last.isOpen) return textEvent(last.index, json);
    const parsed: unknown = JSON.parse(json);
    return this.#say(textOf(parsed));
  }

  chunk({ choices: [choice] }: Chunk): string {
    if (choice === undefined) return "";
    const { delta, finish_reason: finish } = choice;
    this.#finish = finish ?? this.#finish;
    let out = this.#think(delta.reasoning_content ?? "");
    for (const detail of delta.reasoning_details ?? []) out += this.#detail(detail);
    const refusal = delta.refusal ?? "";
    this.#refusal += refusal;
    out += this.#say((delta.content ?? "") + refusal);
    for (const call of delta.tool_calls ?? []) out += this.#call(call);
    return out;
  }

  end(): { readonly text: string; readonly stop: Omit<ClientMessage, "content"> } {
    const refusal = this.#refusal === "" ? null : this.#refusal;
    const stop = messagesStopReason(this.#finish, { calls: this.#calls.size > 0, refusal });
    return { text: this.#blocks.end(), stop };
  }

  get #next(): number {
    return this.#blocks.parts.length;
  }

  #say(text: string): string {
    if (text === "") return "";
    const { last } = this.#blocks;
    if (last instanceof TextBlock) return last.append(text);
    const block = new TextBlock(this.#next);
    return block.append(text) + this.#blocks.add(block);
  }

  #think(text: string): string {
    if (text === "") return "";
    const [written, thought] = this.#thought();
    return written + thought.append(text);
  }

  #thought(): readonly [said: string, ThinkingBlock] {
    const { last } = this.#blocks;
    if (last instanceof ThinkingBlock && !last.isSigned) return ["", last];
    const thought = new ThinkingBlock(this.#next);
    return [this.#blocks.add(thought), thought];
  }

  #detail(detail: JsonObject): string {
    const block = toClaudeThinkingBlock(detail);
    if (block?.["type"] === "redacted_thinking") {
      return this.#blocks.add(new RedactedBlock(this.#next, block));
    }
    const { last } = this.#blocks;
    const [text, thought] = this.#thought();
    thought.details.push(detail);
    thought.isSigned = block !== null;
    const isComplete = block !== null && thought !== last;
    return isComplete ? text + thought.append(textOf(block["thinking"])) : text;
  }

  #call(piece: ToolCallDelta): string {
    const number = piece.index ?? 0;
    const start = this.#calls.has(number) ? "" : this.#beginCall(number, piece);
    const text = this.#calls.get(number)?.append(piece.function?.arguments ?? "") ?? "";
    return start + text + this.#blocks.advance();
  }

  #beginCall(
    number: number,
    { id = "", function: called, extra_content: extra }: ToolCallDelta,
  ): string {
    let text = "";
    if (extra !== undefined) {
      const [start, thought] = this.#thought();
      thought.extras[id] = extra;
      text = start;
    }
    const sent = called?.name ?? "";
    const call = new CallBlock(this.#next, { id, name: this.#names.get(sent) ?? sent });
    this.#calls.set(number, call);
    return text + this.#blocks.add(call);
  }
}

function signatureIn(thought: StoredThoughts): string {
  const claude = thought.details.map(toClaudeThinkingBlock).find((block) => block !== null);
  if (claude === undefined) return sealThoughts(thought);
  const { signature } = claude ?? {};
  return textOf(signature);
}

export function convertedStream(head: ResponseHead, names: OriginalToolNames): StreamWriter {
  const blocks = new MessagesBlockWriter(names);
  return {
    ping: PING,
    begin: (usage) => startOfMessage(head, usage),
    chunk: (chunk) => blocks.chunk(chunk),
    text: (_index, json) => blocks.text(json),
    end(receipt) {
      const { text, stop } = blocks.end();
      return text + endOfMessage(stop, usageOf(receipt.usage, receipt.costMicro));
    },
    fail: (failure) => failureEvent(failure, head),
  };
}

const PASSES: ReadonlySet<unknown> = new Set(["content_block_delta", "content_block_stop", "ping"]);

/**
 * Writes Claude's own events with the gateway's ID, model and charge. The last events wait for the
 * charge.
 */
export function nativeStream(head: ResponseHead): StreamWriter {
  let stop: JsonObject = {};
  return {
    ping: PING,
    begin: (usage) => startOfMessage(head, usage),
    chunk: () => "",
    native(event) {
      const { type } = event;
      if (PASSES.has(type)) return eventOf(textOf(type), event);
      if (type === "content_block_start") {
        const content_block = completeClaudeBlock(event["content_block"]);
        return eventOf(type, { ...event, content_block });
      }
      if (type === "message_delta") stop = { ...stop, ...objectOf(event["delta"]) };
      return "";
    },
    text: textEvent,
    end: (receipt: Receipt) => endOfMessage(stop, usageOf(receipt.usage, receipt.costMicro)),
    fail: (failure) => failureEvent(failure, head),
  };
}

const PING = eventOf("ping", {});

function startOfMessage(head: ResponseHead, usage: Usage | null): string {
  const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
  const known =
    usage === null ? estimatedStartUsage(head.promptTokens) : messagesInitialUsage(usage);
  const message = { ...messagesEnvelope(head), content: [], ...stop, usage: known };
  return eventOf("message_start", { message });
}

function endOfMessage(stop: JsonObject, usage: JsonObject): string {
  // Clients never see the container, because it belongs to the operator's account.
  const delta = { stop_sequence: null, stop_details: null, ...stop, container: null };
  return eventOf("message_delta", { delta, usage }) + eventOf("message_stop", {});
}

function failureEvent(failure: Parameters<typeof errorOf>[0], { id }: ResponseHead): string {
  return eventOf("error", errorOf(failure, `req_${id.slice("msg_".length)}`) as JsonObject);
}

function textEvent(index: number, json: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"text_delta","text":${json}}}\n\n`;
}

/**
 * Returns a server-sent event. Repeats its type in the data, because some clients read only one of
 * the two.
 */
function eventOf(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
