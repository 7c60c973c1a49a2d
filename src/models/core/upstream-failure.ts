import { cleanMessage, isSafeErrorCode, isSafeErrorParam } from "./cleaned-message.ts";
import { isObject, listOf, parseObject, textOf } from "./json-value.ts";
import type { KnownFields } from "./json-value.ts";
import type { ProviderFailure } from "./provider.ts";

type UpstreamError = {
  readonly message: string;
  readonly code: string;
  readonly type: string;
  readonly param: string;
  /**
   * The status in the error's body, or NaN. Proxies can send the error with a different HTTP
   * status.
   */
  readonly status: number;
};

/**
 * Converts a response outside 2xx to a failure. `secret` is our key, which some hosts repeat in
 * errors. 401 to 404 and exhausted quotas are our misconfiguration. 400, 413 and 422 are about the
 * request. 429, 503 and 529 mean overload.
 */
export function parseHttpFailure(
  status: number,
  headers: Headers,
  bodyText: string,
  secret?: string,
): ProviderFailure {
  const upstreamError = parseUpstreamError(parseObject(bodyText));
  const isBusy = OVERLOADED.has(status);
  const wait =
    parseRetryAfterMs(headers) ??
    (isBusy ? parseHintedWaitMs(headers, upstreamError.message) : null);
  return toProviderFailure(status, upstreamError, {
    ...(wait !== null && { retryAfterMs: wait }),
    ...(secret !== undefined && { secret }),
  });
}

type RawError = KnownFields<"error" | "message" | "code" | "type" | "param" | "status" | "detail">;

export function parseStreamFailure(raw: RawError, secret?: string): ProviderFailure {
  const upstreamError = parseUpstreamError(raw);
  const hints = secret === undefined ? {} : { secret };
  return toProviderFailure(statusInBody(raw, upstreamError), upstreamError, hints);
}

const DISABLED: ReadonlySet<number> = new Set([401, 402, 403, 404]);
const OVERLOADED: ReadonlySet<number> = new Set([429, 503, 529]);
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);

function toProviderFailure(
  status: number,
  upstreamError: UpstreamError,
  hints: { readonly retryAfterMs?: number; readonly secret?: string },
): ProviderFailure {
  const reason = String(status);
  if (isNotProviderFault(status, upstreamError)) return { kind: "retry", reason, fault: "request" };
  if (isAboutContent(status, upstreamError)) {
    return contentRefusal(reason, upstreamError, hints.secret);
  }
  const effective = effectiveStatus(status, upstreamError);
  if (REFUSED.has(effective)) return refusal(reason, upstreamError, hints.secret);
  const wait = hints.retryAfterMs === undefined ? {} : { retryAfterMs: hints.retryAfterMs };
  if (DISABLED.has(effective)) return { kind: "disabled", reason, ...wait };
  if (OVERLOADED.has(effective)) return { kind: "overloaded", reason, ...wait };
  return { kind: "retry", reason, ...wait, again: effective === 408 || effective >= 500 };
}

const NO_ENDPOINT = /^no endpoints found that /i;

function isNotProviderFault(status: number, { message, code, type }: UpstreamError): boolean {
  // A firewall in front of the host sends this response.
  if (status === 403) return message === "" && code === "" && type === "";
  if (status === 404) return NO_ENDPOINT.test(message);
  // Groq returns 413 and OpenAI 429 if one request exceeds the tokens per minute.
  if (status === 413) return code === "rate_limit_exceeded";
  return status === 429 && message.startsWith("Request too large ");
}

const ABOUT_CONTENT = /moderat|flagged|content.policy|violates usage guidelines/i;

/** Reports whether a 403 is about the request's content. */
function isAboutContent(status: number, { message }: UpstreamError): boolean {
  return status === 403 && ABOUT_CONTENT.test(message);
}

function contentRefusal(
  reason: string,
  upstreamError: UpstreamError,
  secret: string | undefined,
): ProviderFailure {
  const message = upstreamError.message.replace(/\bTeam: .*/s, "");
  const failure = refusal(reason, { ...upstreamError, message }, secret);
  return { ...failure, code: failure.code ?? "content_filter" };
}

function effectiveStatus(status: number, upstreamError: UpstreamError): number {
  if ([upstreamError.code, upstreamError.type].includes("insufficient_quota")) return 402;
  const isBroken = status === 424 || (status >= 500 && !OVERLOADED.has(status));
  if ((REFUSED.has(status) || isBroken) && isAboutKeyOrModel(upstreamError)) return 404;
  return isBroken && isAboutRequest(upstreamError) ? 400 : status;
}

/**
 * Error types and codes of an invalid request. Excludes `invalid_request_error`, which some servers
 * use for every error.
 */
