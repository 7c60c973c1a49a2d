import { success } from "../lib/failure.ts";
import type { Result, Failure } from "../lib/failure.ts";
import type { JsonObject } from "../core/provider.ts";
import type { Chunk } from "../core/chunk.ts";
import { wireUsage } from "../core/wire-usage.ts";
import { parseChatRequest } from "../core/core-request.ts";
import type { Asked, Door, Receipt, Head, StreamWriter } from "../core/door.ts";
import { aroundMark, eventOf, failedEvent, lastEvents, MARK } from "./openai-events.ts";

/** POST /v1/chat/completions: the core's own dialect, JSON and SSE. */
export const chatDoor: Door = {
  name: "chat",
  path: "/v1/chat/completions",
  dialect: null,
  idPrefix: "chatcmpl-",
  parse,
};

function parse(value: object): Result<Asked> {
  const parsed = parseChatRequest(value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const includeUsage = body.stream_options?.include_usage === true;
  return success({
    request: { kind: "chat", body },
    user: body.user ?? null,
    dropped: [],
    reply:
      body.stream === true
        ? { kind: "stream", stream: (head) => chatStream(head, includeUsage) }
        : { kind: "json", json: completion },
    native: null,
  });
}

/** The route's completion under our id and model, with usage that adds up. */
function completion(answer: JsonObject, { id, created, model, usage }: Receipt): JsonObject {
  return {
    ...answer,
    id,
    object: "chat.completion",
    created,
    model,
    usage: wireUsage(usage),
  };
}

/** OpenAI's chat chunks as server-sent events; `includeUsage`: the last one tells usage and cost. */
function chatStream(head: Head, includeUsage: boolean): StreamWriter {
  return new ChatStream(head, includeUsage);
}

/**
 * Writes chunks under our id and model. A chunk that differs from the last one in its text alone is
 * written from what stands around the text, without building it again.
 */
class ChatStream implements StreamWriter {
  readonly ping = ": keep-alive\n\n";
  /** id, object, created, model and usage, the same in every chunk. */
  readonly #identity: JsonObject;
  readonly #includeUsage: boolean;
  #last: Chunk = { choices: [] };
  #around: { readonly index: number; readonly before: string; readonly after: string } | null =
    null;

  constructor({ id, model, created }: Head, includeUsage: boolean) {
    const identity = { id, object: "chat.completion.chunk", created, model };
    this.#identity = includeUsage ? { ...identity, usage: null } : identity;
    this.#includeUsage = includeUsage;
  }

  begin(): string {
    return "";
  }

  chunk(chunk: Chunk): string {
    this.#last = chunk;
    this.#around = null;
    return this.#event(chunk);
  }

  text(index: number, json: string): string {
    if (this.#around?.index !== index) this.#around = this.#surroundings(index);
    return this.#around.before + json + this.#around.after;
  }

  end(receipt: Receipt): string {
    return lastEvents({ choices: [], ...this.#identity }, receipt, this.#includeUsage);
  }

  fail(failure: Failure): string {
    return failedEvent(failure);
  }

  #event(object: Chunk): string {
    return eventOf({ ...object, ...this.#identity });
  }

  #surroundings(index: number): { index: number; before: string; after: string } {
    const choice = { index, delta: { content: MARK }, logprobs: null, finish_reason: null };
    return { index, ...aroundMark(this.#event({ ...this.#last, choices: [choice] })) };
  }
}
