import { isObject, numberOf, objectOf, textOf } from "../../core/json-value.ts";
import type { ProviderFailure } from "../../core/provider.ts";
import { listReader, objectReader } from "../../core/shape.ts";
import { httpFailure } from "../../core/upstream-failure.ts";

const STATUSES: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  CANCELLED: 499,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};
const WAIT_MS_MAX = 3_600_000;
const PROJECTS = /\bprojects\/[\w.:-]*\w|\bproject[\s:#'"`]+\d+/gi;

/**
 * Converts an error response (Gemini API reference, Errors). For a 5xx, the code in the body
 * counts, because proxies return a 429 as 5xx.
 */
export function googleFailure(
  status: number,
  headers: Headers,
  bodyText: string,
  secrets: readonly string[],
): ProviderFailure {
  const error = errorIn(parseGoogleJson(bodyText)) ?? NO_COMPLAINT;
  const inner = codeOf(error);
  const trusted = status >= 500 && inner !== null ? inner : status;
  return failureOf(trusted, headers, error, secrets);
}

export function failureInside(raw: unknown, secrets: readonly string[]): ProviderFailure | null {
  const error = errorIn(raw);
  return error && failureOf(codeOf(error) ?? 500, new Headers(), error, secrets);
}

export function parseGoogleJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return null;
  }
}

const complaint = objectReader({
  code: numberOf,
  status: textOf,
  message: textOf,
  details: listReader(objectReader({ reason: textOf, retryDelay: textOf })),
});
type Complaint = ReturnType<typeof complaint>;
const NO_COMPLAINT = complaint({});

function errorIn(raw: unknown): Complaint | null {
  const { error } = objectOf(Array.isArray(raw) ? raw[0] : raw);
  return isObject(error) ? complaint(error) : null;
}

function codeOf({ code: given, status }: Complaint): number | null {
  const code = given ?? STATUSES[status] ?? 0;
  return Number.isSafeInteger(code) && code >= 400 && code <= 599 ? code : null;
}

function failureOf(
  status: number,
  headers: Headers,
  error: Complaint,
  secrets: readonly string[],
): ProviderFailure {
  const message = withoutSecrets(error.message, secrets);
  if (isOurs(error, message)) return { kind: "disabled", reason: String(status) };
  const failure = httpFailure(
    status,
    headers,
    JSON.stringify({ error: { message, type: error.status } }),
  );
  const wait = waitMs(error);
  return failure.kind === "refused" || wait === null ? failure : { ...failure, retryAfterMs: wait };
}

/**
 * Reports whether an error is about the operator's account: a bad key, missing billing or an
 * unsupported country.
 */
function isOurs({ status, details }: Complaint, message: string): boolean {
  if (status === "FAILED_PRECONDITION") return true;
  return (
    details.some(({ reason }) => reason.startsWith("API_KEY_")) ||
    /^API key (?:not valid|expired|not found)/i.test(message) // at the start, because messages can quote the client's text
  );
}

/** Reads google.rpc.RetryInfo, such as "34.4s", because Google sends no Retry-After header. */
function waitMs({ details }: Complaint): number | null {
  for (const { retryDelay } of details) {
    const [, seconds] = /^(\d{1,9}(?:\.\d+)?)s$/.exec(retryDelay) ?? [];
    if (seconds !== undefined) return Math.min(Math.ceil(Number(seconds) * 1000), WAIT_MS_MAX);
  }
  return null;
}

function withoutSecrets(message: string, secrets: readonly string[]): string {
  let text = message;
  for (const secret of secrets) if (secret !== "") text = text.replaceAll(secret, "[removed]");
  return text.replaceAll(PROJECTS, "[removed]");
}
