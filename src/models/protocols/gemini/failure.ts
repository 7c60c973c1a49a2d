import {
  isObject,
  numberOf,
  objectOf,
  textOf,
  createListReader,
  createObjectReader,
} from "../../core/json-value.ts";
import type { ProviderFailure } from "../../core/provider.ts";
import { parseHttpFailure } from "../../core/upstream-failure.ts";

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
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
const PROJECT_NAMES = /\bprojects\/[\w.:-]*\w|\bproject[\s:#'"`]+\d+/gi;

/**
 * Converts Google's error response. For a 5xx, uses the code in the body, because proxies can turn
 * a 429 into a 5xx.
 */
export function parseGoogleFailure(
  status: number,
  headers: Headers,
  bodyText: string,
  secrets: readonly string[],
): ProviderFailure {
  const error = findError(parseJsonOrNull(bodyText)) ?? EMPTY_ERROR;
  const bodyStatus = statusOf(error);
  const effectiveStatus = status >= 500 && bodyStatus !== null ? bodyStatus : status;
  return failureOf(effectiveStatus, headers, error, secrets);
}

export function findGeminiFailure(
  raw: unknown,
  secrets: readonly string[],
): ProviderFailure | null {
  const error = findError(raw);
  return error && failureOf(statusOf(error) ?? 500, new Headers(), error, secrets);
}

export function parseJsonOrNull(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return null;
  }
}

const readError = createObjectReader({
  code: numberOf,
  status: textOf,
  message: textOf,
  details: createListReader(createObjectReader({ reason: textOf, retryDelay: textOf })),
});
type GoogleError = ReturnType<typeof readError>;
const EMPTY_ERROR = readError({});

function findError(raw: unknown): GoogleError | null {
  const { error } = objectOf(Array.isArray(raw) ? raw[0] : raw);
  return isObject(error) ? readError(error) : null;
}

function statusOf({ code: numericCode, status }: GoogleError): number | null {
  const code = numericCode ?? STATUS_BY_CODE[status] ?? 0;
  return Number.isSafeInteger(code) && code >= 400 && code <= 599 ? code : null;
}

function failureOf(
  status: number,
  headers: Headers,
  error: GoogleError,
  secrets: readonly string[],
): ProviderFailure {
  const message = removeSecrets(error.message, secrets);
  if (isAboutAccount(error, message)) return { kind: "disabled", reason: String(status) };
  const failure = parseHttpFailure(
    status,
    headers,
    JSON.stringify({ error: { message, type: error.status } }),
  );
  const delayMs = retryDelayMs(error);
  return failure.kind === "refused" || delayMs === null
    ? failure
    : { ...failure, retryAfterMs: delayMs };
}

/** Reports whether an error is about our account: its API key, billing or country. */
function isAboutAccount({ status, details }: GoogleError, message: string): boolean {
  if (status === "FAILED_PRECONDITION") return true;
  return (
    details.some(({ reason }) => reason.startsWith("API_KEY_")) ||
    /^API key (?:not valid|expired|not found)/i.test(message) // Matches only the start, because messages can quote the client's text.
  );
}

/** Reads google.rpc.RetryInfo ("34.4s"). Google sends no Retry-After header. */
function retryDelayMs({ details }: GoogleError): number | null {
  for (const { retryDelay } of details) {
    const [, seconds] = /^(\d{1,9}(?:\.\d+)?)s$/.exec(retryDelay) ?? [];
    if (seconds !== undefined) return Math.min(Math.ceil(Number(seconds) * 1000), WAIT_MS_MAX);
  }
  return null;
}

function removeSecrets(message: string, secrets: readonly string[]): string {
  let text = message;
  for (const secret of secrets) if (secret !== "") text = text.replaceAll(secret, "[removed]");
  return text.replaceAll(PROJECT_NAMES, "[removed]");
}
