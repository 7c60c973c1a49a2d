import { parseObject, textOf, createObjectReader } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { parseHttpFailure } from "../../core/upstream-failure.ts";

const STATUS_BY_ERROR_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  conflict_error: 409,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};
/** Error codes of spend limits, which end with the month or a new limit (platform.claude.com). */
const SPEND_LIMIT_CODES: ReadonlySet<string> = new Set([
  "contract_spend_limit_reached",
  "enforced_spend_limit_reached",
]);
const readError = createObjectReader({
  error: createObjectReader({
    type: textOf,
    message: textOf,
    details: createObjectReader({ error_code: textOf }),
  }),
});
const LIMIT_NAMES = ["requests", "tokens", "input-tokens", "output-tokens"];

export function parseMessagesApiFailure(
  status: number,
  headers: Headers,
  bodyText: string,
  secret: string | undefined,
): ProviderFailure {
  const { message, details } = readError(parseObject(bodyText)).error;
  // Matches only the start, because request text in the message could otherwise disable the route.
  if (status === 400 && /^your credit balance is too low/i.test(message)) {
    return { kind: "disabled", reason: "credit_balance" };
  }
  const { error_code: code } = details;
  if (status === 429 && SPEND_LIMIT_CODES.has(code)) return { kind: "disabled", reason: code };
  return parseHttpFailure(
    status,
    status === 429 ? addRetryAfter(headers) : headers,
    bodyText,
    secret,
  );
}

/** Returns the failure of an error event, or of an error in a 200 response. */
export function parseMessagesErrorEvent(
  raw: JsonObject,
  secret: string | undefined,
): ProviderFailure {
  const { type } = readError(raw).error;
  return parseMessagesApiFailure(
    STATUS_BY_ERROR_TYPE[type] ?? 500,
    new Headers(),
    JSON.stringify(raw),
    secret,
  );
}

/** Adds a missing `retry-after`: the latest reset time of the exhausted limits. */
function addRetryAfter(headers: Headers): Headers {
  if (headers.has("retry-after")) return headers;
  const reset = LIMIT_NAMES.map((limit) => `anthropic-ratelimit-${limit}`)
    .filter((limit) => headers.get(`${limit}-remaining`) === "0")
    .map((limit) => headers.get(`${limit}-reset`) ?? "")
    .toSorted()
    .at(-1);
  if (reset === undefined) return headers;
  const headersWithWait = new Headers(headers);
  headersWithWait.set("retry-after", reset);
  return headersWithWait;
}
