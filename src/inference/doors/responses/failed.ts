import { failureObject } from "../../../http/failure-response.ts";
import type { Failure } from "../../../lib/failure.ts";
import type { ErrorOfResponse } from "./response-object.ts";

/**
 * A failure as `response.error`, once the status has been sent. Codex reads the code alone: `invalid_prompt`,
 * `context_length_exceeded` and `insufficient_quota` end its turn, `rate_limit_exceeded` waits as long as the
 * message says, all others are tried again. `server_is_overloaded` would end it too, so what passes is `server_error`.
 */
export function errorOf(failure: Failure): ErrorOfResponse {
  const { message, type, code, param, retry_after: wait } = failureObject(failure);
  const told = { message, type, param };
  const { kind } = failure;
  if (kind === "rate_limited") {
    const again = `${message} Please try again in ${wait ?? 1}s.`;
    return { ...told, code: "rate_limit_exceeded", message: again };
  }
  if (kind === "invalid_request") {
    return { ...told, code: code === CONTEXT ? CONTEXT : "invalid_prompt" };
  }
  const isSpent = kind === "balance_too_low" || kind === "quota_exceeded";
  return { ...told, code: isSpent && !failure.onlyHolds ? INSUFFICIENT : SERVER_ERROR };
}

const SERVER_ERROR = "server_error";
const INSUFFICIENT = "insufficient_quota";
const CONTEXT = "context_length_exceeded";

/** An answer that ended where the money did: `incomplete` would be repeated, and paid for again. */
export const OUT_OF_CREDITS: ErrorOfResponse = {
  code: INSUFFICIENT,
  message:
    "Insufficient credits: the answer ended at the output that the balance allows. Please add credits.",
  type: "insufficient_balance",
  param: null,
};
