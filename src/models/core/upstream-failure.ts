import { cleanedMessage, isCleanCode, isCleanParam } from "./cleaned-message.ts";
import { isObject, listOf, parseObject } from "./json-value.ts";
import type { KnownFields } from "./json-value.ts";
import type { ProviderFailure } from "./provider.ts";

type Complaint = {
  readonly message: string;
  readonly code: string;
  readonly type: string;
  readonly param: string;
  /**
   * The HTTP status in the error, or NaN. Proxies can return it inside a response with another
   * status.
   */
  readonly status: number;
};

/**
 * Converts a response outside 2xx. `secret` is our key, which some hosts repeat. 401 to 404 and
 * exhausted quotas are our misconfiguration. 400, 413 and 422 are about the request. 429, 503 and
 * 529 ask for a later retry.
 */
export function httpFailure(
  status: number,
  headers: Headers,
  bodyText: string,
  secret?: string,
): ProviderFailure {
  const complaint = complaintOf(parseObject(bodyText));
  const isBusy = OVERLOADED.has(status);
  const wait = retryAfterMs(headers) ?? (isBusy ? hintedWaitMs(headers, complaint.message) : null);
  return failureOf(status, complaint, {
    ...(wait !== null && { retryAfterMs: wait }),
    ...(secret !== undefined && { secret }),
  });
}

type Complained = KnownFields<
  "error" | "message" | "code" | "type" | "param" | "status" | "detail"
>;

export function streamFailure(raw: Complained, secret?: string): ProviderFailure {
  const complaint = complaintOf(raw);
  const hints = secret === undefined ? {} : { secret };
  return failureOf(statusInside(raw, complaint), complaint, hints);
}

type Hints = { readonly retryAfterMs?: number; readonly secret?: string };

const DISABLED: ReadonlySet<number> = new Set([401, 402, 403, 404]);
const OVERLOADED: ReadonlySet<number> = new Set([429, 503, 529]);
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);

function failureOf(status: number, complaint: Complaint, hints: Hints): ProviderFailure {
  const reason = String(status);
  if (isBlameless(status, complaint)) return { kind: "retry", reason, fault: "request" };
  if (isAboutContent(status, complaint)) return contentRefusal(reason, complaint, hints.secret);
  const meant = meantStatus(status, complaint);
  if (REFUSED.has(meant)) return refusal(reason, complaint, hints.secret);
  const wait = hints.retryAfterMs === undefined ? {} : { retryAfterMs: hints.retryAfterMs };
  if (DISABLED.has(meant)) return { kind: "disabled", reason, ...wait };
  if (OVERLOADED.has(meant)) return { kind: "overloaded", reason, ...wait };
  return { kind: "retry", reason, ...wait, again: meant === 408 || meant >= 500 };
}

const NO_ENDPOINT = /^no endpoints found that /i;

function isBlameless(status: number, { message, code, type }: Complaint): boolean {
  if (status === 403) return message === "" && code === "" && type === ""; // a firewall before the host
  if (status === 404) return NO_ENDPOINT.test(message);
  // Groq returns 413 and OpenAI 429 if one request has more tokens than the limit per minute.
  if (status === 413) return code === "rate_limit_exceeded";
  return status === 429 && message.startsWith("Request too large ");
}

const ABOUT_CONTENT = /moderat|flagged|content.policy|violates usage guidelines/i;

/** Reports whether a 403 is about the request's content. It then doesn't disable the route. */
function isAboutContent(status: number, { message }: Complaint): boolean {
  return status === 403 && ABOUT_CONTENT.test(message);
}

function contentRefusal(
  reason: string,
  complaint: Complaint,
  secret: string | undefined,
): ProviderFailure {
  const message = complaint.message.replace(/\bTeam: .*/s, "");
  const failure = refusal(reason, { ...complaint, message }, secret);
  return { ...failure, code: failure.code ?? "content_filter" };
}

function meantStatus(status: number, complaint: Complaint): number {
  if ([complaint.code, complaint.type].includes("insufficient_quota")) return 402;
  const isBroken = status === 424 || (status >= 500 && !OVERLOADED.has(status));
  if ((REFUSED.has(status) || isBroken) && isAboutUs(complaint)) return 404;
  return isBroken && isAboutRequest(complaint) ? 400 : status;
}

/**
 * Error types and codes of an invalid request. `invalid_request_error` isn't one, because some
 * servers use it for every error.
 */
