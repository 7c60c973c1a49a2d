import { promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";

/** No honest answer counts more; above it a number is noise, and prices times it must stay exact. */
const TOKENS_MAX = 1_000_000_000;

/** A whole number of tokens as an upstream reports it, or null for anything else. */
export function tokenCount(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return null;
  return value >= 0 && value <= TOKENS_MAX ? value : null;
}

/** The same, 0 where nothing is said. */
export function countOrZero(value: unknown): number | null {
  return tokenCount(value ?? 0);
}

/** Usage without a prompt is null, so that it is estimated: such zeros say that nobody counted. */
export function countedUsage(usage: Usage | null): Usage | null {
  return usage === null || promptTokens(usage) === 0 ? null : usage;
}
