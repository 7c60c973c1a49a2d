import { promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";

const TOKENS_MAX = 1_000_000_000;

export function tokenCount(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return null;
  return value >= 0 && value <= TOKENS_MAX ? value : null;
}

/** Returns a token count. Returns 0 if it is absent, and null if it is invalid. */
export function countOrZero(value: unknown): number | null {
  return tokenCount(value ?? 0);
}

export function countedUsage(usage: Usage | null): Usage | null {
  return usage === null || promptTokens(usage) === 0 ? null : usage;
}
