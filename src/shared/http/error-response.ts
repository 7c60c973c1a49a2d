import type { Failure } from "../failure.ts";

/** A failure's HTTP response. `extra` adds to the body's `error` object. */
export type ErrorResponse = {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly param?: string | null;
  readonly extra?: Readonly<Record<string, number | string>>;
  readonly headers?: Readonly<Record<string, string>>;
};

export type FailureOfKind<K extends Failure["kind"]> = Extract<Failure, { kind: K }>;

/** A header that forbids retries by SDKs, whatever the status. */
export const DO_NOT_RETRY = { "x-should-retry": "false" };
/** The headers of rejections that only open holds cause. Holds usually end within seconds. */
export const RETRY_SOON = { "retry-after": "1", "x-should-retry": "true" };

type ErrorDetails = Omit<ErrorResponse, "status" | "type" | "message">;

export function invalidRequestResponse(
  status: number,
  message: string,
  details: ErrorDetails = {},
): ErrorResponse {
  return { status, type: "invalid_request_error", message, ...details };
}

export function forbiddenResponse(
  code: string,
  message: string,
  details: ErrorDetails = {},
): ErrorResponse {
  return { status: 403, type: "permission_denied", code, message, ...details };
}
