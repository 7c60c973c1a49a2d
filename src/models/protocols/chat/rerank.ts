import { listOf } from "../../core/json-value.ts";
import { rankedResponse, rankedUsage } from "../../core/ranked.ts";
import { shape } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import type { PlainCall } from "./profile.ts";

const ranked = shape({
  results: listOf,
  data: listOf,
  usage: shape({ total_tokens: tokenCount }),
});

/**
 * Returns POST /rerank of Voyage (`top_k`, `data`), or of Jina and similar servers (`top_n`,
 * `results`).
 */
export function rerankCall(limit: "top_k" | "top_n"): PlainCall<"rerank"> {
  return {
    path: "/rerank",
    request: ({ body: { query, documents, top_n: most }, upstreamId }) => {
      return { model: upstreamId, query, documents, [limit]: most, return_documents: false };
    },
    answer: (raw, { body }) => {
      const { results, data, usage } = ranked(raw);
      const counted = rankedUsage({ searchUnits: null, tokens: usage.total_tokens });
      return rankedResponse([...results, ...data], body, counted);
    },
  };
}
