import { hashedBase62 } from "../../shared/hash.ts";

/** Which ids a provider takes for tool calls and their results. */
export type IdShape = { readonly pattern: RegExp; readonly length: number };

/** Mistral, and its models on Bedrock: nine letters and digits. */
export const NINE: IdShape = { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 };
/** Anthropic and Bedrock: letters, digits, _ and -, at most 64. */
export const WORD_64: IdShape = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 24 };

/**
 * Maps the tool call ids of one conversation to ids that a provider takes, so that a conversation begun
 * elsewhere goes on there. The same id gives the same id in every request (providers cache prompts by
 * their bytes), and two ids of one conversation never meet.
 */
export class ToolCallIds {
  readonly #shape: IdShape;
  readonly #given = new Map<string, string>();
  readonly #taken = new Set<string>();

  constructor(shape: IdShape) {
    this.#shape = shape;
  }

  idFor(id: string): string {
    const known = this.#given.get(id);
    if (known !== undefined) return known;
    let fit = this.#shape.pattern.test(id) ? id : hashedBase62(id, this.#shape.length);
    for (let turn = 1; this.#taken.has(fit); turn++) {
      fit = hashedBase62(`${turn} ${id}`, this.#shape.length);
    }
    this.#given.set(id, fit);
    this.#taken.add(fit);
    return fit;
  }
}
