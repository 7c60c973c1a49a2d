import type { RateState } from "../lib/caller.ts";

/** What is left of the key's requests or tokens, as OpenAI's headers tell it; resets are written `12s`, `1m0s`. */
export function rateHeaders(
  { limit, remaining, resetMs }: RateState,
  what: "requests" | "tokens" = "requests",
): Record<string, string> {
  return {
    [`x-ratelimit-limit-${what}`]: String(limit),
    [`x-ratelimit-remaining-${what}`]: String(remaining),
    [`x-ratelimit-reset-${what}`]: duration(resetMs),
  };
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
