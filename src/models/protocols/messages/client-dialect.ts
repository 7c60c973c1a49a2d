import type { Dialect, DialectError } from "../../../shared/http/dialect.ts";
import { errorResponseOf } from "../../../shared/http/failure-mapping.ts";
import type { ErrorResponse } from "../../../shared/http/error-response.ts";
import { elapsedMs } from "../../../shared/clock.ts";
import type { RateLimitState } from "../../../shared/key-status.ts";
import type { Failure } from "../../../shared/failure.ts";
import { THREADS_UNSUPPORTED_CODE } from "./client-request.ts";

/** Error types by HTTP status (platform.claude.com, API errors). */
const ERROR_TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  408: "timeout_error",
  409: "conflict_error",
  413: "request_too_large",
  415: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "overloaded_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export const messagesDialect: Dialect = {
  error(failure, requestId) {
    const response = errorResponseOf(failure);
    return {
      status: statusOf(failure, response),
      headers: { ...response.headers, ...limitHeaders(failure), "request-id": requestId },
      body: toMessagesErrorBody(failure, requestId),
    } satisfies DialectError;
  },
  headers: (requestId, limits) => ({
    "request-id": requestId,
    ...(limits !== null && rateHeaders(limits.rate, "requests")),
    ...(limits?.tokens && rateHeaders(limits.tokens, "tokens")),
  }),
};

/** Returns the body of an error response or event. `details` has the gateway's code and numbers. */
export function toMessagesErrorBody(failure: Failure, requestId: string): object {
  const response = errorResponseOf(failure);
  return {
    type: "error",
    error: {
      type: ERROR_TYPE_BY_STATUS[statusOf(failure, response)] ?? "api_error",
      message: errorMessage(failure, response),
      details: {
        error_code: response.code ?? response.type,
        ...(response.param !== undefined && response.param !== null && { param: response.param }),
        ...(response.code === THREADS_UNSUPPORTED_CODE && { unsupported: ["thread"] }),
        ...response.extra,
      },
    },
    request_id: requestId,
  };
}

/** Returns the HTTP status: 529 instead of 503, unless the home region is unreachable. */
function statusOf({ kind }: Failure, { status }: ErrorResponse): number {
  return status === 503 && kind !== "home_region_unreachable" ? 529 : status;
}

const CREDIT_MESSAGE = "Insufficient credits. Your credit balance is too low";

function errorMessage(failure: Failure, { message, code }: ErrorResponse): string {
  if (code === "context_length_exceeded") return withContextMessage(message);
  if (failure.kind === "model_not_found") return `model: ${failure.model.slice(0, 100)}`;
  return message.replace(/^Insufficient credits: /, `${CREDIT_MESSAGE}: `);
}

function withContextMessage(message: string): string {
  const text = message.replace(/^This model's maximum context length is exceeded\. ?/, "");
  if (/prompt is too long|exceed context limit/i.test(text)) return text;
  const numbers = text.includes("<=") ? [] : text.match(/(?<![-.\w])\d{4,9}(?!\w)/g);
  const counts = (numbers ?? []).map(Number);
  const promptTokens = Math.max(...counts);
  const limit = counts.find((count) => count < promptTokens);
  if (limit === undefined) return `prompt is too long: ${text || message}`;
  return `prompt is too long: ${promptTokens} tokens > ${limit} maximum`;
}

function limitHeaders(failure: Failure): Readonly<Record<string, string>> {
  const { kind } = failure;
  if (kind === "tokens_limited") {
    return rateHeaders({ ...failure, resetMs: failure.retryAfterMs }, "tokens");
  }
  if (kind !== "rate_limited" || failure.scope !== "key") return {};
  return rateHeaders(
    { limit: failure.limit, remaining: 0, resetMs: failure.retryAfterMs },
    "requests",
  );
}

function rateHeaders(
  { limit, remaining, resetMs }: RateLimitState,
  unit: "requests" | "tokens",
): Readonly<Record<string, string>> {
  const reset = new Date(Math.ceil((elapsedMs() + resetMs) / 1000) * 1000);
  return {
    [`anthropic-ratelimit-${unit}-limit`]: String(limit),
    [`anthropic-ratelimit-${unit}-remaining`]: String(remaining),
    [`anthropic-ratelimit-${unit}-reset`]: reset.toISOString().replace(".000Z", "Z"),
  };
}
