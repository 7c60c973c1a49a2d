import {
  argumentsText,
  brokenOff,
  contentText,
  customCall,
  envelope,
  extras,
  finishReason,
  hasError,
  logprobsOf,
  text,
  toolCallId,
} from "../../core/chat-message.ts";
import type { Called, Message } from "../../core/chat-message.ts";
import type { Usage } from "../../../shared/usage.ts";
import { isObject, objectOf, parseObject, textOf as textIn } from "../../core/json-value.ts";
import type { Named } from "../../core/json-value.ts";
import { readUsage, usageIn } from "../../core/chat-usage.ts";
import type { UsageShape } from "../../core/chat-usage.ts";
import type { Chunk, ChunkChoice, Delta, DeltaCall } from "../../core/chunk.ts";
import { indexOf } from "./answer.ts";
import { isProvoked } from "../../core/provider.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "../../core/provider.ts";
import { failureEvents } from "../../core/spent.ts";
import { textOf, textTemplate } from "../../core/text-template.ts";
import type { TextTemplate } from "../../core/text-template.ts";
import { streamFailure } from "../../core/upstream-failure.ts";

/** What is known of a choice so far. */
type ChoiceState = {
  readonly tools: Tool[];
  /** Our index of the call that the upstream last named by its own index. */
  readonly current: Map<number, number>;
  finished: boolean;
};
/** A host whose chunks differ in more than their text is not compared for ever. */
const MISSES_MAX = 8;
type RawChunk = JsonObject & Named<"choices">;
type RawChoice = JsonObject & Named<"index" | "delta" | "finish_reason">;
type Tool = { readonly id: string; hasArguments: boolean; readonly custom: boolean };

/**
 * Turns one stream's data payloads into events in OpenAI's order: the role once per choice, one tool
 * call per delta with id, type and name once, a finish chunk of its own, usage as its own event.
 * Holds the state of one stream; nothing follows an `end` or an `error`.
 */
export class ChunkReader {
  #ended = false;
  /** The last chunk that held nothing but text, as a pattern for the next. */
  #template: TextTemplate | null = null;
  #misses = 0;
  /** Why a choice could not be finished: what the answer has used may come with the next payload. */
  #broken: ProviderFailure | null = null;
  /** What every chunk repeats, taken from the first. */
  #head: Omit<Chunk, "choices"> | null = null;
  readonly #choices = new Map<number, ChoiceState>();
  readonly #secret: string | undefined;
  readonly #shape: UsageShape;
  readonly #asked: number;

