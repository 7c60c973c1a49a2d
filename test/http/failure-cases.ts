import type { Failure } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";

type FailureOf = { readonly [F in Failure as F["kind"]]: F };
export type Case<F> = readonly [
  failure: F,
  status: number,
  error: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>,
];
/** For every kind of failure what leaves the house: `status`, the `error` object, the headers beyond the usual. */
export type Cases = { readonly [K in Failure["kind"]]: readonly Case<FailureOf[K]>[] };

const nulls = { param: null, code: null };
const invalid = { type: "invalid_request_error", ...nulls };
const stop = { "x-should-retry": "false" };
const message = "Something is wrong.";

/** What the caller can mend. */
export const CALLER_CASES = {
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
    [
      { kind: "invalid_request", message, param: null, isTooLarge: true },
      413,
      { ...invalid, message },
    ],
  ],
  payment_reversed: [
    [
      { kind: "payment_reversed", owedMicro: micros(5) },
      402,
      {
        type: "insufficient_balance",
        code: "payment_reversed",
        param: null,
        owed_micro: 5,
        message:
          "Payments were reversed, and 5 micro-credits are owed. Paid requests are rejected until they are paid. Please add credits.",
      },
      stop,
    ],
    [
      { kind: "payment_reversed", owedMicro: null },
      402,
      {
        type: "insufficient_balance",
        code: "payment_reversed",
        param: null,
        message:
          "Payments for these credits were reversed. Paid requests are rejected until this is settled.",
      },
      stop,
    ],
  ],
  payments_off: [
    [
      { kind: "payments_off" },
      404,
      {
        ...invalid,
        code: "payments_off",
        message:
          "Card payments are disabled in this region. Please ask the operator of this service.",
      },
    ],
  ],
  purchase_limit: [
    [
      { kind: "purchase_limit", why: "first_week", limit: 100, retryAfterMs: 90_500 },
      429,
      {
        type: "rate_limit_exceeded",
        code: "purchase_limit",
        param: null,
        retry_after: 91,
        message:
          "A new organization can't buy more than 100 dollars a day in its first week. Please try again later, or ask the operator of this service.",
      },
      { "retry-after": "91", ...stop },
    ],
  ],
  purchase_in_progress: [
    [
      { kind: "purchase_in_progress", purchaseId: "pur_1" },
      409,
      {
        ...invalid,
        code: "purchase_in_progress",
        purchase_id: "pur_1",
        message:
          "The saved card is being charged for the purchase 'pur_1'. Please wait until it has finished.",
      },
      stop,
    ],
  ],
  idempotency_replay: [
    [
      { kind: "idempotency_replay", made: "generation", id: "req_1" },
      409,
      {
        type: "invalid_request_error",
        code: "idempotency_replay",
        param: "Idempotency-Key",
        generation_id: "req_1",
        message:
          "A request with this Idempotency-Key has already created the generation 'req_1' and doesn't run again. See GET /v1/generations/req_1.",
      },
      stop,
    ],
    [
      { kind: "idempotency_replay", made: "key", id: "key_1" },
      409,
      {
        type: "invalid_request_error",
        code: "idempotency_replay",
        param: "Idempotency-Key",
        key_id: "key_1",
        message:
          "A request with this Idempotency-Key has already created the key 'key_1' and doesn't run again.",
      },
      stop,
    ],
  ],
  idempotency_in_progress: [
    [
      { kind: "idempotency_in_progress" },
      409,
      {
        type: "invalid_request_error",
        code: "idempotency_in_progress",
        param: "Idempotency-Key",
        message: "A request with this Idempotency-Key is still in progress. Please retry after 1s.",
      },
      { "retry-after": "1", "x-should-retry": "true" },
    ],
  ],
  idempotency_mismatch: [
    [
      { kind: "idempotency_mismatch" },
      422,
      {
        type: "invalid_request_error",
        code: "idempotency_mismatch",
        param: "Idempotency-Key",
        message:
          "This Idempotency-Key was used within 24 hours with another path or body. Use a new one.",
      },
      stop,
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
    [
      { kind: "invalid_api_key", twoHeaders: "both" },
      401,
      {
        type: "invalid_api_key",
        ...nulls,
        message:
          "The headers 'Authorization' and 'x-api-key' hold two different API keys. Send one of them.",
      },
      { "www-authenticate": "Bearer" },
    ],
    [
      { kind: "invalid_api_key", expiredAt: Date.UTC(2026, 10, 23) },
      401,
      {
        type: "invalid_api_key",
        ...nulls,
        message: "This API key expired at 2026-11-23T00:00:00.000Z. Please use another key.",
      },
      { "www-authenticate": "Bearer" },
    ],
  ],
  model_not_allowed: [
    [
      { kind: "model_not_allowed", model: "smart" },
      403,
      {
        type: "permission_denied",
        code: "model_not_allowed",
        param: "model",
        message: "This API key can't use the model 'smart'.",
      },
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
  read_only: [
    [
      { kind: "read_only" },
      403,
      {
        type: "permission_denied",
        code: "read_only",
        param: null,
        message: "This session can only view the organization. Leave the view to make changes.",
      },
    ],
  ],
  key_is_limited: [
    [
      { kind: "key_is_limited" },
      403,
      {
        type: "permission_denied",
        code: "key_is_limited",
        param: null,
        message:
          "This API key has limits, so it can only be used for models and paid requests. GET /v1/key shows its limits.",
      },
    ],
  ],
  no_console_session: [
    [
      { kind: "no_console_session" },
      401,
      {
        type: "no_console_session",
        code: null,
        param: null,
        message: "There is no console session, or it has ended. Please log in.",
      },
    ],
  ],
  origin_not_allowed: [
    [
      { kind: "origin_not_allowed" },
      403,
      {
        type: "permission_denied",
        code: "origin_not_allowed",
        param: null,
        message: "This request did not come from the console.",
      },
    ],
  ],
  login_refused: [
    [
      { kind: "login_refused", why: "unknown" },
      403,
      {
        type: "permission_denied",
        code: "login_refused",
        param: null,
        message: "There is no account with this login.",
      },
    ],
  ],
  login_too_old: [
    [
      { kind: "login_too_old" },
      403,
      {
        type: "permission_denied",
        code: "login_too_old",
        param: null,
        message: "This change requires a login within the last ten minutes. Please log in again.",
      },
    ],
  ],
  issuer_unreachable: [
    [
      { kind: "issuer_unreachable" },
      503,
      {
        type: "api_error",
        code: "issuer_unreachable",
        param: null,
        message: "The identity provider does not respond. Please retry.",
      },
      { "retry-after": "1" },
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
      { ...invalid, message: "This path only supports GET or POST." },
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
      { ...invalid, message: "The request body can't exceed 10 bytes." },
    ],
  ],
  unsupported_media_type: [
    [{ kind: "unsupported_media_type", message }, 415, { ...invalid, message }],
  ],
} satisfies Partial<Cases>;
