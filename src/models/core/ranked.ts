import { NO_USAGE } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { ProviderResponse } from "./provider.ts";
import type { RerankBody } from "./rerank.ts";
import { asIs, list, shape } from "./shape.ts";

const ranks = list(shape({ index: asIs, relevance_score: asIs }));

/**
 * Parses a list of ranked documents, best first. Returns null if it is empty, or names a document
 * twice or an unknown one.
 */
export function rankedResponse(
  raw: unknown,
  { documents, top_n: most }: RerankBody,
  usage: Usage | null,
): ProviderResponse | null {
  const seen = new Set<number>();
  const results: { index: number; relevance_score: number }[] = [];
  for (const { index, relevance_score: score } of ranks(raw)) {
    if (typeof index !== "number" || documents[index] === undefined || seen.has(index)) return null;
    if (typeof score !== "number" || !Number.isFinite(score)) return null;
    seen.add(index);
    results.push({ index, relevance_score: score });
  }
  if (results.length === 0) return null;
  const ranked = results.toSorted((a, b) => b.relevance_score - a.relevance_score);
  return { body: { results: ranked.slice(0, most) }, usage };
}

export function rankedUsage({
  searchUnits: units,
  tokens,
}: {
  readonly searchUnits: number | null;
  readonly tokens: number | null;
}): Usage | null {
  const isCounted = (units ?? 0) + (tokens ?? 0) > 0;
  if (!isCounted) return null;
  return {
    ...NO_USAGE,
    input: tokens ?? 0,
    ...(units !== null && units > 0 && { search_unit: units }),
  };
}
