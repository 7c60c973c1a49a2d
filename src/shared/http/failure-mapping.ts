import type { FailureCharge, Failure } from "../failure.ts";
import { timestamp } from "../clock.ts";
import { unknownModelMessage, joinWithOr } from "../issue-text.ts";
import {
  DO_NOT_RETRY,
  RETRY_SOON,
  forbiddenResponse,
  invalidRequestResponse,
} from "./error-response.ts";
import type { ErrorResponse, FailureOfKind } from "./error-response.ts";
import {
  BUDGET_ERROR_RESPONSES,
  PAYMENT_ERROR_RESPONSES,
  adviseToAddCredits,
} from "./money-errors.ts";
import { LOGIN_ERROR_RESPONSES, POLICY_ERROR_RESPONSES } from "./access-errors.ts";
import { createRateLimitHeaders } from "./rate-headers.ts";

type Kind = Failure["kind"];
type ErrorResponses = { readonly [K in Kind]: (failure: FailureOfKind<K>) => ErrorResponse };

export function errorResponseOf(failure: Failure): ErrorResponse {
  const errorResponse = errorResponseOfKind(failure.kind, failure);
  return failure.charged === undefined ? errorResponse : addCharge(errorResponse, failure.charged);
}

const PLEASE_RETRY = / Please retry\.$/;

/** Adds the charge to an error response, and forbids retries, which would be charged again. */
function addCharge(
  errorResponse: ErrorResponse,
  { costMicro, generationId }: FailureCharge,
): ErrorResponse {
  const { "retry-after": _, ...headers } = errorResponse.headers ?? {};
  const message = errorResponse.message.replace(PLEASE_RETRY, "");
  return {
    ...errorResponse,
    message: errorResponse.status < 500 ? message : `${message} ${CHARGED_MESSAGE}`,
    extra: { ...errorResponse.extra, generation_id: generationId, cost_micro: costMicro },
    headers: { ...headers, ...DO_NOT_RETRY, "x-cost-micro": String(costMicro) },
  };
}

const CHARGED_MESSAGE = "The usage so far was charged. A retry will be charged again.";

const GENERAL_TYPES = new Set(["invalid_request_error", "api_error", "permission_denied"]);
const DOCUMENTED_CODES = new Set([
  "context_length_exceeded",
  "content_filter",
  "previous_response_not_found",
]);

export function errorDocsAnchorOf(failure: Failure): string {
  const { code, type } = errorResponseOf(failure);
  const isOwn = failure.kind !== "invalid_request" || DOCUMENTED_CODES.has(code ?? "");
  return (isOwn ? code : undefined) ?? (GENERAL_TYPES.has(type) ? failure.kind : type);
}

function errorResponseOfKind<K extends Kind>(kind: K, failure: FailureOfKind<K>): ErrorResponse {
  return ERROR_RESPONSES[kind](failure);
}

const RETRY_AFTER_TOP_UP = { "retry-after": "5", "x-should-retry": "true" };

const RETRY_AFTER_MAX_S = 60;
const OVERLOAD_RETRY_MAX_S = 59;
const MISCONFIGURED_RETRY_S = 30;

