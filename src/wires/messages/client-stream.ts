import {
  isObject,
  listOf,
  numberOf,
  objectOf,
  parseObject,
  textOf,
} from "../../core/json-value.ts";
import { sealed } from "../../core/kept-thoughts.ts";
import type { KeptThoughts } from "../../core/kept-thoughts.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Usage } from "../../lib/usage.ts";
import type { Head, Receipt, StreamWriter } from "../../core/door.ts";
import {
  begunUsage,
  DIRECT,
  envelope,
  startUsage,
  stopOf,
  usageOf,
  wholeBlock,
} from "./client-answer.ts";
import type { Names, Said } from "./client-answer.ts";
import { errorOf } from "./client-dialect.ts";
import { claudeBlock } from "./client-thoughts.ts";

/**
 * A block that is being said or waits for its turn. Only the first of the queue is on the wire; the
 * others gather what they say, because the dialect has one block open at a time.
 */
type Open =
  | { readonly kind: "text"; waiting: string }
  | {
      readonly kind: "thinking";
      waiting: string;
      readonly details: JsonObject[];
      readonly extras: Record<string, JsonObject>;
      isSigned: boolean;
    }
  | { readonly kind: "redacted"; readonly block: JsonObject }
  | {
      readonly kind: "call";
      readonly id: string;
      readonly name: string;
      /** All arguments so far: a call that is not whole keeps its place. */
      json: string;
      sent: number;
    };

/**
 * The core's chunks (OpenAI's) as events of the Messages dialect, between message_start and
 * message_delta: blocks numbered without gaps, each started and stopped once, one open at a time
 * (platform.claude.com, streaming messages). One choice.
 */
export class BlockWriter {
  readonly #queue: Open[] = [];
  readonly #calls = new Map<number, Open & { kind: "call" }>();
  #index = 0;
  /** Whether the first of the queue is on the wire. */
  #isOpen = false;
  #finish = "stop";
  #refusal = "";
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  /** Another piece of text; `json` is its JSON literal, as the upstream wrote it. */
  text(json: string): string {
    const last = this.#queue.at(-1);
    if (last?.kind === "text" && this.#queue.length === 1 && this.#isOpen) {
      return textEvent(this.#index, json);
    }
    const parsed: unknown = JSON.parse(json);
    return this.#say(textOf(parsed));
  }

  /** A chunk of the core. */
  chunk(chunk: JsonObject): string {
    const choice = objectOf(listOf(chunk["choices"])[0]);
    if (typeof choice["finish_reason"] === "string") this.#finish = choice["finish_reason"];
    const delta = objectOf(choice["delta"]);
    let out = this.#think(textOf(delta["reasoning_content"]));
    for (const detail of listOf(delta["reasoning_details"]).filter(isObject)) {
      out += this.#detail(detail);
    }
    const refusal = textOf(delta["refusal"]);
    this.#refusal += refusal;
    out += this.#say(textOf(delta["content"]) + refusal);
    for (const call of listOf(delta["tool_calls"]).filter(isObject)) out += this.#call(call);
    return out;
  }

  /** Closes what is open and says how the message ended. */
  end(): { readonly text: string; readonly stop: Omit<Said, "content"> } {
    let text = "";
    while (this.#queue.length > 0) text += this.#closeFirst();
    const refusal = this.#refusal === "" ? null : this.#refusal;
    return { text, stop: stopOf(this.#finish, { calls: this.#calls.size > 0, refusal }) };
  }

  #say(text: string): string {
    if (text === "") return "";
    const last = this.#queue.at(-1);
    if (last?.kind === "text") last.waiting += text;
    else this.#queue.push({ kind: "text", waiting: text });
    return this.#advance();
  }

  #think(text: string): string {
    if (text === "") return "";
    this.#thought().waiting += text;
    return this.#advance();
  }

  /** The thought that is being said, or a new one. */
  #thought(): Open & { kind: "thinking" } {
    const last = this.#queue.at(-1);
    if (last?.kind === "thinking" && !last.isSigned) return last;
    const thought: Open = {
      kind: "thinking",
      waiting: "",
      details: [],
      extras: {},
      isSigned: false,
    };
    this.#queue.push(thought);
    return thought;
  }

  #detail(detail: JsonObject): string {
    const block = claudeBlock(detail);
    if (block?.["type"] === "redacted_thinking") this.#queue.push({ kind: "redacted", block });
    else {
      const length = this.#queue.length;
      const thought = this.#thought();
      const isNew = this.#queue.length > length;
      // A whole thought that was not said in pieces: its text comes with its signature.
      if (block !== null && isNew) thought.waiting += textOf(block["thinking"]);
      thought.details.push(detail);
      // Claude signs a thought as a whole: the next one is another block.
      thought.isSigned = block !== null;
    }
    return this.#advance();
  }

