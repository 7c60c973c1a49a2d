import type { JsonObject } from "../providers/provider.ts";

/** Stands for a text while the JSON around it is written; no upstream can know it. */
const MARK = "\u0000text\u0000";

/**
 * Writes chunks as server-sent events under our id and model. A chunk that differs from the last one
 * in its text alone is written from what stands around the text, without building it again.
 */
export class ChunkWriter {
  /** id, object, created, model and usage, the same in every chunk. */
  readonly #identity: JsonObject;
  #last: JsonObject = {};
  #around: { readonly index: number; readonly before: string; readonly after: string } | null =
    null;

  constructor(identity: JsonObject) {
    this.#identity = identity;
  }

  chunk(chunk: JsonObject): string {
    this.#last = chunk;
    this.#around = null;
    return this.event(chunk);
  }

  /** The last chunk again with this text, a JSON string literal, in choice `index`. */
  text(index: number, json: string): string {
    if (this.#around?.index !== index) this.#around = this.#surroundings(index);
    return this.#around.before + json + this.#around.after;
  }

  /** Any object of the stream, as one event; `over` wins over what every chunk carries. */
  event(object: JsonObject, over: JsonObject = {}): string {
    return `data: ${JSON.stringify({ ...object, ...this.#identity, ...over })}\n\n`;
  }

  #surroundings(index: number): { index: number; before: string; after: string } {
    const choice = { index, delta: { content: MARK }, logprobs: null, finish_reason: null };
    const written = this.event({ ...this.#last, choices: [choice] });
    const [before = "", after = ""] = written.split(JSON.stringify(MARK));
    return { index, before, after };
  }
}