const ERROR_RESPONSES: ErrorResponses = {
  invalid_request: ({ isTooLarge, message, param, code }) =>
    invalidRequestResponse(isTooLarge === true ? 413 : 400, message, { param, ...codeField(code) }),
  // Guessing keys reveals nothing, because all other invalid keys get the same response.
  invalid_api_key: ({ expiredAt, twoHeaders }) => ({
    status: 401,
    type: "invalid_api_key",
    message:
      expiredAt === undefined
        ? ((twoHeaders && TWO_KEYS_MESSAGES[twoHeaders]) ??
          "Invalid or missing API key. Send an active key as 'Authorization: Bearer <API_KEY>'.")
        : `This API key expired at ${timestamp(expiredAt)}. Please use another key.`,
    headers: { "www-authenticate": "Bearer" },
  }),
  balance_too_low: balanceTooLow,
  ...PAYMENT_ERROR_RESPONSES,
  ...BUDGET_ERROR_RESPONSES,
  ...POLICY_ERROR_RESPONSES,
  region_mismatch: ({ home }) => ({
    status: 403,
    type: "region_mismatch",
    message: `This regional key works only in its home region '${home}'. Use that region's base URL, or use a global key.`,
  }),
  role_required: ({ roles }) =>
    forbiddenResponse(
      "role_required",
      `This request requires the role ${joinWithOr(roles)} in the organization.`,
    ),
  key_is_limited: () =>
    forbiddenResponse(
      "key_is_limited",
      "This API key has limits, so it can only call models and make paid requests. GET /v1/key shows its limits.",
    ),
  ...LOGIN_ERROR_RESPONSES,
  organization_suspended: () =>
    forbiddenResponse(
      "organization_suspended",
      "This organization is suspended. Please contact support.",
    ),
  not_found: ({ message }) => invalidRequestResponse(404, message),
  model_not_found: ({ model, message = unknownModelMessage(model) }) =>
    invalidRequestResponse(404, message, { param: "model", code: "model_not_found" }),
  method_not_allowed: ({ allow }) =>
    invalidRequestResponse(405, `This path only supports ${joinWithOr(allow)}.`, {
      headers: { allow: allow.join(", ") },
    }),
  request_timeout: () => invalidRequestResponse(408, "The request body did not arrive in time."),
  conflict: ({ message, param, code }) =>
    invalidRequestResponse(409, message, { param, ...codeField(code), headers: DO_NOT_RETRY }),
  idempotency_replay: ({ made, id }) =>
    invalidRequestResponse(409, replayMessage(made, id), {
      param: IDEMPOTENCY_KEY,
      code: "idempotency_replay",
      extra: { [`${made}_id`]: id },
      headers: DO_NOT_RETRY,
    }),
  idempotency_in_progress: () =>
    invalidRequestResponse(
      409,
      "A request with this Idempotency-Key is still in progress. Please retry after 1s.",
      { param: IDEMPOTENCY_KEY, code: "idempotency_in_progress", headers: RETRY_SOON },
    ),
  idempotency_mismatch: () =>
    invalidRequestResponse(
      422,
      "This Idempotency-Key was used in the last 24 hours with another path or body. Use a new key.",
      { param: IDEMPOTENCY_KEY, code: "idempotency_mismatch", headers: DO_NOT_RETRY },
    ),
  body_too_large: ({ bytesMax }) =>
    invalidRequestResponse(413, `The request body can't exceed ${bytesMax} bytes.`),
  unsupported_media_type: ({ message }) => invalidRequestResponse(415, message),
  rate_limited: rateLimited,
  concurrency_limited: ({ scope, limit }) => ({
    status: 429,
    type: "rate_limit_exceeded",
    code: "concurrency_limit_exceeded",
    message:
      limit === null
        ? "The key or organization that pays for this session has too many requests in progress. Please retry after 1s."
        : `Limit of ${limit} concurrent requests for ${LIMIT_OWNERS[scope]} reached. Please retry after 1s.`,
    headers: RETRY_SOON,
  }),
  tokens_limited: tokensLimited,
  tokens_over_limit: ({ limit, prompt, required, param = "max_tokens" }) =>
    invalidRequestResponse(
      400,
      `This request may use ${required} tokens, including ${prompt} prompt tokens, which exceeds this API key's limit of ${limit} per minute. Send a shorter prompt or a lower output limit.`,
      { param: prompt < limit ? param : null, code: "tokens" },
    ),
  too_many_end_users: () => ({
    status: 429,
    type: "api_error",
    code: "too_many_end_users",
    message:
      "Your organization has the maximum number of end users. Delete some, or omit 'user' for new ones.",
    headers: DO_NOT_RETRY,
  }),
  internal: () => ({
    status: 500,
    type: "api_error",
    message: "Internal error. Please quote the X-Request-Id when contacting support.",
  }),
  upstream_error: () => ({
    status: 502,
    type: "upstream_error",
    message: "The model's provider failed to answer this request. Please retry.",
  }),
  upstream_overloaded: ({ retryAfterSeconds }) =>
    unavailableResponse(
      "upstream_overloaded",
      "The model's providers are overloaded. Please retry.",
      clamp(Math.ceil(retryAfterSeconds), OVERLOAD_RETRY_MAX_S),
    ),
  home_region_unreachable: () =>
    unavailableResponse(
      "home_region_unreachable",
      "The key's home region can't be reached. Please retry, or call the home region directly.",
    ),
  overloaded: () => unavailableResponse("overloaded", "The service is overloaded. Please retry."),
  storage_unavailable: () =>
    unavailableResponse(
      "storage_unavailable",
      "The service's storage is unavailable. Please retry.",
    ),
  prices_unavailable: () =>
    unavailableResponse("prices_unavailable", "The price lists can't be read. Please retry."),
  price_list_differs: () =>
    unavailableResponse("overloaded", "The organization's prices are changing. Please retry."),
  candidates_required: () =>
    unavailableResponse("overloaded", "The organization's policy is changing. Please retry."),
  misconfigured: () =>
    unavailableResponse(
      "misconfigured",
      "The service is not set up correctly.",
      MISCONFIGURED_RETRY_S,
    ),
};

const TWO_KEYS_MESSAGES = {
  both: "The headers 'Authorization' and 'x-api-key' contain two different API keys. Send only one of them.",
  authorization:
    "Invalid API key in 'Authorization', and 'x-api-key' is not a key of this service. Send one active key.",
  "x-api-key":
    "Invalid API key in 'x-api-key', and 'Authorization' is not a key of this service. Send one active key.",
};