const REQUEST_CODES: ReadonlySet<string> = new Set([
  "bad_request",
  "BadRequestError",
  "ContextWindowExceededError",
  "INVALID_ARGUMENT",
  "ValidationException",
]);
/** Messages of servers such as llama.cpp that return a 5xx for an unsupported request. */
const ABOUT_REQUEST =
  /^(?:failed to parse (?:tools|messages|grammar|tool_choice)\b|unsupported (?:tool|content)|json schema conversion failed)|^(?:image|audio|video) input is not supported/i;

function isAboutRequest(complaint: Complaint): boolean {
  const { code, type, status } = complaint;
  if (REFUSED.has(status) || REQUEST_CODES.has(code) || REQUEST_CODES.has(type)) return true;
  return ABOUT_REQUEST.test(complaint.message) || isAboutContext(complaint);
}

const OUR_CODES: ReadonlySet<string> = new Set([
  "invalid_model",
  "model_not_found",
  "unknown_model",
  "invalid_api_key",
  "no_db_connection", // LiteLLM without a database, of any key but its own
  "token_not_found_in_db",
]);
/**
 * Messages about our key or model name. Matches whole messages, because hosts can repeat the
 * client's text.
 */
const ABOUT_US =
  /^(?:incorrect api key|model not exist\b|(?:\/[\w/]{1,40}: )?invalid model name passed in|server is pinned to )|^\S+ is not a valid model id$|^model ['"`]?\S{1,200}['"`]? (?:is )?not found\b/i;

/**
 * Reports whether a 400 is about our key or our model name (xAI, Mistral, DeepSeek, OpenRouter,
 * LiteLLM, transformers).
 */
function isAboutUs({ code, type, message }: Complaint): boolean {
  return OUR_CODES.has(code) || OUR_CODES.has(type) || ABOUT_US.test(message);
}

const TO_OPERATOR =
  /\s{0,3}(?:- )?\bhint: .*|\s{0,3}\bincrease the physical batch size.*|\s{0,3}\bReceived Model Group=.*/is;
const TOO_LARGE = "413";
const NOT_SAID = "The model's provider rejected this request.";
const CONTEXT_CODE = "context_length_exceeded";
const CONTEXT_WORDS = "maximum context length";

function refusal(
  reason: string,
  complaint: Complaint,
  secret: string | undefined,
): ProviderFailure {
  const cleaned = cleanedMessage(complaint.message.replace(TO_OPERATOR, ""), secret);
  const param = isCleanParam(complaint.param, secret) ? complaint.param : null;
  if (!isAboutContext(complaint)) {
    const code = isCleanCode(complaint.code, secret) ? complaint.code : null;
    const tooLarge = reason === TOO_LARGE;
    const reported = { reason, message: cleaned || NOT_SAID, param, code };
    return { kind: "refused", ...reported, ...(tooLarge && { tooLarge }) };
  }
  // Clients recognize a prompt that is too long by these words.
  const message = cleaned.includes(CONTEXT_WORDS)
    ? cleaned
    : `This model's ${CONTEXT_WORDS} is exceeded. ${cleaned}`.trim();
  return { kind: "refused", reason, message, param: param ?? "messages", code: CONTEXT_CODE };
}

const LENGTH =
  "(?:context[ _-]?(?:length|window|limit|size)|maximum context|(?:prompt|input|`inputs`|message)s?\\b[^.:]{0,40}?\\b(?:length|tokens?)|(?:model )?token limit|model(?:'s)? (?:context )?length)";
const EXCESS =
  "(?:exceed|too (?:long|large|many)|longer than|larger than|maximum|must be|should be (?:\\[|at most|less)|while limit is)";
const CONTEXT_PATTERNS = new RegExp(
  [
    `${LENGTH}.{0,80}${EXCESS}`,
    `${EXCESS}.{0,80}${LENGTH}`,
    "(?:prompt|input) is too (?:long|large)",
    "context_length_exceeded",
    "maximum (?:context|prompt) length",
    "reduce the length of the messages",
    "current length is .{0,80}while limit is",
  ].join("|"),
  "i",
);

function isAboutContext(complaint: Complaint): boolean {
  if (complaint.code === CONTEXT_CODE) return true;
  return !complaint.code.endsWith("_above_max_length") && CONTEXT_PATTERNS.test(complaint.message);
}

function complaintOf(raw: Complained | null): Complaint {
  const error = raw?.error;
  const inner: Complained = isObject(error) ? error : (raw ?? {});
  const bare = typeof error === "string" ? error : "";
  const detail = detailOf(inner);
  return {
    message: word(inner.message) || bare || detail.message,
    code: word(inner.code),
    type: word(inner.type),
    param: word(inner.param) || detail.param,
    status: ownStatus(inner),
  };
}

/** Parses FastAPI's detail: a text, or a list with `loc` and `msg`. Mistral has it in `message`. */
function detailOf(inner: Complained): Pick<Complaint, "message" | "param"> {
  const { detail }: Complained = isObject(inner.message) ? inner.message : inner;
  const first: KnownFields<"loc" | "msg"> | undefined = listOf(detail).find(isObject);
  if (first === undefined) return { message: word(detail), param: "" };
  const place = listOf(first.loc).filter((part) => part !== "body");
  return { message: word(first.msg), param: place.join(".") };
}

function statusInside(raw: Complained, complaint: Complaint): number {
  const inner: Complained = isObject(raw.error) ? raw.error : raw;
  const code = ownStatus(inner);
  if (code >= 400 && code <= 599) return code;
  if (/rate_limit|too_many_requests/.test(`${complaint.type} ${complaint.code}`)) return 429;
  if (/overloaded/.test(`${complaint.type} ${complaint.code}`)) return 503;
  if (complaint.code === CONTEXT_CODE || complaint.type === "invalid_request_error") return 400;
  return 500;
}

function ownStatus({ code, status }: KnownFields<"code" | "status">): number {
  const given = code ?? status;
  // Converting a deeply nested list would overflow the stack.
  const own = typeof given === "object" ? Number.NaN : Number(given);
  return Number.isSafeInteger(own) ? own : Number.NaN;
}

function word(value: unknown): string {
  return typeof value === "string" ? value : "";
}

const WAIT_MS_MAX = 3_600_000;

/**
 * Returns the requested wait in ms. The header has milliseconds, seconds or a date (RFC 9110
 * 10.2.3), which is compared with the response's `date`.
 */
export function retryAfterMs(headers: Headers): number | null {
  for (const name of ["retry-after-ms", "x-ms-retry-after-ms"]) {
    const wait = bounded(number(headers.get(name)));
    if (wait !== null) return wait;
  }
  const value = headers.get("retry-after");
  const seconds = number(value);
  if (seconds !== null) return bounded(seconds * 1000);
  const until = Date.parse(value ?? "");
  const reported = Date.parse(headers.get("date") ?? "");
  return bounded(until - reported);
}

function number(text: string | null): number | null {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return null;
  return Number(text);
}

function bounded(ms: number | null): number | null {
  if (ms === null || Number.isNaN(ms)) return null;
  return Math.min(Math.max(0, Math.ceil(ms)), WAIT_MS_MAX);
}

const HINT_MS_MAX = 60_000;

/**
 * Suffixes of the header `x-ratelimit-reset`. OpenAI, Groq, xAI and Mistral use the first two,
 * Cerebras the next two, and Together the last.
 */
const LIMITS = ["-requests", "-tokens", "-requests-minute", "-tokens-minute", ""];

/**
 * Returns the ms to wait, at most a minute, for a response without `retry-after`. Reads the
 * message, or the reset time of an exhausted limit.
 */
export function hintedWaitMs(headers: Headers, message: string): number | null {
  const reported = /(?:retry after|try again in) ([\d.]+ ?(?:seconds?|ms|[\dhms.]+))/i.exec(
    message,
  );
  const spoken = durationMs(reported?.[1] ?? "");
  if (spoken !== null) return hinted(spoken);
  const resets: number[] = [];
  const usedUp: number[] = [];
  for (const limit of LIMITS) {
    const reset = durationMs(headers.get(`x-ratelimit-reset${limit}`) ?? "");
    if (reset === null) continue;
    resets.push(reset);
    if (headers.get(`x-ratelimit-remaining${limit}`)?.trim() === "0") usedUp.push(reset);
  }
  if (usedUp.length > 0) return hinted(Math.max(...usedUp));
  return resets.length > 0 ? hinted(Math.min(...resets)) : null;
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

function hinted(ms: number): number {
  return Math.min(Math.ceil(ms), HINT_MS_MAX);
}
