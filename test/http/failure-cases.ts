import type { Failure } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";

type FailureOf = { readonly [F in Failure as F["kind"]]: F };
export type Case<F> = readonly [
  failure: F,
  status: number,
  error: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>,
];
/** The response to every kind of failure: `status`, the `error` object, and additional headers. */
export type Cases = { readonly [K in Failure["kind"]]: readonly Case<FailureOf[K]>[] };

/** The `error` object of a response. */
export const error = (type: string, code: string | null, text: string, more: object = {}) => ({
  type,
  code,
  param: null,
  message: text,
  ...more,
});

const stop = { "x-should-retry": "false" };
const message = "Something is wrong.";

/** Failures that the caller can fix. */
export const CALLER_CASES = {
  invalid_request: [
    [
      { kind: "invalid_request", message, param: "messages[0].role" },
      400,
      error("invalid_request_error", null, message, { param: "messages[0].role" }),
    ],
    [
      { kind: "invalid_request", message, param: null, code: "context_length_exceeded" },
      400,
      error("invalid_request_error", "context_length_exceeded", message),
    ],
    [
      { kind: "invalid_request", message, param: null, isTooLarge: true },
      413,
      error("invalid_request_error", null, message),
    ],
  ],
  payment_reversed: [
    [
      { kind: "payment_reversed", owedMicro: micros(5) },
      402,
      error(
        "insufficient_balance",
        "payment_reversed",
        "Payments were reversed, so you owe 5 micro-credits. Paid requests are rejected until this debt is repaid. Please add credits.",
        { owed_micro: 5 },
      ),
      stop,
    ],
    [
      { kind: "payment_reversed", owedMicro: null },
      402,
      error(
        "insufficient_balance",
        "payment_reversed",
        "Payments for these credits were reversed. Paid requests are rejected until the reversal is resolved.",
      ),
      stop,
    ],
  ],
  payments_off: [
    [
      { kind: "payments_off" },
      404,
      error(
        "invalid_request_error",
        "payments_off",
        "Card payments are disabled in this region. Please ask the operator of this service.",
      ),
    ],
  ],
  purchase_limit: [
    [
      { kind: "purchase_limit", why: "first_week", limit: 100, retryAfterMs: 90_500 },
      429,
      error(
        "rate_limit_exceeded",
        "purchase_limit",
        "A new organization can't buy more than 100 dollars a day in its first week. Please try again later, or ask the operator of this service.",
        { retry_after: 91 },
      ),
      { "retry-after": "91", ...stop },
    ],
  ],
  purchase_in_progress: [
    [
      { kind: "purchase_in_progress", purchaseId: "pur_1" },
      409,
      error(
        "invalid_request_error",
        "purchase_in_progress",
        "The saved card is being charged for the purchase 'pur_1'. Please wait until the charge has finished.",
        { purchase_id: "pur_1" },
      ),
      stop,
    ],
  ],
  idempotency_replay: [
    [
      { kind: "idempotency_replay", made: "generation", id: "req_1" },
      409,
      error(
        "invalid_request_error",
        "idempotency_replay",
        "This Idempotency-Key was already used to create the generation 'req_1', so the request doesn't run again. See GET /v1/generations/req_1.",
        { param: "Idempotency-Key", generation_id: "req_1" },
      ),
      stop,
    ],
    [
      { kind: "idempotency_replay", made: "key", id: "key_1" },
      409,
      error(
        "invalid_request_error",
        "idempotency_replay",
        "This Idempotency-Key was already used to create the key 'key_1', so the request doesn't run again.",
        { param: "Idempotency-Key", key_id: "key_1" },
      ),
      stop,
    ],
  ],
  idempotency_in_progress: [
    [
      { kind: "idempotency_in_progress" },
      409,
      error(
        "invalid_request_error",
        "idempotency_in_progress",
        "A request with this Idempotency-Key is still in progress. Please retry after 1s.",
        { param: "Idempotency-Key" },
      ),
      { "retry-after": "1", "x-should-retry": "true" },
    ],
  ],
  idempotency_mismatch: [
    [
      { kind: "idempotency_mismatch" },
      422,
      error(
        "invalid_request_error",
        "idempotency_mismatch",
        "This Idempotency-Key was used in the last 24 hours with another path or body. Use a new key.",
        { param: "Idempotency-Key" },
      ),
      stop,
    ],
  ],
  invalid_api_key: [
    [
      { kind: "invalid_api_key" },
      401,
      error(
        "invalid_api_key",
        null,
        "Invalid or missing API key. Send an active key as 'Authorization: Bearer <API_KEY>'.",
      ),
      { "www-authenticate": "Bearer" },
    ],
    [
      { kind: "invalid_api_key", twoHeaders: "both" },
      401,
      error(
        "invalid_api_key",
        null,
        "The headers 'Authorization' and 'x-api-key' contain two different API keys. Send only one of them.",
      ),
      { "www-authenticate": "Bearer" },
    ],
    [
      { kind: "invalid_api_key", expiredAt: Date.UTC(2026, 10, 23) },
      401,
      error(
        "invalid_api_key",
        null,
        "This API key expired at 2026-11-23T00:00:00.000Z. Please use another key.",
      ),
      { "www-authenticate": "Bearer" },
    ],
  ],
  model_not_allowed: [
    [
      { kind: "model_not_allowed", model: "smart" },
      403,
      error("permission_denied", "model_not_allowed", "This API key can't use the model 'smart'.", {
        param: "model",
      }),
    ],
  ],
  region_mismatch: [
    [
      { kind: "region_mismatch", home: "eu" },
      403,
      error(
        "region_mismatch",
        null,
        "This regional key works only in its home region 'eu'. Use that region's base URL, or use a global key.",
      ),
    ],
  ],
  role_required: [
    [
      { kind: "role_required", roles: ["owner", "admin", "billing"] },
      403,
      error(
        "permission_denied",
        "role_required",
        "This request requires the role owner, admin or billing in the organization.",
      ),
    ],
  ],
  read_only: [
    [
      { kind: "read_only" },
      403,
      error(
        "permission_denied",
        "read_only",
        "This session can only view the organization. Exit the session to make changes.",
      ),
    ],
  ],
  key_is_limited: [
    [
      { kind: "key_is_limited" },
      403,
      error(
        "permission_denied",
        "key_is_limited",
        "This API key has limits, so it can only call models and make paid requests. GET /v1/key shows its limits.",
      ),
    ],
  ],
  no_console_session: [
    [
      { kind: "no_console_session" },
      401,
      error(
        "no_console_session",
        null,
        "You aren't logged in, or your console session has ended. Please log in.",
      ),
    ],
  ],
  origin_not_allowed: [
    [
      { kind: "origin_not_allowed" },
      403,
      error(
        "permission_denied",
        "origin_not_allowed",
        "This request did not come from the console.",
      ),
    ],
  ],
  login_refused: [
    [
      { kind: "login_refused", why: "unknown" },
      403,
      error("permission_denied", "login_refused", "No account has this login."),
    ],
  ],
  login_too_old: [
    [
      { kind: "login_too_old" },
      403,
      error(
        "permission_denied",
        "login_too_old",
        "This change requires a login within the last ten minutes. Please log in again.",
      ),
    ],
  ],
  issuer_unreachable: [
    [
      { kind: "issuer_unreachable" },
      503,
      error(
        "api_error",
        "issuer_unreachable",
        "The identity provider does not respond. Please retry.",
      ),
      { "retry-after": "1" },
    ],
  ],
  organization_suspended: [
    [
      { kind: "organization_suspended" },
      403,
      error(
        "permission_denied",
        "organization_suspended",
        "This organization is suspended. Please contact support.",
      ),
    ],
  ],
  not_found: [[{ kind: "not_found", message }, 404, error("invalid_request_error", null, message)]],
  model_not_found: [
    [
      { kind: "model_not_found", model: "../x" },
      404,
      error(
        "invalid_request_error",
        "model_not_found",
        "The model '../x' does not exist or is not available in this region. GET /v1/models lists the models.",
        { param: "model" },
      ),
    ],
    [
      { kind: "model_not_found", model: "m".repeat(1024) },
      404,
      error(
        "invalid_request_error",
        "model_not_found",
        `The model '${"m".repeat(100)}...' does not exist or is not available in this region. GET /v1/models lists the models.`,
        { param: "model" },
      ),
    ],
  ],
  method_not_allowed: [
    [
      { kind: "method_not_allowed", allow: ["GET", "POST"] },
      405,
      error("invalid_request_error", null, "This path only supports GET or POST."),
      { allow: "GET, POST" },
    ],
  ],
  request_timeout: [
    [
      { kind: "request_timeout" },
      408,
      error("invalid_request_error", null, "The request body did not arrive in time."),
    ],
  ],
  conflict: [
    [
      { kind: "conflict", message, param: "slug" },
      409,
      error("invalid_request_error", null, message, { param: "slug" }),
      stop,
    ],
    [
      { kind: "conflict", message, param: null, code: "idempotency_replay" },
      409,
      error("invalid_request_error", "idempotency_replay", message),
      stop,
    ],
  ],
  body_too_large: [
    [
      { kind: "body_too_large", bytesMax: 10 },
      413,
      error("invalid_request_error", null, "The request body can't exceed 10 bytes."),
    ],
  ],
  unsupported_media_type: [
    [
      { kind: "unsupported_media_type", message },
      415,
      error("invalid_request_error", null, message),
    ],
  ],
} satisfies Partial<Cases>;