  #call(raw: JsonObject): string {
    const number = numberOf(raw["index"]) ?? 0;
    const called = objectOf(raw["function"]);
    let call = this.#calls.get(number);
    let out = "";
    if (call === undefined) {
      const id = textOf(raw["id"]);
      const { extra_content: extra } = raw;
      if (isObject(extra)) {
        this.#thought().extras[id] = extra;
        out += this.#advance();
      }
      const sent = textOf(called["name"]);
      call = { kind: "call", id, name: this.#names.get(sent) ?? sent, json: "", sent: 0 };
      this.#calls.set(number, call);
      this.#queue.push(call);
    }
    call.json += textOf(called["arguments"]);
    return out + this.#advance();
  }

  /** Says what the first of the queue may say, and goes on to the next while it is whole. */
  #advance(): string {
    let out = "";
    for (;;) {
      const first = this.#queue[0];
      if (first === undefined) return out;
      out += this.#sayFirst(first);
      if (this.#queue.length === 1 || !isWhole(first)) return out;
      out += this.#closeFirst();
    }
  }

  #sayFirst(open: Open): string {
    let out = "";
    if (!this.#isOpen) {
      this.#isOpen = true;
      out = this.#event("content_block_start", { content_block: startOf(open) });
    }
    if (open.kind === "redacted") return out;
    if (open.kind === "call") {
      const rest = open.json.slice(open.sent);
      open.sent = open.json.length;
      return out + this.#delta(rest, { type: "input_json_delta", partial_json: rest });
    }
    const said = open.waiting;
    open.waiting = "";
    return open.kind === "text"
      ? out + this.#delta(said, { type: "text_delta", text: said })
      : out + this.#delta(said, { type: "thinking_delta", thinking: said });
  }

  #delta(said: string, delta: JsonObject): string {
    return said === "" ? "" : this.#event("content_block_delta", { delta });
  }

  #closeFirst(): string {
    const first = this.#queue[0];
    if (first === undefined) return "";
    let out = this.#sayFirst(first);
    if (first.kind === "thinking") {
      const signature = signatureIn(first);
      out += this.#event("content_block_delta", { delta: { type: "signature_delta", signature } });
    }
    out += this.#event("content_block_stop", {});
    this.#queue.shift();
    this.#isOpen = false;
    this.#index += 1;
    return out;
  }

  #event(type: string, data: JsonObject): string {
    return eventOf(type, { index: this.#index, ...data });
  }
}

/** Claude's own signature as it was made; else what the other maker needs back. */
function signatureIn(thought: KeptThoughts): string {
  const claude = thought.details.map(claudeBlock).find((block) => block !== null);
  return claude === undefined ? sealed(thought) : textOf(claude?.["signature"]);
}

/** Whether nothing more can come for a block that is followed by another. */
function isWhole(open: Open): boolean {
  return open.kind !== "call" || parseObject(open.json) !== null;
}

function startOf(open: Open): JsonObject {
  switch (open.kind) {
    case "text":
      return { type: "text", text: "" };
    case "thinking":
      return { type: "thinking", thinking: "", signature: "" };
    case "redacted":
      return open.block;
    case "call":
      return { type: "tool_use", id: open.id, name: open.name, input: {}, caller: DIRECT };
  }
}

/** A stream of the core's chunks. */
export function convertedStream(head: Head, names: Names): StreamWriter {
  const blocks = new BlockWriter(names);
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

/** Events of Claude's own that pass while the message is being said. */
const PASSES: ReadonlySet<unknown> = new Set(["content_block_delta", "content_block_stop", "ping"]);

/** A stream of Claude's own events, under our id, model and charge; the last ones wait for it. */
export function nativeStream(head: Head): StreamWriter {
  let stop: JsonObject = {};
  return {
    ping: PING,
    begin: (usage) => startOfMessage(head, usage),
    chunk(event) {
      const { type } = event;
      if (PASSES.has(type)) return eventOf(textOf(type), event);
      if (type === "content_block_start") {
        const content_block = wholeBlock(event["content_block"]);
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

function startOfMessage(head: Head, usage: Usage | null): string {
  const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
  const known = usage === null ? startUsage(head.promptTokens) : begunUsage(usage);
  const message = { ...envelope(head), content: [], ...stop, usage: known };
  return eventOf("message_start", { message });
}

function endOfMessage(stop: JsonObject, usage: JsonObject): string {
  // A container would be our account's own.
  const delta = { stop_sequence: null, stop_details: null, ...stop, container: null };
  return eventOf("message_delta", { delta, usage }) + eventOf("message_stop", {});
}

function failureEvent(failure: Parameters<typeof errorOf>[0], { id }: Head): string {
  return eventOf("error", errorOf(failure, `req_${id.slice("msg_".length)}`) as JsonObject);
}

function textEvent(index: number, json: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"text_delta","text":${json}}}\n\n`;
}

/** The text of one event; `type` stands in both places, as clients of either look for it. */
function eventOf(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
