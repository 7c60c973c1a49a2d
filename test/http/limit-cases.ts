import { micros } from "../../src/shared/money.ts";
import { BUDGET_CASES } from "./budget-cases.ts";
import { error } from "./failure-cases.ts";
import type { Cases } from "./failure-cases.ts";
import { POLICY_CASES } from "./policy-cases.ts";

const stop = { "x-should-retry": "false" };
const soon = { "retry-after": "1", "x-should-retry": "true" };
const unavailable = (code: string, retryAfter: string, text: string) =>
  [503, error("api_error", code, text), { "retry-after": retryAfter }] as const;

/** Failures because of credits and limits, and our own failures. */
export const LIMIT_CASES = {
  hold_not_allowed: [
    [
      { kind: "hold_not_allowed" },
      403,
      error(
        "permission_denied",
        "hold_not_allowed",
        "This API key can't place holds. Use a key or session with 'may_hold'.",
      ),
    ],
    [
      { kind: "hold_not_allowed", owner: "merchant" },
      403,
      error(
        "permission_denied",
        "hold_not_allowed",
        "Only the merchant of this hold can capture or release it.",
      ),
    ],
  ],
  ...POLICY_CASES,
  balance_too_low: [
    [
      {
        kind: "balance_too_low",
        balanceMicro: micros(20),
        heldMicro: micros(5),
        requiredMicro: micros(30),
        onlyHolds: false,
      },
      402,
      error(
        "insufficient_balance",
        null,
        "Insufficient credits: this request needs at least 30 micro-credits and the balance is 20. Please add credits.",
        { balance_micro: 20, required_micro: 30 },
      ),
      stop,
    ],
    [
      {
        kind: "balance_too_low",
        balanceMicro: micros(9),
        heldMicro: micros(8),
        requiredMicro: micros(2),
        onlyHolds: true,
      },
      402,
      error(
        "insufficient_balance",
        null,
        "This request needs at least 2 micro-credits. The balance is 9, of which 8 are held by requests in progress. Please retry after 1s.",
        { balance_micro: 9, required_micro: 2, held_micro: 8 },
      ),
      soon,
    ],
  ],
  ...BUDGET_CASES,
  key_budget_exceeded: [
    [
      {
        kind: "key_budget_exceeded",
        period: "week",
        budgetMicro: micros(100),
        leftMicro: micros(3),
        heldMicro: micros(0),
        requiredMicro: micros(4),
        resetsAt: Date.UTC(2026, 10, 23),
        onlyHolds: false,
      },
      402,
      error(
        "insufficient_balance",
        "key_budget_exceeded",
        "Insufficient credits: the weekly budget of this API key has 3 of 100 micro-credits left, and this request needs at least 4. The budget resets at 2026-11-23T00:00:00.000Z.",
        {
          budget_micro: 100,
          balance_micro: 3,
          left_micro: 3,
          required_micro: 4,
          resets_at: "2026-11-23T00:00:00.000Z",
        },
      ),
      stop,
    ],
    [
      {
        kind: "key_budget_exceeded",
        period: null,
        budgetMicro: micros(100),
        leftMicro: micros(0),
        heldMicro: micros(0),
        requiredMicro: micros(4),
        resetsAt: null,
        onlyHolds: false,
      },
      402,
      error(
        "insufficient_balance",
        "key_budget_exceeded",
        "Insufficient credits: the budget of this API key has 0 of 100 micro-credits left, and this request needs at least 4. The budget does not reset.",
        { budget_micro: 100, balance_micro: 0, left_micro: 0, required_micro: 4 },
      ),
      stop,
    ],
    [
      {
        kind: "key_budget_exceeded",
        period: "day",
        budgetMicro: micros(100),
        leftMicro: micros(50),
        heldMicro: micros(48),
        requiredMicro: micros(4),
        resetsAt: Date.UTC(2026, 10, 23),
        onlyHolds: true,
      },
      402,
      error(
        "insufficient_balance",
        "key_budget_exceeded",
        "The daily budget of this API key has 50 of 100 micro-credits left, 48 held by requests in progress, and this request needs at least 4. Please retry after 1s.",
        {
          budget_micro: 100,
          balance_micro: 50,
          left_micro: 50,
          required_micro: 4,
          held_micro: 48,
          resets_at: "2026-11-23T00:00:00.000Z",
        },
      ),
      soon,
    ],
  ],
  tokens_limited: [
    [
      { kind: "tokens_limited", limit: 500, remaining: 20, required: 30, retryAfterMs: 1500 },
      429,
      error(
        "rate_limit_exceeded",
        "tokens",
        "Rate limit of 500 tokens per minute for this API key reached: 20 tokens are left, and this request may use up to 30. Please retry after 2s.",
        { retry_after: 2 },
      ),
      {
        "retry-after": "2",
        "retry-after-ms": "1500",
        "x-ratelimit-limit-tokens": "500",
        "x-ratelimit-remaining-tokens": "20",
        "x-ratelimit-reset-tokens": "2s",
      },
    ],
  ],
  tokens_over_limit: [
    [
      { kind: "tokens_over_limit", limit: 500, prompt: 20, required: 600 },
      400,
      error(
        "invalid_request_error",
        "tokens",
        "This request may use 600 tokens, including 20 prompt tokens, which exceeds this API key's limit of 500 per minute. Send a shorter prompt or a lower output limit.",
        { param: "max_tokens" },
      ),
    ],
    [
      { kind: "tokens_over_limit", limit: 500, prompt: 700, required: 764 },
      400,
      error(
        "invalid_request_error",
        "tokens",
        "This request may use 764 tokens, including 700 prompt tokens, which exceeds this API key's limit of 500 per minute. Send a shorter prompt or a lower output limit.",
      ),
    ],
  ],
  rate_limited: [
    [
      { kind: "rate_limited", scope: "key", limit: 60, retryAfterMs: 11_001 },
      429,
      error(
        "rate_limit_exceeded",
        null,
        "Rate limit of 60 requests per minute for this API key reached. Please retry after 12s.",
        { retry_after: 12 },
      ),
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
          error(
            "rate_limit_exceeded",
            null,
            `Rate limit of 5 requests per minute for your organization reached. Please retry after ${seconds}s.`,
            { retry_after: Number(seconds) },
          ),
          { "retry-after": seconds, "retry-after-ms": ms },
        ] as const,
    ),
  ],
  quota_exceeded: [
    [
      {
        kind: "quota_exceeded",
        period: "day",
        quotaMicro: micros(100),
        leftMicro: micros(3),
        heldMicro: micros(1),
        requiredMicro: micros(4),
        resetsAt: Date.UTC(2026, 10, 23),
        onlyHolds: false,
      },
      429,
      error(
        "api_error",
        "end_user_quota_exceeded",
        "You exceeded your current daily quota for this end user: it has 3 of 100 micro-credits left, and this request needs at least 4. Raise the quota, wait for its reset at 2026-11-23T00:00:00.000Z, or omit 'user'.",
        {
          quota_micro: 100,
          left_micro: 3,
          required_micro: 4,
          resets_at: "2026-11-23T00:00:00.000Z",
        },
      ),
      stop,
    ],
    [
      {
        kind: "quota_exceeded",
        period: "month",
        quotaMicro: micros(100),
        leftMicro: micros(100),
        heldMicro: micros(97),
        requiredMicro: micros(4),
        resetsAt: Date.UTC(2026, 11, 1),
        onlyHolds: true,
      },
      429,
      error(
        "api_error",
        "end_user_quota_exceeded",
        "The monthly quota of this end user has 100 of 100 micro-credits left, 97 held by requests in progress, and this request needs at least 4. Please retry after 1s.",
        {
          quota_micro: 100,
          left_micro: 100,
          required_micro: 4,
          held_micro: 97,
          resets_at: "2026-12-01T00:00:00.000Z",
        },
      ),
      soon,
    ],
  ],
  too_many_end_users: [
    [
      { kind: "too_many_end_users" },
      429,
      error(
        "api_error",
        "too_many_end_users",
        "Your organization has the maximum number of end users. Delete some, or omit 'user' for new ones.",
      ),
      stop,
    ],
  ],
  internal: [
    [
      { kind: "internal" },
      500,
      error(
        "api_error",
        null,
        "Internal error. Please quote the X-Request-Id when contacting support.",
      ),
    ],
  ],
  upstream_error: [
    [
      { kind: "upstream_error" },
      502,
      error(
        "upstream_error",
        null,
        "The model's provider failed to answer this request. Please retry.",
      ),
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
        "The key's home region can't be reached. Please retry, or call the home region directly.",
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
  prices_unavailable: [
    [
      { kind: "prices_unavailable" },
      ...unavailable("prices_unavailable", "1", "The price lists can't be read. Please retry."),
    ],
  ],
  price_list_differs: [
    [
      { kind: "price_list_differs", list: "partners" },
      ...unavailable("overloaded", "1", "The organization's prices are changing. Please retry."),
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
