import type { JsonObject, ProviderResponse, RerankCall } from "../../core/provider.ts";
import { rankedResponse, rankedUsage } from "../../core/ranked.ts";
import { listOf } from "../../core/json-value.ts";
import { objectReader } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";

export function cohereRerankRequest({ body, upstreamId }: RerankCall): JsonObject {
  const { query, documents, top_n, max_tokens_per_doc } = body;
  return { model: upstreamId, query, documents, top_n, max_tokens_per_doc };
}

const responseReader = objectReader({
  results: listOf,
  meta: objectReader({
    billed_units: objectReader({ search_units: tokenCount, input_tokens: tokenCount }),
  }),
});

/** Converts a rerank response. Cohere bills some models by search units and others by tokens. */
export function readCohereRerank(raw: JsonObject, { body }: RerankCall): ProviderResponse | null {
  const { results, meta } = responseReader(raw);
  const { search_units: searchUnits, input_tokens: tokens } = meta.billed_units;
  return rankedResponse(results, body, rankedUsage({ searchUnits, tokens }));
}