function balanceTooLow(failure: FailureOfKind<"balance_too_low">): ErrorResponse {
  const { balanceMicro, heldMicro, requiredMicro, onlyHolds, purchaseId } = failure;
  const isSession = failure.session === true;
  const hint = isSession || purchaseId === undefined ? DO_NOT_RETRY : RETRY_AFTER_TOP_UP;
  return {
    status: 402,
    type: "insufficient_balance",
    message: isSession ? sessionBalanceMessage(failure) : balanceMessage(failure),
    extra: {
      balance_micro: balanceMicro,
      required_micro: requiredMicro,
      ...(onlyHolds && { held_micro: heldMicro }),
      ...(!onlyHolds && !isSession && purchaseId !== undefined && { purchase_id: purchaseId }),
    },
    headers: onlyHolds ? RETRY_SOON : hint,
  };
}

function balanceMessage(failure: FailureOfKind<"balance_too_low">): string {
  const { balanceMicro, heldMicro, requiredMicro, onlyHolds, purchaseId } = failure;
  return onlyHolds
    ? `This request needs at least ${requiredMicro} micro-credits. The balance is ${balanceMicro}, of which ${heldMicro} are held by requests in progress. Please retry after 1s.`
    : `Insufficient credits: this request needs at least ${requiredMicro} micro-credits and the balance is ${balanceMicro}. ${adviseToAddCredits(purchaseId)}`;
}

/** Returns a session's error message, which omits the organization's amounts. */
function sessionBalanceMessage({
  requiredMicro,
  onlyHolds,
}: FailureOfKind<"balance_too_low">): string {
  return onlyHolds
    ? `This request needs at least ${requiredMicro} micro-credits, which are held by requests in progress. Please retry after 1s.`
    : `Insufficient credits: this request needs at least ${requiredMicro} micro-credits, but the key or organization that pays for this session has fewer left.`;
}

const LIMIT_OWNERS = {
  key: "this API key",
  session: "this session",
  organization: "your organization",
  console: "this console session",
  login: "logins",
  webhook_tests: "tests of this webhook",
  export: "exports of your data",
};
const EXPORT_RETRY_AFTER_MAX_S = 600;

function rateLimited({
  scope,
  limit,
  retryAfterMs,
  orgId,
}: FailureOfKind<"rate_limited">): ErrorResponse {
  const [span, secondsMax] =
    scope === "export"
      ? (["10 minutes", EXPORT_RETRY_AFTER_MAX_S] as const)
      : (["minute", RETRY_AFTER_MAX_S] as const);
  const seconds = clamp(Math.ceil(retryAfterMs / 1000), secondsMax);
  return {
    status: 429,
    type: "rate_limit_exceeded",
    message: `Rate limit of ${limit} requests per ${span} for ${LIMIT_OWNERS[scope]} reached. Please retry after ${seconds}s.`,
    extra: { retry_after: seconds },
    headers: {
      ...(orgId !== undefined && { "openai-organization": orgId }),
      "retry-after": String(seconds),
      "retry-after-ms": String(clamp(Math.ceil(retryAfterMs), secondsMax * 1000)),
      // A rejected request has no admission that would provide these headers.
      ...(scope === "key"
        ? createRateLimitHeaders({ limit, remaining: 0, resetMs: seconds * 1000 })
        : {}),
    },
  };
}

function tokensLimited(failure: FailureOfKind<"tokens_limited">): ErrorResponse {
  const { limit, remaining, required, retryAfterMs } = failure;
  const seconds = clamp(Math.ceil(retryAfterMs / 1000), RETRY_AFTER_MAX_S);
  return {
    status: 429,
    type: "rate_limit_exceeded",
    code: "tokens",
    message: `Rate limit of ${limit} tokens per minute for this API key reached: ${remaining} tokens are left, and this request may use up to ${required}. Please retry after ${seconds}s.`,
    extra: { retry_after: seconds },
    headers: {
      "retry-after": String(seconds),
      "retry-after-ms": String(clamp(Math.ceil(retryAfterMs), RETRY_AFTER_MAX_S * 1000)),
      ...createRateLimitHeaders({ limit, remaining, resetMs: seconds * 1000 }, "tokens"),
    },
  };
}

function codeField(code: string | undefined): Pick<ErrorResponse, "code"> {
  return code === undefined ? {} : { code };
}

function unavailableResponse(code: string, message: string, retryAfterSeconds = 1): ErrorResponse {
  const headers = { "retry-after": String(retryAfterSeconds) };
  return { status: 503, type: "api_error", code, message, headers };
}

const IDEMPOTENCY_KEY = "Idempotency-Key";

function replayMessage(made: "generation" | "key", id: string): string {
  const read = made === "generation" ? ` See GET /v1/generations/${id}.` : "";
  return `This Idempotency-Key was already used to create the ${made} '${id}', so the request doesn't run again.${read}`;
}

function clamp(value: number, max: number): number {
  return Number.isFinite(value) ? Math.min(max, Math.max(1, value)) : 1;
}
