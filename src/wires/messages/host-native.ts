import type { Usage } from "../../lib/usage.ts";
import { isObject, numberOf, objectOf, parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject, NativeSaid, ChatCall, StreamEvent } from "../../core/provider.ts";
import type { PayloadReader } from "../../core/sse-reader.ts";
import { RepeatedText } from "../../core/text-template.ts";
import { tokenCount } from "../../core/token-count.ts";
import { claudeRules } from "../../claude/claude-rules.ts";
import { eventFailure } from "./host-failure.ts";
import { laterUsage, messagesUsage } from "./host-usage.ts";

/**
 * A request of a client that speaks Messages itself, as it goes out: the client's fields, our model, cap and
 * price class. What the model refuses though it only tunes is left out, and told.
 */
export function nativeRequest(
  { upstreamId, cap, native, stream, onDropped }: ChatCall,
  geo: "us" | null,
): { readonly body: JsonObject; readonly beta: string | null } | null {
  if (native === undefined) return null;
  const rules = claudeRules(upstreamId);
  const { temperature, top_p, top_k, ...body } = native.body;
  const mayTune = rules.sampling && !THINKS.has(objectOf(body["thinking"])["type"]);
  const tuned = given({ temperature, top_p, top_k });
  const sampling = mayTune ? samplingOf(tuned) : {};
  onDropped?.(Object.keys(tuned).filter((field) => !Object.hasOwn(sampling, field)));
  return {
    beta: native.headers["anthropic-beta"] ?? null,
    body: {
      ...body,
      ...sampling,
      model: upstreamId,
      max_tokens: numberOf(body["max_tokens"]) === 0 ? 0 : cap,
      ...(geo !== null && rules.geo && { inference_geo: geo }),
      service_tier: "standard_only", // priority is priced apart
      ...(stream && { stream: true }),
    },
  };
}

/** Whether any mark of a request has something kept in a cache for an hour: in texts, tools and results. */
export function keepsAnHour(body: JsonObject): boolean {
  const { messages, system, tools, cache_control: mark } = body;
  return [mark, system, tools, messages].some(marksHour);
}

function marksHour(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(marksHour);
  if (!isObject(value)) return false;
  if (value["ttl"] === "1h" && value["type"] === "ephemeral") return true;
  return ["cache_control", "content", "source"].some((field) => marksHour(value[field]));
}

const THINKS: ReadonlySet<unknown> = new Set(["enabled", "adaptive"]);

/** Temperature or top_p: with both, one is a 400. */
function samplingOf(tuned: JsonObject): JsonObject {
  if (tuned["temperature"] === undefined) return tuned;
  const { top_p: _, ...one } = tuned;
  return one;
}

function given(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A whole message of theirs, and its usage to bill; null when it is none. */
export function nativeAnswer(raw: JsonObject, asksHour: boolean): NativeAnswer | null {
  if (!Array.isArray(raw["content"])) return null;
  const usage = messagesUsage(objectOf(raw["usage"]), asksHour);
  return { body: raw, usage, native: nativeSaid(raw) };
}

type NativeAnswer = {
  readonly body: JsonObject;
  readonly usage: Usage | null;
  readonly native: NativeSaid;
};

/** What of a whole message counts as output, and why it ended. */
function nativeSaid(message: JsonObject): NativeSaid {
  const content = Array.isArray(message["content"]) ? (message["content"] as unknown[]) : [];
  return {
    said: content.map((block) => saidIn(objectOf(block))).join(""),
    finish: textOf(message["stop_reason"]) || null,
  };
}

/** The text of a block or a delta: words, thoughts, names and arguments of calls. */
function saidIn(part: JsonObject): string {
  const { text, thinking, partial_json: json, name, input } = part;
  const called = input === undefined ? "" : JSON.stringify(input);
  return (
    textOf(text) + textOf(thinking) + textOf(json) + textOf(name) + (called === "{}" ? "" : called)
  );
}

/** Reads the stream of one message and passes its events on as they are (reference: platform.claude.com, streaming messages). */
export class NativeReader implements PayloadReader {
  #ended = false;
  #usage: JsonObject = {};
  /** An output was reported after the start, whose own is of the first token at most. */
  #isCounted = false;
  #isFinished = false;
  /** The start promises nothing yet: it goes on with the first that does. */
  #start: StreamEvent[] = [];
  readonly #texts = new RepeatedText(/"delta":\s?\{"type":\s?"text_delta",\s?"text":\s?/);
  readonly #secret: string;
  readonly #asksHour: boolean;

  /** `secret`: our key there; `asksHour`: as in `messagesUsage`. */
  constructor(secret: string, asksHour: boolean) {
    this.#secret = secret;
    this.#asksHour = asksHour;
  }

  get ended(): boolean {
    return this.#ended;
  }

  read(data: string, name: string): StreamEvent[] {
    if (this.#ended) return [];
    const text = this.#texts.read(data);
    if (text !== null) return [text];
    this.#texts.forget();
    const event = parseObject(data);
    if (event === null) return this.fail("bad_event");
    const type = textOf(event["type"]);
    if (name === "error" || type === "error") {
      this.#ended = true;
      return [{ kind: "error", failure: eventFailure(event, this.#secret) }];
    }
    switch (type) {
      case "message_start":
        this.#usage = laterUsage({}, objectOf(event["message"])["usage"]);
        this.#start = [passed(event, "", null)];
        return this.#reported();
      case "content_block_start":
        return this.#begun(passed(event, saidIn(objectOf(event["content_block"])), null));
      case "content_block_delta":
        this.#learn(data, event);
        return this.#begun(deltaOf(event));
      case "content_block_stop":
        return this.#begun(passed(event, "", null));
      case "message_delta":
        return this.#finish(event);
      case "message_stop":
        return this.#end();
      default:
        return []; // pings are ours, and what is unknown promises nothing
    }
  }

  fail(reason: string): StreamEvent[] {
    this.#ended = true;
    return [{ kind: "error", failure: { kind: "retry", reason } }];
  }

  #learn(data: string, event: JsonObject): void {
    const { type, text } = objectOf(event["delta"]);
    const index = numberOf(event["index"]);
    if (type === "text_delta" && index !== undefined) this.#texts.learn(data, index, textOf(text));
  }

  #begun(event: StreamEvent): StreamEvent[] {
    if (this.#start.length === 0) return [event];
    const start = this.#start;
    this.#start = [];
    return [...start, event];
  }

  #finish(event: JsonObject): StreamEvent[] {
    this.#usage = laterUsage(this.#usage, event["usage"]);
    this.#isCounted ||= tokenCount(objectOf(event["usage"])["output_tokens"]) !== null;
    const reason = textOf(objectOf(event["delta"])["stop_reason"]) || null;
    this.#isFinished ||= reason !== null;
    return [...this.#begun(passed(event, "", reason)), ...this.#reported()];
  }

  /** Usage so far; it is the whole's once there is a reason to stop and it says the output. */
  #reported(): StreamEvent[] {
    const usage = messagesUsage(this.#usage, this.#asksHour);
    if (usage === null) return [];
    const isPartial = !(this.#isFinished && this.#isCounted);
    return [{ kind: "usage", usage, ...(isPartial && { partial: true }) }];
  }

  #end(): StreamEvent[] {
    if (!this.#isFinished) return this.fail("no_finish_reason");
    this.#ended = true;
    return [{ kind: "end" }];
  }
}

function passed(event: JsonObject, said: string, finish: string | null): StreamEvent {
  return { kind: "native", event, said, finish };
}

function deltaOf(event: JsonObject): StreamEvent {
  return passed(event, saidIn(objectOf(event["delta"])), null);
}
