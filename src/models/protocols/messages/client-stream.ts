import { objectOf, parseObject, textOf } from "../../core/json-value.ts";
import { serializeThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { BlockSequencer } from "../../core/block-sequencer.ts";
import type { SequencedPart } from "../../core/block-sequencer.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Chunk, ToolCallDelta } from "../../core/chunk.ts";
import type { Usage } from "../../../shared/usage.ts";
import type { ResponseHead, Receipt, StreamWriter } from "../../core/endpoint-adapter.ts";
import {
  toInitialMessagesUsage,
  DIRECT_CALLER,
  createMessagesEnvelope,
  createEstimatedStartUsage,
  toMessagesStopReason,
  toMessagesUsage,
  completeClaudeBlock,
} from "./client-answer.ts";
import type { OriginalToolNames, ClientMessage } from "./client-answer.ts";
import { toMessagesErrorBody } from "./client-dialect.ts";
import { detailToClaudeThought } from "../../claude/thoughts.ts";

const DELTA_TYPES = {
  text: "text_delta",
  thinking: "thinking_delta",
  partial_json: "input_json_delta",
} as const;

class Block implements SequencedPart {
  isOpen = false;
  readonly index: number;
  readonly #start: JsonObject;
  readonly #field: keyof typeof DELTA_TYPES;
  #pendingText = "";

  constructor(index: number, start: JsonObject, field: keyof typeof DELTA_TYPES = "text") {
    this.index = index;
    this.#start = start;
    this.#field = field;
  }

  get isWhole(): boolean {
    return true;
  }

  append(piece: string): string {
    this.#pendingText += piece;
    if (!this.isOpen || this.#pendingText === "") return "";
    const delta = { type: DELTA_TYPES[this.#field], [this.#field]: this.#pendingText };
    this.#pendingText = "";
    return this.event("content_block_delta", { delta });
  }

  open(): string {
    this.isOpen = true;
    return this.event("content_block_start", { content_block: this.#start }) + this.append("");
  }

  close(): string {
    return this.event("content_block_stop", {});
  }

  protected event(type: string, data: JsonObject): string {
    return formatEvent(type, { index: this.index, ...data });
  }
}

class TextBlock extends Block {
  constructor(index: number) {
    super(index, { type: "text", text: "" });
  }
}

class ThinkingBlock extends Block {
  readonly details: JsonObject[] = [];
  readonly extras: Record<string, JsonObject> = {};
  readonly text = "";
  /** Whether the block has its signature. If so, further thinking starts a new block. */
  isSigned = false;

  constructor(index: number) {
    super(index, { type: "thinking", thinking: "", signature: "" }, "thinking");
  }

  override close(): string {
    const signature = signatureOf(this);
    const delta = { type: "signature_delta", signature };
    return this.event("content_block_delta", { delta }) + super.close();
  }
}

class CallBlock extends Block {
  #json = "";

  constructor(index: number, called: { readonly id: string; readonly name: string }) {
    const start = { type: "tool_use", ...called, input: {}, caller: DIRECT_CALLER };
    super(index, start, "partial_json");
  }

  override get isWhole(): boolean {
    return parseObject(this.#json) !== null;
  }

  override append(piece: string): string {
    this.#json += piece;
    return super.append(piece);
  }
}

/**
 * Writes chat chunks as Messages events. Block numbers have no gaps, and one block is open at a
 * time.
 */
export class MessagesBlockWriter {
  readonly #blocks = new BlockSequencer<Block>();
  readonly #calls = new Map<number, CallBlock>();
  #finishReason = "stop";
  #refusal = "";
  readonly #names: OriginalToolNames;

  constructor(names: OriginalToolNames) {
    this.#names = names;
  }

  text(json: string): string {
    const { last } = this.#blocks;
    if (last instanceof TextBlock && last.isOpen) return textEvent(last.index, json);
    const parsed: unknown = JSON.parse(json);
    return this.#writeText(textOf(parsed));
  }

  chunk({ choices: [choice] }: Chunk): string {
    if (choice === undefined) return "";
    const { delta, finish_reason: finish } = choice;
    this.#finishReason = finish ?? this.#finishReason;
    let events = this.#writeThinking(delta.reasoning_content ?? "");
    for (const detail of delta.reasoning_details ?? []) events += this.#writeDetail(detail);
    const refusal = delta.refusal ?? "";
    this.#refusal += refusal;
    events += this.#writeText((delta.content ?? "") + refusal);
    for (const call of delta.tool_calls ?? []) events += this.#writeCall(call);
    return events;
  }

  end(): { readonly text: string; readonly stop: Omit<ClientMessage, "content"> } {
    const refusal = this.#refusal === "" ? null : this.#refusal;
    const stop = toMessagesStopReason(this.#finishReason, { calls: this.#calls.size > 0, refusal });
    return { text: this.#blocks.end(), stop };
  }

  get #nextIndex(): number {
    return this.#blocks.parts.length;
  }

  #writeText(text: string): string {
    if (text === "") return "";
    const { last } = this.#blocks;
    if (last instanceof TextBlock) return last.append(text);
    const block = new TextBlock(this.#nextIndex);
    return block.append(text) + this.#blocks.add(block);
  }

  #writeThinking(text: string): string {
    if (text === "") return "";
    const [written, thought] = this.#openThought();
    return written + thought.append(text);
  }

  #openThought(): readonly [written: string, ThinkingBlock] {
    const { last } = this.#blocks;
    if (last instanceof ThinkingBlock && !last.isSigned) return ["", last];
    const thought = new ThinkingBlock(this.#nextIndex);
    return [this.#blocks.add(thought), thought];
  }

  #writeDetail(detail: JsonObject): string {
    const block = detailToClaudeThought(detail);
    if (block?.["type"] === "redacted_thinking") {
      return this.#blocks.add(new Block(this.#nextIndex, block));
    }
    const { last } = this.#blocks;
    const [text, thought] = this.#openThought();
    thought.details.push(detail);
    thought.isSigned = block !== null;
    const isComplete = block !== null && thought !== last;
    return isComplete ? text + thought.append(textOf(block["thinking"])) : text;
  }

  #writeCall(piece: ToolCallDelta): string {
    const index = piece.index ?? 0;
    const start = this.#calls.has(index) ? "" : this.#beginCall(index, piece);
    const text = this.#calls.get(index)?.append(piece.function?.arguments ?? "") ?? "";
    return start + text + this.#blocks.advance();
  }

  #beginCall(
    index: number,
    { id = "", function: called, extra_content: extra }: ToolCallDelta,
  ): string {
    let text = "";
    if (extra !== undefined) {
      const [start, thought] = this.#openThought();
      thought.extras[id] = extra;
      text = start;
    }
    const sentName = called?.name ?? "";
    const call = new CallBlock(this.#nextIndex, {
      id,
      name: this.#names.get(sentName) ?? sentName,
    });
    this.#calls.set(index, call);
    return text + this.#blocks.add(call);
  }
}

function signatureOf(thought: StoredThoughts): string {
  const claudeBlock = thought.details.map(detailToClaudeThought).find((block) => block !== null);
  return claudeBlock === undefined ? serializeThoughts(thought) : textOf(claudeBlock["signature"]);
}

export function createConvertedMessagesStream(
  head: ResponseHead,
  names: OriginalToolNames,
): StreamWriter {
  const blocks = new MessagesBlockWriter(names);
  return {
    ping: PING,
    begin: (usage) => startOfMessage(head, usage),
    chunk: (chunk) => blocks.chunk(chunk),
    text: (_index, json) => blocks.text(json),
    end(receipt) {
      const { text, stop } = blocks.end();
      return text + endOfMessage(stop, toMessagesUsage(receipt.usage, receipt.costMicro));
    },
    fail: (failure) => failureEvent(failure, head),
  };
}

const FORWARDED_EVENTS: ReadonlySet<unknown> = new Set([
  "content_block_delta",
  "content_block_stop",
  "ping",
]);

/** Writes Claude's events with our ID, model and charge. The last events wait for the charge. */
export function createNativeMessagesStream(head: ResponseHead): StreamWriter {
  let stop: JsonObject = {};
  return {
    ping: PING,
    begin: (usage) => startOfMessage(head, usage),
    chunk: () => "",
    native(event) {
      const { type } = event;
      if (FORWARDED_EVENTS.has(type)) return formatEvent(textOf(type), event);
      if (type === "content_block_start") {
        const content_block = completeClaudeBlock(event["content_block"]);
        return formatEvent(type, { ...event, content_block });
      }
      if (type === "message_delta") stop = { ...stop, ...objectOf(event["delta"]) };
      return "";
    },
    text: textEvent,
    end: (receipt: Receipt) =>
      endOfMessage(stop, toMessagesUsage(receipt.usage, receipt.costMicro)),
    fail: (failure) => failureEvent(failure, head),
  };
}

const PING = formatEvent("ping", {});

function startOfMessage(head: ResponseHead, usage: Usage | null): string {
  const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
  const initialUsage =
    usage === null ? createEstimatedStartUsage(head.promptTokens) : toInitialMessagesUsage(usage);
  const message = { ...createMessagesEnvelope(head), content: [], ...stop, usage: initialUsage };
  return formatEvent("message_start", { message });
}

function endOfMessage(stop: JsonObject, usage: JsonObject): string {
  // Clients never see the container, because it belongs to the operator's account.
  const delta = { stop_sequence: null, stop_details: null, ...stop, container: null };
  return formatEvent("message_delta", { delta, usage }) + formatEvent("message_stop", {});
}

function failureEvent(
  failure: Parameters<typeof toMessagesErrorBody>[0],
  { id }: ResponseHead,
): string {
  return formatEvent(
    "error",
    toMessagesErrorBody(failure, `req_${id.slice("msg_".length)}`) as JsonObject,
  );
}

function textEvent(index: number, json: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"text_delta","text":${json}}}\n\n`;
}

/**
 * Returns a server-sent event. Its data also contains the type, because some clients read it only
 * there.
 */
function formatEvent(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
