import { isObject, listOf, parseObject, textOf } from "../../core/json-value.ts";
import { asIs, shape } from "../../core/shape.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { httpFailure, streamFailure } from "../../core/upstream-failure.ts";

/**
 * The HTTP status of each Workers AI code (from its documentation; 3010, 3046, 4006, 5006, 5021 and
 * 5035 from recordings). 402 means that the daily allocation is used up.
 */
const STATUS_OF: Readonly<Record<number, number>> = {
  ...codes(400, [3003, 3039, 5004, 5006]),
  ...codes(402, [3036, 4006]),
  ...codes(403, [3023, 3041, 5016, 5018, 5035, 10_000]),
  ...codes(404, [3042, 5007]),
  ...codes(405, [5005, 5019]),
  ...codes(408, [3007, 3008, 3046]),
  ...codes(413, [3006, 3010, 5021]),
  ...codes(503, [3040]),
};

function codes(status: number, those: readonly number[]): Record<number, number> {
  return Object.fromEntries(those.map((code) => [code, status]));
}

const NO_HEADERS = new Headers();

export function workersAiFailure(
  status: number,
  headers: Headers,
  bodyText: string,
): ProviderFailure {
  const raw = parseObject(bodyText);
  if (raw !== null) return failureOf(status, headers, complaintOf(raw));
  // A 403 page comes from a firewall, not from Workers AI.
  const text = status === 403 && codeIn(bodyText) === null ? "" : bodyText;
  return failureOf(status, headers, { text });
}

/** Returns the failure for an error that `run` threw, such as "3040: no capacity". */
export function workersAiThrownFailure(error: unknown): ProviderFailure | null {
  const text = error instanceof Error ? error.message : "";
  return codeIn(text) === null ? null : failureOf(500, NO_HEADERS, { text });
}

export function workersAiFailureInside(raw: JsonObject): ProviderFailure | null {
  const { error, errors, success, internalCode } = raw;
  if (isObject(error) || typeof error === "string") return streamFailure(raw);
  const complains = listOf(errors).length > 0 || success === false;
  if (!complains && internalCode === undefined) return null;
  return failureOf(500, NO_HEADERS, complaintOf(raw));
}

type Complaint = { readonly code?: unknown; readonly text: string };

const complaints = shape({
  errors: (raw) => shape({ message: textOf, code: asIs })(listOf(raw)[0]),
  description: textOf,
  message: textOf,
  error: shape({ message: textOf }),
  internalCode: asIs,
});

function complaintOf(raw: JsonObject): Complaint {
  const { errors: first, description, message, error, internalCode } = complaints(raw);
  return {
    code: first.code ?? internalCode,
    text: first.message || description || message || error.message,
  };
}

function failureOf(status: number, headers: Headers, complaint: Complaint): ProviderFailure {
  const { text } = complaint;
  const code = Number.isSafeInteger(complaint.code) ? Number(complaint.code) : codeIn(text);
  const known = code === null ? undefined : STATUS_OF[code];
  const message = withoutPrefix(text);
  const usedUp = USED_UP.test(message) ? 402 : undefined;
  const body = JSON.stringify({ error: { message } });
  const failure = httpFailure(usedUp ?? known ?? status, headers, body);
  return known === undefined ? failure : { ...failure, reason: String(code) };
}

/** Must match at the start, because errors can repeat the client's text. */
const USED_UP = /^you have used up your daily free allocation\b/i;
const PREFIX = /^(?:\w{0,40}Error: |\d{4,5}: ){1,6}/;

function codeIn(text: string): number | null {
  const digits = /\b\d{4,5}(?=: )/.exec(PREFIX.exec(text)?.[0] ?? "");
  return digits === null ? null : Number(digits[0]);
}

function withoutPrefix(text: string): string {
  const sentence = text.replace(PREFIX, "").trimEnd();
  return sentence.replace(/\([0-9a-f-]{36}\)$/, "").trimEnd();
}
