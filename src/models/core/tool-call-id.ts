import { base62Hash } from "../../shared/hash.ts";

export type ToolCallIdShape = { readonly pattern: RegExp; readonly length: number };

/** Mistral's tool call IDs, also on Bedrock: nine letters and digits. */
export const NINE_CHARACTER_ID: ToolCallIdShape = { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 };
export const WORD_64_ID: ToolCallIdShape = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 24 };

/**
 * Maps tool call IDs to IDs that a host accepts: one to one, and always to the same ID, so that
 * prompt caches still match.
 */
export class ToolCallIds {
  readonly #shape: ToolCallIdShape;
  readonly #idByOriginal = new Map<string, string>();
  readonly #usedIds = new Set<string>();

  constructor(shape: ToolCallIdShape) {
    this.#shape = shape;
  }

  idFor(id: string): string {
    const known = this.#idByOriginal.get(id);
    if (known !== undefined) return known;
    let fit = this.#shape.pattern.test(id) ? id : base62Hash(id, this.#shape.length);
    for (let attempt = 1; this.#usedIds.has(fit); attempt++) {
      fit = base62Hash(`${attempt} ${id}`, this.#shape.length);
    }
    this.#idByOriginal.set(id, fit);
    this.#usedIds.add(fit);
    return fit;
  }
}
