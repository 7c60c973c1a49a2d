import type { Usage } from "../../lib/usage.ts";
import { isObject } from "../json-value.ts";
import type { JsonObject } from "../provider.ts";

/** No honest answer counts more; above it a number is noise, and prices times it must stay exact. */
const TOKENS_MAX = 1_000_000_000;

/**
 * Usage as OpenAI-compatible hosts report it: `prompt_tokens` includes what was cached, and
 * `completion_tokens` includes reasoning. Parts larger than their whole are clamped to it; a count
 * that is missing, negative, fractional, not a number or absurd makes the usage missing (null), so
 * that it is estimated instead. Explicit zeros are zeros.
 */
export function readUsage(raw: unknown, kind: "chat" | "embeddings"): Usage | null {
  if (!isObject(raw)) return null;
  const prompt = count(raw["prompt_tokens"]);
  const output = kind === "embeddings" ? 0 : count(raw["completion_tokens"]);
  if (prompt === null || output === null) return null;
  const promptDetails = details(raw["prompt_tokens_details"]);
  const completionDetails = details(raw["completion_tokens_details"]);
  const cacheRead = Math.min(count(promptDetails["cached_tokens"]) ?? 0, prompt);
  const cacheWrite = Math.min(count(promptDetails["cache_write_tokens"]) ?? 0, prompt - cacheRead);
  const reasoning = Math.min(count(completionDetails["reasoning_tokens"]) ?? 0, output);
  return { input: prompt - cacheRead - cacheWrite, cacheRead, cacheWrite, output, reasoning };
}

function count(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return null;
  return value >= 0 && value <= TOKENS_MAX ? value : null;
}

function details(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
