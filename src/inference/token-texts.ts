import { invalid, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import type { EmbeddingsBody } from "./embeddings-request.ts";

/** The most bytes that the texts of one request may have: four times what 300,000 tokens, OpenAI's bound, come to. */
const TEXT_BYTES_MAX = 8 * 1024 * 1024;

type Input = EmbeddingsBody["input"];

/**
 * What the ids of cl100k_base, OpenAI's encoding of text for embeddings, stand for. Read from the file that
 * scripts/site/tokens.ts writes: for each id in order the length of its bytes, in one byte, and they.
 */
export class TokenTable {
  readonly #bytes: Uint8Array;
  /** Where each id's length stands. */
  readonly #starts: readonly number[] | Uint32Array;

  constructor(bytes: Uint8Array) {
    const starts: number[] = [];
    for (let at = 0; at < bytes.length; at += 1 + (bytes[at] ?? 0)) starts.push(at);
    this.#bytes = bytes;
    this.#starts = Uint32Array.from(starts);
  }

  /** How many ids there are. */
  get size(): number {
    return this.#starts.length;
  }

  /** The bytes of an id; none for one that is not there. */
  bytesOf(id: number): Uint8Array {
    const start = this.#starts[id];
    if (start === undefined) return new Uint8Array();
    return this.#bytes.subarray(start + 1, start + 1 + (this.#bytes[start] ?? 0));
  }
}

/** Whether an input is of token ids. */
export function isOfTokens(input: Input): input is number[] | number[][] {
  return typeof input !== "string" && typeof input[0] !== "string";
}

/**
 * An input of token ids as the texts that they stand for. Failures: 400 with the place of an id that is none, and
 * for a text that is longer than any model takes.
 */
export function textsOfTokens(
  input: number[] | number[][],
  table: TokenTable,
): Result<string | string[]> {
  const isOne = typeof input[0] === "number";
  const lists = (isOne ? [input] : input) as number[][];
  let left = TEXT_BYTES_MAX;
  const texts: string[] = [];
  for (const [index, ids] of lists.entries()) {
    const place = isOne ? "input" : `input[${index}]`;
    const bad = ids.findIndex((id) => id >= table.size);
    if (bad !== -1) {
      return invalid(`${place}[${bad}] is no token of cl100k_base.`, `${place}[${bad}]`);
    }
    const pieces = ids.map((id) => table.bytesOf(id));
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    left -= bytes;
    if (left < 0) return invalid("The texts of 'input' are too long: send fewer at once.", "input");
    texts.push(joined(pieces, bytes));
  }
  return success(isOne ? (texts[0] ?? "") : texts);
}

/** A text that was cut in the midst of a letter has a replacement character there. */
function joined(pieces: readonly Uint8Array[], size: number): string {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(whole);
}
