import { describe, expect, it } from "vitest";
import { failureObject, failureResponse } from "../../src/http/failure-response.ts";
import type { Failure } from "../../src/lib/failure.ts";
import { micros } from "../../src/lib/money.ts";

type FailureOf = { readonly [F in Failure as F["kind"]]: F };
type Case<F> = readonly [
  failure: F,
  status: number,
  error: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>,
];
/** A kind of failure without a case here does not compile. */
type Cases = { readonly [K in Failure["kind"]]: readonly Case<FailureOf[K]>[] };

const nulls = { param: null, code: null };
const invalid = { type: "invalid_request_error", ...nulls };
const api = { type: "api_error", ...nulls };
const stop = { "x-should-retry": "false" };
const soon = { "retry-after": "1", "x-should-retry": "true" };
const message = "Something is wrong.";
const unavailable = (code: string, retryAfter: string, text: string) =>
  [503, { ...api, code, message: text }, { "retry-after": retryAfter }] as const;

const cases: Cases = {
  invalid_request: [
    [
      { kind: "invalid_request", message, param: "messages[0].role" },
      400,
      { ...invalid, message, param: "messages[0].role" },
    ],
    [
      { kind: "invalid_request", message, param: null, code: "context_length_exceeded" },
      400,
      { ...invalid, message, code: "context_length_exceeded" },
    ],
  ],
  invalid_api_key: [
    [
      { kind: "invalid_api_key" },
      401,
      {
        type: "invalid_api_key",
        ...nulls,
        message:
          "Invalid or missing API key. Send a live key as 'Authorization: Bearer <API_KEY>'.",
      },
      { "www-authenticate": "Bearer" },
    ],
  ],
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
  region_mismatch: [
    [
      { kind: "region_mismatch", home: "eu" },
      403,
      {
        type: "region_mismatch",
        ...nulls,
        message:
          "This regional key works only in its home region 'eu'. Call that region's base address, or use a global key.",
      },
    ],
  ],
  role_required: [
    [
      { kind: "role_required", roles: ["owner", "admin", "billing"] },
      403,
      {
        type: "permission_denied",
        code: "role_required",
        param: null,
        message: "This request needs the role owner, admin or billing in the organization.",
      },
    ],
  ],
  organization_suspended: [
    [
      { kind: "organization_suspended" },
      403,
      {
        type: "permission_denied",
        code: "organization_suspended",
        param: null,
        message: "This organization is suspended. Please contact support.",
      },
    ],
  ],
  not_found: [[{ kind: "not_found", message }, 404, { ...invalid, message }]],
  model_not_found: [
    [
      { kind: "model_not_found", model: "../x" },
      404,
      {
        ...invalid,
        code: "model_not_found",
        param: "model",
        message:
          "The model '../x' does not exist or is not available in this region. GET /v1/models lists the models.",
      },
    ],
    [
      { kind: "model_not_found", model: "m".repeat(1024) },
      404,
      {
        ...invalid,
        code: "model_not_found",
        param: "model",
        message: `The model '${"m".repeat(100)}...' does not exist or is not available in this region. GET /v1/models lists the models.`,
      },
    ],
  ],
  method_not_allowed: [
    [
      { kind: "method_not_allowed", allow: ["GET", "POST"] },
      405,
      { ...invalid, message: "This path answers only GET or POST." },
      { allow: "GET, POST" },
    ],
  ],
  request_timeout: [
    [
      { kind: "request_timeout" },
      408,
      { ...invalid, message: "The request body did not arrive in time." },
    ],
  ],
  conflict: [
    [
      { kind: "conflict", message, param: "slug" },
      409,
      { ...invalid, message, param: "slug" },
      stop,
    ],
    [
      { kind: "conflict", message, param: null, code: "idempotency_replay" },
      409,
      { ...invalid, message, code: "idempotency_replay" },
      stop,
    ],
  ],
  body_too_large: [
    [
      { kind: "body_too_large", bytesMax: 10 },
      413,
      { ...invalid, message: "The request body must be at most 10 bytes." },
    ],
  ],
  unsupported_media_type: [
    [{ kind: "unsupported_media_type", message }, 415, { ...invalid, message }],
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
  upstream_overloaded: (
    [
      [0, "1"],
      [2.2, "3"],
      [59, "59"],
      [3600, "59"],
      [Number.NaN, "1"],
    ] as const
  ).map(([retryAfterSeconds, shown]) => [
    { kind: "upstream_overloaded", retryAfterSeconds },
    ...unavailable(
      "upstream_overloaded",
      shown,
      "The model's providers are overloaded. Please retry.",
    ),
  ]),
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
};

const always = {
  "content-type": "application/json",
  "x-request-id": "req_1",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

describe.each(Object.entries(cases))("%s", (_, rows: readonly Case<Failure>[]) => {
  it.each(rows.map((row) => [row]))("$0", async ([failure, status, error, headers]) => {
    const response = failureResponse(failure, "req_1");
    expect(response.status).toBe(status);
    expect(await response.json()).toStrictEqual({ error });
    expect(Object.fromEntries(response.headers)).toStrictEqual({ ...always, ...headers });
    expect(failureObject(failure)).toStrictEqual(error);
  });
});
