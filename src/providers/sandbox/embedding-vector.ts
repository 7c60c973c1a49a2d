import { hash32 } from "../hash.ts";

const COORDINATES_PER_WORD = 8;
/** Eight decimals are what a float32 near 1 can tell apart, and shorter on the wire than a double. */
const DECIMALS = 1e8;

/**
 * The unit vector of a text's words (or token ids), in lower case and in any order: every word adds a
 * few hashed coordinates, so texts that share words are near, and the same text gives the same vector.
 */
export function vectorOf(words: readonly string[], dimensions: number): readonly number[] {
  const sums = Array.from({ length: dimensions }, () => 0);
  for (const word of words) {
    for (let k = 0; k < COORDINATES_PER_WORD; k++) {
      const hash = hash32(`${k} ${word}`); // as a seed, k would cancel against a first letter
      const at = (hash >>> 1) % dimensions;
      sums[at] = (sums[at] ?? 0) + ((hash & 1) === 0 ? 1 : -1);
    }
  }
  let norm = Math.hypot(...sums);
  if (norm === 0) {
    sums[hash32(words.join(" ")) % dimensions] = 1; // nothing said, or all of it cancelled out
    norm = 1;
  }
  return sums.map((sum) => Math.round((sum / norm) * DECIMALS) / DECIMALS + 0);
}

/** The words of a text; one of signs alone counts as one word. */
export function embeddedWords(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text.trim()];
}

/** Little-endian float32 in standard base64, as OpenAI's `encoding_format: "base64"`. */
export function base64Floats(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [i, value] of vector.entries()) view.setFloat32(i * 4, value, true);
  let binary = "";
  for (let i = 0; i < view.byteLength; i++) binary += String.fromCharCode(view.getUint8(i));
  return btoa(binary);
}
