import type { RateLimitState } from "../key-status.ts";

export function createRateLimitHeaders(
  { limit, remaining, resetMs }: RateLimitState,
  kind: "requests" | "tokens" = "requests",
): Record<string, string> {
  return {
    [`x-ratelimit-limit-${kind}`]: String(limit),
    [`x-ratelimit-remaining-${kind}`]: String(remaining),
    [`x-ratelimit-reset-${kind}`]: duration(resetMs),
  };
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
