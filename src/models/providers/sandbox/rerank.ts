import { NO_USAGE } from "../../../shared/usage.ts";
import type { ProviderResult, RerankCall } from "../../core/provider.ts";

const DOCUMENTS_PER_UNIT = 100;

/** Ranks documents by the share of the query's words that they contain, then by their order. */
export function rerankAnswer({ body }: RerankCall): ProviderResult {
  const wanted = wordsIn(body.query);
  const results = body.documents.map((text, index) => {
    const words = wordsIn(text);
    const found = [...wanted].filter((word) => words.has(word)).length;
    return { index, relevance_score: wanted.size === 0 ? 0 : found / wanted.size };
  });
  const ranked = results.toSorted((a, b) => b.relevance_score - a.relevance_score);
  return {
    kind: "json",
    body: { results: ranked.slice(0, body.top_n) },
    usage: { ...NO_USAGE, search_unit: Math.ceil(body.documents.length / DOCUMENTS_PER_UNIT) },
  };
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}
