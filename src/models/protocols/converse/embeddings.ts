import { getInputTexts, toEmbeddingList } from "../../core/embedding-batches.ts";
import { isObject, listOf, textOf } from "../../core/json-value.ts";
import { COHERE_INPUT_TYPES } from "../../core/embeddings.ts";
import type { EmbeddingsBody } from "../../core/embeddings.ts";
import type { ProviderResponse, EmbeddingsCall, JsonObject } from "../../core/provider.ts";
import { readTokenCount } from "../../core/openai-usage.ts";

type EmbeddingAuthor = {
  readonly textsMax: number;
  body(texts: readonly string[], request: EmbeddingsBody, model: string): JsonObject;
};

const COHERE_EMBEDDINGS: EmbeddingAuthor = {
  textsMax: 96,
  body(texts, { input_type: type, dimensions }) {
    const inputType = COHERE_INPUT_TYPES.has(type) ? type : "search_document";
    const size = dimensions === undefined ? {} : { output_dimension: dimensions };
    return { input_type: inputType, texts, embedding_types: ["float"], ...size };
  },
};
const TITAN_EMBEDDINGS: EmbeddingAuthor = {
  textsMax: 1,
  body([inputText = ""], { dimensions }, model) {
    if (!model.includes("v2")) return { inputText };
    const size = dimensions === undefined ? {} : { dimensions };
    return { inputText, ...size, normalize: true };
  },
};

export function getBedrockEmbeddingAuthor(model: string): EmbeddingAuthor {
  return model.includes("cohere.") ? COHERE_EMBEDDINGS : TITAN_EMBEDDINGS;
}

export function toBedrockEmbeddingsRequest(call: EmbeddingsCall): string {
  const { body, upstreamId } = call;
  return JSON.stringify(
    getBedrockEmbeddingAuthor(upstreamId).body(getInputTexts(call), body, upstreamId),
  );
}

/**
 * Reads embeddings, or returns null for invalid vectors. Cohere returns the token count only in a
 * header.
 */
export function readBedrockEmbeddings(
  raw: JsonObject,
  call: EmbeddingsCall,
  headers: Headers,
): ProviderResponse | null {
  const header = textOf(headers.get("x-amzn-bedrock-input-token-count"));
  const tokens =
    readTokenCount(raw["inputTextTokenCount"]) ??
    readTokenCount(header === "" ? null : Number(header));
  return toEmbeddingList(vectorsOf(raw), call, tokens);
}

function vectorsOf(raw: JsonObject): readonly unknown[] {
  const { embedding, embeddings } = raw;
  if (Array.isArray(embedding)) return [embedding];
  return listOf(isObject(embeddings) ? embeddings["float"] : embeddings);
}
