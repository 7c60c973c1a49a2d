import { listOf } from "../../core/json-value.ts";
import { rankedResponse, rankedUsage } from "../../core/ranked.ts";
import { objectReader } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import type { CallProtocol } from "./profile.ts";

const responseReader = objectReader({
  results: listOf,
  data: listOf,
  usage: objectReader({ total_tokens: tokenCount }),
});

/**
 * Handles POST /rerank. Voyage uses `top_k` and `data`. Jina and others use `top_n` and `results`.
 */
export function rerankCall(limitField: "top_k" | "top_n"): CallProtocol<"rerank"> {
  return {
    path: "/rerank",
    request: ({ body: { query, documents, top_n: topN }, upstreamId }) => {
      return { model: upstreamId, query, documents, [limitField]: topN, return_documents: false };
    },
    convertResponse: (raw, { body }) => {
      const { results, data, usage } = responseReader(raw);
      const counted = rankedUsage({ searchUnits: null, tokens: usage.total_tokens });
      return rankedResponse([...results, ...data], body, counted);
    },
  };
}
