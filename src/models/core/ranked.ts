import { NO_USAGE } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { ProviderResponse } from "./provider.ts";
import type { RerankBody } from "./rerank.ts";
import { readAnyValue, createListReader, createObjectReader } from "./json-value.ts";

const readRanks = createListReader(
  createObjectReader({ index: readAnyValue, relevance_score: readAnyValue }),
);

/**
 * Parses ranked documents, best first. Returns null for an empty list, or for a repeated or unknown
 * document.
 */
export function parseRankedResponse(
  raw: unknown,
  { documents, top_n: resultsMax }: RerankBody,
  usage: Usage | null,
): ProviderResponse | null {
  const seenIndexes = new Set<number>();
  const results: { index: number; relevance_score: number }[] = [];
  for (const { index, relevance_score: score } of readRanks(raw)) {
    if (typeof index !== "number" || documents[index] === undefined || seenIndexes.has(index)) {
      return null;
    }
    if (typeof score !== "number" || !Number.isFinite(score)) return null;
    seenIndexes.add(index);
    results.push({ index, relevance_score: score });
  }
  if (results.length === 0) return null;
  const sortedResults = results.toSorted((a, b) => b.relevance_score - a.relevance_score);
  return { body: { results: sortedResults.slice(0, resultsMax) }, usage };
}

/** Returns search units and tokens as usage, or null. */
export function toRerankUsage({
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
