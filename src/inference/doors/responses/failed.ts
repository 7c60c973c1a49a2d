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
  if (kind === "invalid_request") {
    return { ...told, code: code === CONTEXT ? CONTEXT : FINAL };
  }
  if (kind === "too_many_end_users") return { ...told, code: FINAL };
  if (SPENT.has(kind) && !isOnlyHeld(failure)) return { ...told, code: INSUFFICIENT };
  if (SPENT.has(kind) || kind === "rate_limited" || kind === "tokens_limited") {
    const again = `${message} Please try again in ${wait ?? 1}s.`;
    return { ...told, code: "rate_limit_exceeded", message: again };
  }
  return { ...told, code: SERVER_ERROR };
}

/** What will not be there in a minute either, unless open requests alone hold it. */
const SPENT: ReadonlySet<Failure["kind"]> = new Set([
  "balance_too_low",
  "key_budget_exceeded",
  "quota_exceeded",
]);

function isOnlyHeld(failure: Failure): boolean {
  return "onlyHolds" in failure && failure.onlyHolds;
}

/** Its message is shown, and the turn ends. */
const FINAL = "invalid_prompt";
const SERVER_ERROR = "server_error";
const INSUFFICIENT = "insufficient_quota";
export const CONTEXT = "context_length_exceeded";

/** An answer that ended where the money did: `incomplete` would be repeated, and paid for again. */
export const OUT_OF_CREDITS: ErrorOfResponse = {
  code: INSUFFICIENT,
  message:
    "Insufficient credits: the answer ended at the output that the balance allows. Please add credits.",
  type: "insufficient_balance",
  param: null,
};