  /**
   * `secret` is our key at the host, which its errors may quote; `shape`, how it reports usage; `asked`,
   * how many choices it was asked for.
   */
  constructor(secret?: string, shape: UsageShape = {}, asked = 1) {
    this.#secret = secret;
    this.#shape = shape;
    this.#asked = asked;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The events of one payload; `name` is the server-sent event's. */
  read(data: string, name: string): StreamEvent[] {
    if (this.#ended) return [];
    const again = name === "message" ? this.#textOf(data) : null;
    if (again !== null) return [again];
    const trimmed = data.trim();
    if (trimmed === "") return [];
    if (trimmed === "[DONE]") return this.#end();
    const raw = parseObject(data);
    if (raw === null) return this.fail("bad_event");
    const usage = readUsage(usageIn(raw, this.#shape), this.#shape);
    if (this.#broken !== null) return this.#failWith(this.#broken, usage);
    if (name !== "error" && !hasError(raw)) return this.#chunk(raw, usage, data);
    return this.#failWith(streamFailure(raw, this.#secret), usage);
  }

  #chunk(raw: RawChunk, usage: Usage | null, data: string): StreamEvent[] {
    const events = Array.isArray(raw.choices) ? this.#chunks(raw, raw.choices) : [];
    if (this.#broken !== null) {
      this.#template = null;
      const isOver = usage !== null || !isProvoked(this.#broken);
      return isOver ? [...events, ...this.#failWith(this.#broken, usage)] : events;
    }
    if (usage !== null) events.push(this.#reported(usage));
    this.#template = this.#misses < MISSES_MAX ? templateOf(data, events) : null;
    return events;
  }

  /** Usage is the whole's once as many choices as were asked for have finished; before, what there was so far. */
  #reported(usage: Usage): StreamEvent {
    const known = [...this.#choices.values()];
    const whole = known.length >= this.#asked && known.every((choice) => choice.finished);
    return { kind: "usage", usage, ...(!whole && { partial: true }) };
  }

  /** The payload's text when it is the last chunk again but for that; a host that never repeats itself is not asked for long. */
  #textOf(data: string): StreamEvent | null {
    if (this.#template === null) return null;
    const json = textOf(data, this.#template);
    this.#misses = json === null ? this.#misses + 1 : 0;
    return json === null ? null : { kind: "text", index: this.#template.index, json };
  }

  /** Ends the stream with an upstream failure of our own finding. */
  fail(reason: string): StreamEvent[] {
    return this.#failWith({ kind: "retry", reason });
  }

  /** For streams that end without their marker. */
  endOfFile(): StreamEvent[] {
    return this.#broken === null ? [] : this.#failWith(this.#broken);
  }

  #failWith(failure: ProviderFailure, usage: Usage | null = null): StreamEvent[] {
    this.#ended = true;
    return failureEvents(failure, usage);
  }

  /** [DONE] ends a stream only when every choice that began has finished. */
  #end(): StreamEvent[] {
    if (this.#broken !== null) return this.#failWith(this.#broken);
    const open = [...this.#choices.values()].some((choice) => !choice.finished);
    if (open) return this.fail("no_finish_reason");
    this.#ended = true;
    return [{ kind: "end" }];
  }

  #chunks(raw: RawChunk, choices: readonly unknown[]): StreamEvent[] {
    if (choices.length === 0) return []; // Azure's first chunk has an empty id and is of 1970
    const head = (this.#head ??= { ...envelope(raw), object: "chat.completion.chunk" });
    const events: StreamEvent[] = [];
    for (const [position, given] of choices.entries()) {
      if (!isObject(given)) continue;
      const choice: RawChoice = given;
      const index = indexOf(choice, position);
      for (const part of this.#parts(choice, index)) {
        if (part === null) {
          this.#broken = brokenOff(choice.finish_reason);
          return events;
        }
        events.push({ kind: "chunk", chunk: { ...head, choices: [{ index, ...part }] } });
      }
    }
    return events;
  }

  /** The chunk choices that one upstream choice becomes; null where the upstream broke off. */
  #parts(raw: RawChoice, index: number): (Omit<ChunkChoice, "index"> | null)[] {
    const known = this.#choices.get(index);
    if (known?.finished === true) return [];
    const choice: ChoiceState = known ?? { tools: [], current: new Map(), finished: false };
    this.#choices.set(index, choice);
    const deltas = this.#deltas(isObject(raw.delta) ? raw.delta : {}, choice, known === undefined);
    const given = logprobsOf(raw);
    const finished = typeof raw.finish_reason === "string" && raw.finish_reason !== "";
    choice.finished = finished;
    if (finished) deltas.push(...missingArguments(choice));
    const open = deltas.map((delta, at) => {
      return { delta, logprobs: at === 0 ? given : null, finish_reason: null };
    });
    if (!finished) return open;
    const reason = finishReason(raw.finish_reason, choice.tools.length > 0);
    const last = reason === null ? null : { delta: {}, logprobs: null, finish_reason: reason };
    return [...open, last];
  }

  /** The deltas worth sending, in order: role, content and reasoning first, then each tool call. */
  #deltas(raw: JsonObject & Message, choice: ChoiceState, first: boolean): Delta[] {
    const calls = Array.isArray(raw.tool_calls) ? raw.tool_calls.filter(isObject) : [];
    const [content, refusal] = [contentText(raw.content), text(raw.refusal)];
    const rest: Delta = {
      ...extras(raw),
      ...(content !== null && (content !== "" || first) && { content }),
      ...(refusal !== null && refusal !== "" && { refusal }),
    };
    const deltas: Delta[] = [];
    if (first) deltas.push({ role: "assistant", content: calls.length > 0 ? null : "", ...rest });
    else if (Object.keys(rest).length > 0) deltas.push(rest);
    for (const [position, call] of calls.entries()) {
      deltas.push({ tool_calls: [toolDelta(call, choice, position)] });
    }
    return deltas;
  }
}

/**
 * The pattern of a payload that came to one chunk with one choice, open, and nothing but text in its
 * delta. A choice that has finished says nothing more, so a pattern does not outlive it.
 */
function templateOf(data: string, events: readonly StreamEvent[]): TextTemplate | null {
  const [event] = events;
  if (events.length !== 1 || event?.kind !== "chunk") return null;
  const [choice] = event.chunk.choices;
  if (choice === undefined) return null;
  const keys = Object.keys(choice.delta);
  if (keys.length !== 1 || typeof choice.delta.content !== "string") return null;
  if (choice.logprobs !== null || choice.finish_reason !== null) return null;
  return textTemplate(data, choice.index, choice.delta.content);
}

/** One tool call of a delta: whole the first time, its arguments alone from then on. */
function toolDelta(raw: Called, choice: ChoiceState, position: number): DeltaCall {
  const theirs = indexOf(raw, position);
  const id = text(raw.id);
  const known = choice.current.get(theirs);
  const tool = known === undefined ? undefined : choice.tools[known];
  if (known === undefined || tool === undefined) return begun(raw, choice, theirs);
  // Some hosts give every call the same index: another id is another call. So is a name that comes
  // with neither.
  const isUnnamed = id === null || id === "";
  const isNumbered = Number.isSafeInteger(raw.index);
  const isAnother = isUnnamed ? !isNumbered && nameOf(raw) !== "" : id !== tool.id;
  return isAnother ? begun(raw, choice, theirs) : continued(raw, tool, known);
}

function nameOf(raw: Called): string {
  const [called, custom]: readonly Named<"name">[] = [objectOf(raw.function), objectOf(raw.custom)];
  return textIn(called?.name) || textIn(custom?.name);
}

function begun(raw: Called, choice: ChoiceState, theirs: number): DeltaCall {
  const index = choice.tools.length;
  const called: Named<"name" | "arguments"> = objectOf(raw.function);
  const given = argumentsText(called.arguments);
  const custom = isObject(raw.custom) ? customCall(raw.custom) : null;
  const id = toolCallId(raw.id);
  choice.tools.push({ id, hasArguments: given !== "", custom: custom !== null });
  choice.current.set(theirs, index);
  if (custom !== null) return { index, id, type: "custom", custom };
  const named = { name: text(called.name) ?? "", arguments: given };
  return { index, id, type: "function", function: named };
}

function continued(raw: Called, tool: Tool, index: number): DeltaCall {
  if (tool.custom) {
    const custom: Named<"input"> = objectOf(raw.custom);
    return { index, custom: { input: text(custom.input) ?? "" } };
  }
  const called: Named<"name" | "arguments"> = objectOf(raw.function);
  const given = argumentsText(called.arguments);
  if (given !== "") tool.hasArguments = true;
  return { index, function: { arguments: given } };
}

/** "{}" for each tool that was called without arguments: clients parse them without looking. */
function missingArguments(choice: ChoiceState): JsonObject[] {
  return choice.tools.flatMap((tool, index) =>
    tool.custom || tool.hasArguments
      ? []
      : [{ tool_calls: [{ index, function: { arguments: "{}" } }] }],
  );
}
