import { micros } from "../../src/lib/money.ts";
import type { Cases } from "./failure-cases.ts";

const nulls = { param: null, code: null };
const api = { type: "api_error", ...nulls };
const stop = { "x-should-retry": "false" };
const soon = { "retry-after": "1", "x-should-retry": "true" };
const unavailable = (code: string, retryAfter: string, text: string) =>
  [503, { ...api, code, message: text }, { "retry-after": retryAfter }] as const;

/** Money, limits and our own failures: what passes with time or credits. */
export const LIMIT_CASES = {
  balance_too_low: [
    [
      {
        kind: "balance_too_low",
        balanceMicro: micros(20),
        requiredMicro: micros(30),
        onlyHolds: false,
      },
      402,
      {
        type: "insufficient_balance",
        ...nulls,
        message:
          "This request needs at least 30 micro-credits and 20 are free. Please add credits.",
        balance_micro: 20,
        required_micro: 30,
      },
      stop,
    ],
    [
      {
        kind: "balance_too_low",
        balanceMicro: micros(0),
        requiredMicro: micros(1),
        onlyHolds: true,
      },
      402,
      {
        type: "insufficient_balance",
        ...nulls,
        message:
          "This request needs at least 1 micro-credits and 0 are free. Open requests hold the rest of the balance. Please retry after 1s.",
        balance_micro: 0,
        required_micro: 1,
      },
      soon,
    ],
  ],
  rate_limited: [
    [
      { kind: "rate_limited", scope: "key", limit: 60, retryAfterMs: 11_001 },
      429,
      {
        type: "rate_limit_exceeded",
        ...nulls,
        message:
          "Rate limit of 60 requests per minute for this API key reached. Please retry after 12s.",
        retry_after: 12,
      },
      {
        "retry-after": "12",
        "retry-after-ms": "11001",
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "12s",
      },
    ],
    ...(
      [
        [-5, "1", "1"],
        [0, "1", "1"],
        [999, "1", "999"],
        [60_000, "60", "60000"],
        [86_400_000, "60", "60000"],
        [Number.NaN, "1", "1"],
      ] as const
    ).map(
      ([retryAfterMs, seconds, ms]) =>
        [
          { kind: "rate_limited", scope: "organization", limit: 5, retryAfterMs },
          429,
          {
            type: "rate_limit_exceeded",
            ...nulls,
            message: `Rate limit of 5 requests per minute for your organization reached. Please retry after ${seconds}s.`,
            retry_after: Number(seconds),
          },
          { "retry-after": seconds, "retry-after-ms": ms },
        ] as const,
    ),
  ],
  quota_exceeded: [
    [
      { kind: "quota_exceeded", period: "day", onlyHolds: false },
      429,
      {
        ...api,
        code: "end_user_quota_exceeded",
        message:
          "You exceeded your current daily quota for this end user. Raise the quota, wait for its reset at midnight UTC, or omit 'user'.",
      },
      stop,
    ],
    [
      { kind: "quota_exceeded", period: "month", onlyHolds: false },
      429,
      {
        ...api,
        code: "end_user_quota_exceeded",
        message:
          "You exceeded your current monthly quota for this end user. Raise the quota, wait for its reset at the 1st of the month, UTC, or omit 'user'.",
      },
      stop,
    ],
    [
      { kind: "quota_exceeded", period: "month", onlyHolds: true },
      429,
      {
        ...api,
        code: "end_user_quota_exceeded",
        message:
          "Open requests hold what is left of this end user's monthly quota. Please retry after 1s.",
      },
      soon,
    ],
  ],
  too_many_end_users: [
    [
      { kind: "too_many_end_users" },
      429,
      {
        ...api,
        code: "too_many_end_users",
        message:
          "Your organization has as many end users as it may have. Delete some, or omit 'user' for new ones.",
      },
      stop,
    ],
  ],
  internal: [
    [
      { kind: "internal" },
      500,
      {
        ...api,
        message: "Internal error. Please quote the X-Request-Id when contacting support.",
      },
    ],
  ],
  upstream_error: [
    [
      { kind: "upstream_error" },
      502,
      {
        type: "upstream_error",
        ...nulls,
        message: "The model's provider failed to answer this request. Please retry.",
      },
    ],
  ],
  upstream_overloaded: [
    upstreamOverloaded(0, "1"),
    upstreamOverloaded(2.2, "3"),
    upstreamOverloaded(59, "59"),
    upstreamOverloaded(3600, "59"),
    upstreamOverloaded(Number.NaN, "1"),
  ],
  home_region_unreachable: [
    [
      { kind: "home_region_unreachable" },
      ...unavailable(
        "home_region_unreachable",
        "1",
        "The key's home region cannot be reached. Please retry, or call the home region directly.",
      ),
    ],
  ],
  overloaded: [
    [
      { kind: "overloaded" },
      ...unavailable("overloaded", "1", "The service is overloaded. Please retry."),
    ],
  ],
  storage_unavailable: [
    [
      { kind: "storage_unavailable" },
      ...unavailable(
        "storage_unavailable",
        "1",
        "The service's storage is unavailable. Please retry.",
      ),
    ],
  ],
  misconfigured: [
    [
      { kind: "misconfigured" },
      ...unavailable("misconfigured", "30", "The service is not set up correctly."),
    ],
  ],
} satisfies Partial<Cases>;

function upstreamOverloaded(
  retryAfterSeconds: number,
  shown: string,
): Cases["upstream_overloaded"][number] {
  const text = "The model's providers are overloaded. Please retry.";
  return [
    { kind: "upstream_overloaded", retryAfterSeconds },
    ...unavailable("upstream_overloaded", shown, text),
  ];
}
