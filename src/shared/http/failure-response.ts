import type { Dialect, DialectError } from "./dialect.ts";
import { errorDocsAnchorOf, errorResponseOf } from "./failure-mapping.ts";
import type { ErrorResponse } from "./error-response.ts";
import type { Failure } from "../failure.ts";

type ErrorFormat = { readonly dialect: Dialect | null; readonly docsUrl: string | null };

/** Returns a failure's response, by default in OpenAI's format `{"error": ...}`. */
export function failureResponse(
  failure: Failure,
  requestId: string,
  { dialect, docsUrl }: ErrorFormat = { dialect: null, docsUrl: null },
): Response {
  const { status, headers, body } =
    dialect?.error(failure, requestId) ?? openAiError(failure, docsUrl);
  return new Response(typeof body === "string" ? body : JSON.stringify(body), {
    status,
    headers: {
      "content-type": "application/json",
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      ...headers,
    },
  });
}

/** OpenRouter's error format: OpenAI's, with the status as `code` and our code in `metadata`. */
export const openRouterDialect: Dialect = {
  error: (failure) => {
    const { status, headers } = errorResponseOf(failure);
    return { status, headers: headers ?? {}, body: { error: openRouterError(failure) } };
  },
  headers: () => ({}),
};

export function openRouterError(failure: Failure): object {
  const errorResponse = errorResponseOf(failure);
  const { code, ...error } = errorObject(errorResponse);
  return { ...error, code: errorResponse.status, metadata: { error_type: code ?? error.type } };
}

function openAiError(failure: Failure, docsUrl: string | null): DialectError {
  const errorResponse = errorResponseOf(failure);
  const error = errorObject(errorResponse);
  const body =
    docsUrl === null
      ? error
      : { ...error, docs_url: `${docsUrl}/errors#${errorDocsAnchorOf(failure)}` };
  return {
    status: errorResponse.status,
    headers: errorResponse.headers ?? {},
    body: { error: body },
  };
}

export function toErrorObject(failure: Failure) {
  return errorObject(errorResponseOf(failure));
}

function errorObject({ message, type, param, code, extra }: ErrorResponse) {
  return { message, type, param: param ?? null, code: code ?? null, ...extra };
}
