import { getInputTexts, isVector, toEmbeddingList } from "../../core/embedding-batches.ts";
import {
  numberOf,
  readAnyValue,
  createListReader,
  createObjectReader,
} from "../../core/json-value.ts";
import type { ProviderResponse, JsonObject, EmbeddingsCall } from "../../core/provider.ts";
import { readTokenCount } from "../../core/openai-usage.ts";

export type GeminiEmbeddingMethod = {
  readonly method: string;
  readonly textsMax: (model: string) => number;
  readonly request: (call: EmbeddingsCall) => JsonObject;
  readonly answer: (raw: JsonObject, call: EmbeddingsCall) => ProviderResponse | null;
};

const readBatch = createObjectReader({
  embeddings: createListReader(createObjectReader({ values: readAnyValue })),
  usageMetadata: createObjectReader({ promptTokenCount: readAnyValue }),
});
const readPredictions = createObjectReader({
  predictions: createListReader(
    createObjectReader({
      embeddings: createObjectReader({
        values: readAnyValue,
        statistics: createObjectReader({ token_count: numberOf }),
      }),
    }),
  ),
});

/** Embeddings of the Gemini API, which accepts at most 100 texts (measured). */
export const GEMINI_EMBEDDINGS: GeminiEmbeddingMethod = {
  method: "batchEmbedContents",
  textsMax: () => 100,
  request: (call) => ({
    requests: getInputTexts(call).map((text) => ({
      model: `models/${call.upstreamId}`,
      content: { parts: [{ text }] },
      outputDimensionality: call.body.dimensions,
    })),
  }),
  answer(raw, call) {
    const { embeddings, usageMetadata } = readBatch(raw);
    const vectors = embeddings.map(({ values }) => values);
    return toNormalizedList(vectors, call, usageMetadata.promptTokenCount);
  },
};

/**
 * Embeddings of Vertex. gemini-embedding-001 accepts one text per request. Other models accept
 * 2,048 tokens per text and 20,000 per request. `autoTruncate: false` rejects longer texts.
 */
export const VERTEX_EMBEDDINGS: GeminiEmbeddingMethod = {
  method: "predict",
  textsMax: (model) => (model.startsWith("gemini-embedding") ? 1 : 9),
  request: (call) => ({
    instances: getInputTexts(call).map((content) => ({ content })),
    parameters: { autoTruncate: false, outputDimensionality: call.body.dimensions },
  }),
  answer(raw, call) {
    const items = readPredictions(raw).predictions.map(({ embeddings }) => embeddings);
    let tokens: number | undefined = 0;
    for (const { statistics } of items) {
      const { token_count: counted } = statistics;
      tokens = tokens === undefined || counted === undefined ? undefined : tokens + counted;
    }
    return toNormalizedList(
      items.map(({ values }) => values),
      call,
      tokens,
    );
  },
};

function toNormalizedList(vectors: readonly unknown[], call: EmbeddingsCall, tokens: unknown) {
  const normalizedVectors = vectors.map((vector) =>
    isVector(vector) && isShortened(vector, call.upstreamId) ? normalize(vector) : vector,
  );
  return toEmbeddingList(normalizedVectors, call, readTokenCount(tokens));
}

const FULL_DIMENSIONS = 3072;

/** The model gemini-embedding-001 doesn't normalize shortened vectors. */
function isShortened(vector: readonly number[], model: string): boolean {
  return model === "gemini-embedding-001" && vector.length < FULL_DIMENSIONS;
}

function normalize(vector: number[]): number[] {
  const length = Math.hypot(...vector);
  return length > 0 ? vector.map((value) => value / length) : vector;
}
