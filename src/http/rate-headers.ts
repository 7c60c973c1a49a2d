import type { RateState } from "../lib/caller.ts";

/** The key's limit as OpenAI's headers tell it; resets are written `12s`, `1m0s`. */
export function rateHeaders({ limit, remaining, resetMs }: RateState): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": String(limit),
    "x-ratelimit-remaining-requests": String(remaining),
    "x-ratelimit-reset-requests": duration(resetMs),
  };
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
