import * as z from "zod/mini";
import type { RequestCredential } from "../../shared/caller.ts";
import {
  credentialFromJson,
  presentedSecretFields,
  presentedSecretToJson,
} from "./session-token.ts";
import { keyHashSchema } from "../../shared/key.ts";

/** A request that a peer forwards to the home region. `body` is base64. */
export type ForwardedRequest = {
  readonly method: string;
  /** The percent-encoded path. */
  readonly path: string;
  /** Starts with `?`, or is empty. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly credential: RequestCredential;
};
type ForwardedResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

const REQUEST_HEADERS = [
  "content-type",
  "content-encoding",
  "idempotency-key",
  "x-merchant-secret",
];
const RESPONSE_HEADERS = [
  "content-type",
  "content-disposition",
  "allow",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  "www-authenticate",
  "location",
];

const STATUSES_WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

const headers = z.record(z.string(), z.string());
const requestSchema = z.object({
  method: z.string().check(z.regex(/^[A-Z]{1,20}$/)),
  path: z.string().check(z.regex(/^\//)),
  query: z.string().check(z.regex(/^(?:\?|$)/)),
  headers,
  body: z.nullable(z.string()),
  caller_key_hash: keyHashSchema,
  ...presentedSecretFields,
});
const responseSchema = z.object({
  ok: z.literal(true),
  status: z.int().check(z.minimum(200), z.maximum(599)),
  headers,
  body: z.string(),
});

export function forwardedRequestToJson(request: ForwardedRequest): object {
  const { credential: called, ...rest } = request;
  return { ...rest, caller_key_hash: called.keyHash, ...presentedSecretToJson(called) };
}

export function parseForwardedRequest(body: unknown): ForwardedRequest | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { caller_key_hash: hash, secret, session, headers: sentHeaders, ...rest } = parsed.data;
  const pickedHeaders = pickValidHeaders(sentHeaders, REQUEST_HEADERS);
  return pickedHeaders === null
    ? null
    : {
        ...rest,
        credential: credentialFromJson(hash, { secret, session }),
        headers: pickedHeaders,
      };
}

export function parseForwardedResponse(body: unknown): ForwardedResponse | null {
  const parsed = responseSchema.safeParse(body);
  if (!parsed.success) return null;
  const response = parsed.data;
  if (response.body !== "" && STATUSES_WITHOUT_BODY.has(response.status)) return null;
  const pickedHeaders = pickValidHeaders(response.headers, RESPONSE_HEADERS);
  return pickedHeaders === null ? null : { ...response, headers: pickedHeaders };
}

export function forwardedRequestHeaders(from: Headers): Record<string, string> {
  return pickHeaders(from, REQUEST_HEADERS);
}

export function forwardedResponseHeaders(from: Headers): Record<string, string> {
  return pickHeaders(from, RESPONSE_HEADERS);
}

function pickValidHeaders(
  given: Readonly<Record<string, string>>,
  names: readonly string[],
): Record<string, string> | null {
  try {
    return pickHeaders(new Headers(given), names);
  } catch {
    return null;
  }
}

function pickHeaders(from: Headers, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = from.get(name);
    if (value !== null) found[name] = value;
  }
  return found;
}
