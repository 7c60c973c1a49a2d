import {
  isObject,
  listOf,
  parseObject,
  textOf,
  readAnyValue,
  createObjectReader,
} from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { parseHttpFailure, parseStreamFailure } from "../../core/upstream-failure.ts";

/**
 * HTTP statuses by Workers AI error code (documented; 3010, 3046, 4006, 5006, 5021 and 5035
 * measured). The status 402 means that the daily allocation is used up.
 */
const STATUS_BY_CODE: Readonly<Record<number, number>> = {
  ...statusByCode(400, [3003, 3039, 5004, 5006]),
  ...statusByCode(402, [3036, 4006]),
  ...statusByCode(403, [3023, 3041, 5016, 5018, 5035, 10_000]),
  ...statusByCode(404, [3042, 5007]),
  ...statusByCode(405, [5005, 5019]),
  ...statusByCode(408, [3007, 3008, 3046]),
  ...statusByCode(413, [3006, 3010, 5021]),
  ...statusByCode(503, [3040]),
};

function statusByCode(status: number, codes: readonly number[]): Record<number, number> {
  return Object.fromEntries(codes.map((code) => [code, status]));
}

const NO_HEADERS = new Headers();

export function parseWorkersAiFailure(
  status: number,
  headers: Headers,
  bodyText: string,
): ProviderFailure {
  const raw = parseObject(bodyText);
  if (raw !== null) return toProviderFailure(status, headers, readUpstreamError(raw));
  // A 403 without an error code comes from a firewall, not from Workers AI.
  const text = status === 403 && readCode(bodyText) === null ? "" : bodyText;
  return toProviderFailure(status, headers, { text });
}

/** Converts an error that `run` threw, such as "3040: no capacity". */
export function parseWorkersAiException(error: unknown): ProviderFailure | null {
  const text = error instanceof Error ? error.message : "";
  return readCode(text) === null ? null : toProviderFailure(500, NO_HEADERS, { text });
}

export function findWorkersAiFailure(raw: JsonObject): ProviderFailure | null {
  const { error, errors, success, internalCode } = raw;
  if (isObject(error) || typeof error === "string") return parseStreamFailure(raw);
  const hasErrors = listOf(errors).length > 0 || success === false;
  if (!hasErrors && internalCode === undefined) return null;
  return toProviderFailure(500, NO_HEADERS, readUpstreamError(raw));
}

type UpstreamError = { readonly code?: unknown; readonly text: string };

const errorsReader = createObjectReader({
  errors: (raw) => createObjectReader({ message: textOf, code: readAnyValue })(listOf(raw)[0]),
  description: textOf,
  message: textOf,
  error: createObjectReader({ message: textOf }),
  internalCode: readAnyValue,
});

function readUpstreamError(raw: JsonObject): UpstreamError {
  const { errors: first, description, message, error, internalCode } = errorsReader(raw);
  return {
    code: first.code ?? internalCode,
    text: first.message || description || message || error.message,
  };
}

function toProviderFailure(
  status: number,
  headers: Headers,
  upstreamError: UpstreamError,
): ProviderFailure {
  const { text } = upstreamError;
  const code = Number.isSafeInteger(upstreamError.code)
    ? Number(upstreamError.code)
    : readCode(text);
  const documentedStatus = code === null ? undefined : STATUS_BY_CODE[code];
  const message = removePrefix(text);
  const quotaStatus = USED_UP.test(message) ? 402 : undefined;
  const body = JSON.stringify({ error: { message } });
  const failure = parseHttpFailure(quotaStatus ?? documentedStatus ?? status, headers, body);
  return documentedStatus === undefined ? failure : { ...failure, reason: String(code) };
}

/** Matches only the start, because errors can repeat the client's text. */
const USED_UP = /^you have used up your daily free allocation\b/i;
const PREFIX = /^(?:\w{0,40}Error: |\d{4,5}: ){1,6}/;

function readCode(text: string): number | null {
  const digits = /\b\d{4,5}(?=: )/.exec(PREFIX.exec(text)?.[0] ?? "");
  return digits === null ? null : Number(digits[0]);
}

function removePrefix(text: string): string {
  const sentence = text.replace(PREFIX, "").trimEnd();
  return sentence.replace(/\([0-9a-f-]{36}\)$/, "").trimEnd();
}
