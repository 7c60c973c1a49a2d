import type { RateLimitState } from "../key-status.ts";

const NAMES = {
  requests: {
    limit: "x-ratelimit-limit-requests",
    remaining: "x-ratelimit-remaining-requests",
    reset: "x-ratelimit-reset-requests",
  },
  tokens: {
    limit: "x-ratelimit-limit-tokens",
    remaining: "x-ratelimit-remaining-tokens",
    reset: "x-ratelimit-reset-tokens",
  },
} as const;

export function createRateLimitHeaders(
  { limit, remaining, resetMs }: RateLimitState,
  kind: "requests" | "tokens" = "requests",
): Record<string, string> {
  return {
    [NAMES[kind].limit]: String(limit),
    [NAMES[kind].remaining]: String(remaining),
    [NAMES[kind].reset]: duration(resetMs),
  };
}

export function setRateLimitHeaders(
  headers: Headers,
  state: RateLimitState,
  kind: "requests" | "tokens" = "requests",
): void {
  for (const [name, value] of Object.entries(createRateLimitHeaders(state, kind))) {
    headers.set(name, value);
  }
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