const REQUEST_CODES: ReadonlySet<string> = new Set([
  "bad_request",
  "BadRequestError",
  "ContextWindowExceededError",
  "INVALID_ARGUMENT",
  "ValidationException",
]);
/** Messages with which servers such as llama.cpp reject an unsupported request as a 5xx. */
const ABOUT_REQUEST =
  /^(?:failed to parse (?:tools|messages|grammar|tool_choice)\b|unsupported (?:tool|content)|json schema conversion failed)|^(?:image|audio|video) input is not supported/i;

function isAboutRequest(upstreamError: UpstreamError): boolean {
  const { code, type, status } = upstreamError;
  if (REFUSED.has(status) || REQUEST_CODES.has(code) || REQUEST_CODES.has(type)) return true;
  return ABOUT_REQUEST.test(upstreamError.message) || isAboutContext(upstreamError);
}

const KEY_OR_MODEL_CODES: ReadonlySet<string> = new Set([
  "invalid_model",
  "model_not_found",
  "unknown_model",
  "invalid_api_key",
  // LiteLLM without a database returns this message for all keys except its master key.
  "no_db_connection",
  "token_not_found_in_db",
]);
/**
 * Messages about our key or model. Matches whole messages, because hosts can repeat clients' text.
 */
const ABOUT_KEY_OR_MODEL =
  /^(?:incorrect api key|model not exist\b|(?:\/[\w/]{1,40}: )?invalid model name passed in|server is pinned to )|^\S+ is not a valid model id$|^model ['"`]?\S{1,200}['"`]? (?:is )?not found\b/i;

/**
 * Reports whether a 400 is about our key or model (xAI, Mistral, DeepSeek, OpenRouter, LiteLLM,
 * transformers).
 */
function isAboutKeyOrModel({ code, type, message }: UpstreamError): boolean {
  return (
    KEY_OR_MODEL_CODES.has(code) || KEY_OR_MODEL_CODES.has(type) || ABOUT_KEY_OR_MODEL.test(message)
  );
}

const OPERATOR_HINTS =
  /\s{0,3}(?:- )?\bhint: .*|\s{0,3}\bincrease the physical batch size.*|\s{0,3}\bReceived Model Group=.*/is;
const TOO_LARGE = "413";
const NO_MESSAGE = "The model's provider rejected this request.";
const CONTEXT_CODE = "context_length_exceeded";
const CONTEXT_WORDS = "maximum context length";

function refusal(
  reason: string,
  upstreamError: UpstreamError,
  secret: string | undefined,
): ProviderFailure {
  const cleaned = cleanMessage(upstreamError.message.replace(OPERATOR_HINTS, ""), secret);
  const param = isSafeErrorParam(upstreamError.param, secret) ? upstreamError.param : null;
  if (!isAboutContext(upstreamError)) {
    const code = isSafeErrorCode(upstreamError.code, secret) ? upstreamError.code : null;
    const tooLarge = reason === TOO_LARGE;
    const reported = { reason, message: cleaned || NO_MESSAGE, param, code };
    return { kind: "refused", ...reported, ...(tooLarge && { tooLarge }) };
  }
  // Clients use these words to recognize a prompt that is too long.
  const message = cleaned.includes(CONTEXT_WORDS)
    ? cleaned
    : `This model's ${CONTEXT_WORDS} is exceeded. ${cleaned}`.trim();
  return { kind: "refused", reason, message, param: param ?? "messages", code: CONTEXT_CODE };
}

const LENGTH_WORDS =
  "(?:context[ _-]?(?:length|window|limit|size)|maximum context|(?:prompt|input|`inputs`|message)s?\\b[^.:]{0,40}?\\b(?:length|tokens?)|(?:model )?token limit|model(?:'s)? (?:context )?length)";
const EXCESS_WORDS =
  "(?:exceed|too (?:long|large|many)|longer than|larger than|maximum|must be|should be (?:\\[|at most|less)|while limit is)";
const CONTEXT_PATTERNS = new RegExp(
  [
    `${LENGTH_WORDS}.{0,80}${EXCESS_WORDS}`,
    `${EXCESS_WORDS}.{0,80}${LENGTH_WORDS}`,
    "(?:prompt|input) is too (?:long|large)",
    "context_length_exceeded",
    "maximum (?:context|prompt) length",
    "reduce the length of the messages",
    "current length is .{0,80}while limit is",
  ].join("|"),
  "i",
);

function isAboutContext(upstreamError: UpstreamError): boolean {
  if (upstreamError.code === CONTEXT_CODE) return true;
  return (
    !upstreamError.code.endsWith("_above_max_length") &&
    CONTEXT_PATTERNS.test(upstreamError.message)
  );
}

function parseUpstreamError(raw: RawError | null): UpstreamError {
  const error = raw?.error;
  const errorObject: RawError = isObject(error) ? error : (raw ?? {});
  const errorText = typeof error === "string" ? error : "";
  const detail = parseDetail(errorObject);
  return {
    message: textOf(errorObject.message) || errorText || detail.message,
    code: textOf(errorObject.code),
    type: textOf(errorObject.type),
    param: textOf(errorObject.param) || detail.param,
    status: statusInError(errorObject),
  };
}

/**
 * Parses FastAPI's `detail`: a text, or a list with `loc` and `msg`. Mistral puts `detail` in
 * `message`.
 */
function parseDetail(errorObject: RawError): Pick<UpstreamError, "message" | "param"> {
  const { detail }: RawError = isObject(errorObject.message) ? errorObject.message : errorObject;
  const first: KnownFields<"loc" | "msg"> | undefined = listOf(detail).find(isObject);
  if (first === undefined) return { message: textOf(detail), param: "" };
  const path = listOf(first.loc).filter((part) => part !== "body");
  return { message: textOf(first.msg), param: path.join(".") };
}

function statusInBody(raw: RawError, upstreamError: UpstreamError): number {
  const errorObject: RawError = isObject(raw.error) ? raw.error : raw;
  const code = statusInError(errorObject);
  if (code >= 400 && code <= 599) return code;
  if (/rate_limit|too_many_requests/.test(`${upstreamError.type} ${upstreamError.code}`)) {
    return 429;
  }
  if (/overloaded/.test(`${upstreamError.type} ${upstreamError.code}`)) return 503;
  if (upstreamError.code === CONTEXT_CODE || upstreamError.type === "invalid_request_error") {
    return 400;
  }
  return 500;
}

function statusInError({ code, status }: KnownFields<"code" | "status">): number {
  const statusValue = code ?? status;
  // Converting a deeply nested list would overflow the stack.
  const own = typeof statusValue === "object" ? Number.NaN : Number(statusValue);
  return Number.isSafeInteger(own) ? own : Number.NaN;
}

const WAIT_MS_MAX = 3_600_000;

/**
 * Returns the requested wait in ms, or null. The headers contain milliseconds, seconds or a date
 * (RFC 9110 10.2.3), which is compared with the response's `date`.
 */
export function parseRetryAfterMs(headers: Headers): number | null {
  for (const name of ["retry-after-ms", "x-ms-retry-after-ms"]) {
    const wait = clampWaitMs(parseDecimal(headers.get(name)));
    if (wait !== null) return wait;
  }
  const value = headers.get("retry-after");
  const seconds = parseDecimal(value);
  if (seconds !== null) return clampWaitMs(seconds * 1000);
  const until = Date.parse(value ?? "");
  return clampWaitMs(until - Date.parse(headers.get("date") ?? ""));
}

function parseDecimal(text: string | null): number | null {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return null;
  return Number(text);
}

function clampWaitMs(ms: number | null): number | null {
  if (ms === null || Number.isNaN(ms)) return null;
  return Math.min(Math.max(0, Math.ceil(ms)), WAIT_MS_MAX);
}

const HINT_MS_MAX = 60_000;

/**
 * Suffixes of `x-ratelimit-reset`. OpenAI, Groq, xAI and Mistral use the first two, Cerebras the
 * next two, Together the last.
 */
const RESET_SUFFIXES = ["-requests", "-tokens", "-requests-minute", "-tokens-minute", ""];

/**
 * Returns the wait in ms for a response without `retry-after`, at most a minute. Uses the message
 * or the reset time of an exhausted limit.
 */
export function parseHintedWaitMs(headers: Headers, message: string): number | null {
  const reported = /(?:retry after|try again in) ([\d.]+ ?(?:seconds?|ms|[\dhms.]+))/i.exec(
    message,
  );
  const waitInMessage = durationMs(reported?.[1] ?? "");
  if (waitInMessage !== null) return clampHintMs(waitInMessage);
  const resets: number[] = [];
  const resetsOfExhausted: number[] = [];
  for (const limit of RESET_SUFFIXES) {
    const reset = durationMs(headers.get(`x-ratelimit-reset${limit}`) ?? "");
    if (reset === null) continue;
    resets.push(reset);
    if (headers.get(`x-ratelimit-remaining${limit}`)?.trim() === "0") resetsOfExhausted.push(reset);
  }
  if (resetsOfExhausted.length > 0) return clampHintMs(Math.max(...resetsOfExhausted));
  return resets.length > 0 ? clampHintMs(Math.min(...resets)) : null;
}

const DURATION =
  /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?) ?(?:s|seconds?))?(?:(\d+(?:\.\d+)?) ?ms)?$/;
const SECONDS_MAX = 86_400;

function durationMs(raw: string): number | null {
  const text = raw.trim().toLowerCase().replace(/\.$/, "");
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) > SECONDS_MAX ? null : Number(text) * 1000;
  const match = DURATION.exec(text);
  if (text === "" || match === null) return null;
  const [hours, minutes, seconds, ms] = match.slice(1).map((part) => Number(part ?? 0));
  return (((hours ?? 0) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)) * 1000 + (ms ?? 0);
}

function clampHintMs(ms: number): number {
  return Math.min(Math.ceil(ms), HINT_MS_MAX);
}
