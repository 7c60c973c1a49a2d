import { listOf } from "../../core/json-value.ts";
import type { JsonObject, ProviderResponse, RerankCall } from "../../core/provider.ts";
import { rankedAnswer, rankedUsage } from "../../core/ranked.ts";
import { shape } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import type { Profile } from "./profile.ts";

/** Builds a request for POST /rerank of Voyage, or of Jina and servers like it. */
export function rerankRequest(
  { body, upstreamId }: RerankCall,
  ranks: NonNullable<Profile["ranks"]>,
): JsonObject {
  const { query, documents, top_n } = body;
  const count = ranks === "voyage" ? { top_k: top_n } : { top_n };
  return { model: upstreamId, query, documents, ...count, return_documents: false };
}

const ranked = shape({
  results: listOf,
  data: listOf,
  usage: shape({ total_tokens: tokenCount }),
});

/** Reads the answer. Voyage calls its results `data`. */
export function rerankAnswer(raw: JsonObject, { body }: RerankCall): ProviderResponse | null {
  const { results, data, usage } = ranked(raw);
  const counted = rankedUsage({ searchUnits: null, tokens: usage.total_tokens });
  return rankedAnswer([...results, ...data], body, counted);
}
