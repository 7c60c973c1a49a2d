import { floatsToBase64 } from "../../core/embedding-encoding.ts";
import { distributedHash32 } from "../../../shared/hash.ts";
import type { EmbeddingsCall, JsonObject, ProviderResult } from "../../core/provider.ts";
import { countTokens } from "./tokens.ts";

const DIMENSIONS_DEFAULT = 256;
const DIMENSIONS_MAX = 1024;
const COORDINATES_PER_WORD = 8;
/** Eight decimals are as exact as a float32 near 1, and shorter than a double. */
const DECIMALS = 1e8;

export function sandboxEmbeddings({ upstreamId, body }: EmbeddingsCall): ProviderResult {
  const { input, dimensions = DIMENSIONS_DEFAULT } = body;
  if (dimensions > DIMENSIONS_MAX) {
    const message = `'dimensions' must be a whole number from 1 to ${DIMENSIONS_MAX} for this model.`;
    const detail = { message, param: "dimensions", code: null, reason: "400" };
    return { kind: "failure", failure: { kind: "refused", ...detail } };
  }
  const texts = (Array.isArray(input) ? input : [input]).map(String);
  const asBase64 = body.encoding_format === "base64";
  const data = texts.map((text, index): JsonObject => {
    const vector = vectorOf(wordsIn(text), dimensions);
    return { object: "embedding", index, embedding: asBase64 ? floatsToBase64(vector) : vector };
  });
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return {
    kind: "json",
    body: { object: "list", data, model: upstreamId, usage },
    usage: { input: tokens, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
  };
}

function wordsIn(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text.trim()];
}

function vectorOf(words: readonly string[], dimensions: number): readonly number[] {
  const sums = Array.from({ length: dimensions }, () => 0);
  for (const word of words) {
    for (let k = 0; k < COORDINATES_PER_WORD; k++) {
      const hash = distributedHash32(`${k} ${word}`); // as a seed, k would cancel against a first letter
      const at = (hash >>> 1) % dimensions;
      sums[at] = (sums[at] ?? 0) + ((hash & 1) === 0 ? 1 : -1);
    }
  }
  let norm = Math.hypot(...sums);
  if (norm === 0) {
    sums[distributedHash32(words.join(" ")) % dimensions] = 1; // an empty text, or everything canceled out
    norm = 1;
  }
  return sums.map((sum) => Math.round((sum / norm) * DECIMALS) / DECIMALS + 0);
}
