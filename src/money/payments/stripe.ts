import * as z from "zod/mini";
import type { PaymentsConfig } from "../../shared/config/config.ts";
import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { importHmacKey, verifyHmac } from "../../shared/hmac.ts";

export const STRIPE_API_VERSION = "2026-10-28.endive";

const RESPONSE_BYTES_MAX = 1024 * 1024;
const TIMEOUT_MS = 30_000;

export type StripeParams = { readonly [name: string]: Param };
type Param = string | number | boolean | readonly Param[] | StripeParams | undefined;

/** Encodes parameters as a form (`a[b][0]=v`). Omits undefined values. */
export function encodeForm(params: StripeParams): string {
  const pairs: string[] = [];
  const add = (name: string, value: Param): void => {
    if (value === undefined) return;
    if (typeof value === "object") {
      const inner = Array.isArray(value)
        ? [...(value as readonly Param[]).entries()]
        : Object.entries(value);
      for (const [key, one] of inner) add(name === "" ? String(key) : `${name}[${key}]`, one);
    } else pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  };
  add("", params);
  return pairs.join("&");
}

/** A Stripe call. `key`: the idempotency key of a POST. */
export type StripeCall = {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body: string | null;
  readonly key: string | null;
};

export type StripeErrorDetails = z.infer<typeof refusal>;
const shortText = z.nullish(z.string().check(z.maxLength(100)));
const refusal = z.object({
  type: shortText,
  code: shortText,
  param: shortText,
  decline_code: shortText,
  advice_code: shortText,
});
const refusalBody = z.object({ error: refusal });

/**
 * The result of a call. `unsure`: Stripe may have executed the call. `isStored`: retries get the
 * same error, so read the object instead.
 */
export type StripeResult =
  | { readonly kind: "done"; readonly body: unknown; readonly requestId: string | null }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly error: StripeErrorDetails;
      readonly requestId: string | null;
    }
  | {
      readonly kind: "unsure";
      readonly status: number | null;
      readonly isStored: boolean;
      readonly requestId: string | null;
    };

export type RefusedStripeCall = Extract<StripeResult, { kind: "refused" }>;

export type FetchFunction = (url: string, init: RequestInit) => Promise<Response>;
export type StripeClient = { readonly ask: (call: StripeCall) => Promise<StripeResult> };

export function createStripeClient(
  { secretKey, baseUrl }: Pick<PaymentsConfig, "secretKey" | "baseUrl">,
  send: FetchFunction = (url, init) => fetch(url, init),
): StripeClient {
  return {
    ask: async (call) => {
      try {
        const response = await send(`${baseUrl}${call.path}`, buildRequest(call, secretKey));
        const requestId = response.headers.get("request-id")?.slice(0, 100) ?? null;
        const text = await readBoundedText(response, RESPONSE_BYTES_MAX);
        return toAnswer(response, { text, requestId });
      } catch {
        return { kind: "unsure", status: null, isStored: false, requestId: null };
      }
    },
  };
}

function buildRequest({ method, body, key }: StripeCall, secretKey: string): RequestInit {
  const headers = {
    authorization: `Bearer ${secretKey}`,
    "stripe-version": STRIPE_API_VERSION,
    "user-agent": "turnpike",
    ...(method === "POST" && { "content-type": "application/x-www-form-urlencoded" }),
    ...(key !== null && { "idempotency-key": key }),
  };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return {
    method,
    headers,
    body: method === "POST" ? (body ?? "") : null,
    redirect: "manual",
    signal,
  };
}

export function parseStripeBody<T>(answer: StripeResult, schema: z.core.$ZodType<T>): T | null {
  if (answer.kind !== "done") return null;
  const parsed = z.safeParse(schema, answer.body);
  return parsed.success ? parsed.data : null;
}

/**
 * Reads a Stripe object. Returns `none` if it doesn't exist, or `unsure` if Stripe didn't respond.
 */
export async function readStripeObject<T extends object>(
  stripe: StripeClient,
  call: StripeCall,
  schema: z.core.$ZodType<T>,
): Promise<T | "none" | "unsure"> {
  const answer = await stripe.ask(call);
  return parseStripeBody(answer, schema) ?? (answer.kind === "unsure" ? "unsure" : "none");
}

function toAnswer(
  response: Response,
  { text, requestId }: { readonly text: string | null; readonly requestId: string | null },
): StripeResult {
  const { status } = response;
  const body = parseJson(text);
  if (status >= 200 && status < 300 && body !== undefined) return { kind: "done", body, requestId };
  const shouldRetry = response.headers.get("stripe-should-retry");
  if (isOutcomeUnknown(status, shouldRetry)) {
    const isStored = status >= 500 && shouldRetry === "false";
    return { kind: "unsure", status, isStored, requestId };
  }
  const parsed = z.safeParse(refusalBody, body);
  return { kind: "refused", status, error: parsed.success ? parsed.data.error : {}, requestId };
}

function isOutcomeUnknown(status: number, shouldRetry: string | null): boolean {
  if (shouldRetry === "true") return true;
  if (status < 400 || status >= 500 || status === 401 || status === 403) return true;
  return (status === 409 || status === 429) && shouldRetry !== "false";
}

export function parseJson(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

const CLOCK_TOLERANCE_S = 300;
const SIGNATURES_MAX = 8;

type SignatureHeader = { readonly time: string; readonly tags: readonly string[] };

/**
 * Parses Stripe's signature header. Returns null for an invalid header or a time over five minutes
 * off.
 */
export function parseSignatureHeader(header: string | null, nowMs: number): SignatureHeader | null {
  const parts = (header ?? "").split(",").map((part) => part.trim().split("="));
  const times = parts.filter(([name]) => name === "t").map(([, value = ""]) => value);
  const tags = parts.filter(([name]) => name === "v1").slice(0, SIGNATURES_MAX);
  const [time = ""] = times;
  if (times.length !== 1 || !/^\d{1,12}$/.test(time)) return null;
  if (Math.abs(Math.floor(nowMs / 1000) - Number(time)) > CLOCK_TOLERANCE_S) return null;
  const validTags = tags.map(([, tag = ""]) => tag).filter((tag) => /^[0-9a-f]{64}$/.test(tag));
  return validTags.length === 0 ? null : { time, tags: validTags };
}

/** Reports whether a secret signed these bytes within five minutes of `nowMs`. */
export async function isSignedByStripe(
  bytes: Uint8Array,
  header: string | null,
  { secrets, nowMs }: { readonly secrets: readonly string[]; readonly nowMs: number },
): Promise<boolean> {
  const signature = parseSignatureHeader(header, nowMs);
  if (signature === null) return false;
  const { time, tags } = signature;
  const prefix = new TextEncoder().encode(`${time}.`);
  const message = new Uint8Array(prefix.length + bytes.length);
  message.set(prefix);
  message.set(bytes, prefix.length);
  const keys = await Promise.all(secrets.map((secret) => importHmacKey(secret)));
  const verdicts = tags.flatMap((tag) =>
    keys.map((key) => verifyHmac(key, Uint8Array.fromHex(tag), message)),
  );
  return (await Promise.all(verdicts)).some(Boolean);
}
