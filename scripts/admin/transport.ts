const TIMEOUT_MS = 120_000; // rebuilding a large wallet takes long
/** Errors of connections that were never made, so the region did nothing. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** The region's URL and operator token. */
export type AdminClient = {
  /** Ends in /admin/v1. */
  readonly url: string;
  readonly token: string;
};

/** A call. `path` comes from `pathOf` and is below `/admin/v1`. */
export type Call = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  readonly idempotencyKey?: string;
};

/** An error that the region returned. */
export class Refused extends Error {
  readonly status: number;
  /** `type`, `code`, `param` and the other fields of `error`, except nulls. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;

  constructor(response: Response, message: string, details: Readonly<Record<string, unknown>>) {
    super(message);
    this.name = "Refused";
    this.status = response.status;
    this.details = details;
    this.requestId = response.headers.get("x-request-id");
  }
}

/** Thrown if no response arrives. `maybeDone`: the region might have handled the call. */
export class Unreachable extends Error {
  readonly maybeDone: boolean;

  constructor(call: Call, url: string, error: unknown) {
    const reason = reasonOf(error);
    super(`No response from ${url}: ${reason}`);
    this.name = "Unreachable";
    this.maybeDone = call.method !== "GET" && !NEVER_SENT.has(reason);
  }
}

/**
 * Joins path segments. Throws for a segment with other characters, which is a bug in the caller.
 */
export function pathOf(...segments: readonly string[]): string {
  for (const segment of segments) {
    if (!/^[A-Za-z0-9_-]+$/.test(segment)) throw new Error("not a segment of a path");
  }
  return `/${segments.join("/")}`;
}

/** Makes one call and returns its JSON. Throws `Refused` or `Unreachable`. */
export async function ask<T>(admin: AdminClient, call: Call): Promise<T> {
  const { response, text } = await exchange(admin, call);
  const answer = parseJson(text);
  if (response.ok && answer !== null) return answer as T;
  const { message, ...details } = errorIn(answer);
  const words =
    typeof message === "string"
      ? message
      : `${admin.url} returned ${response.status} without Turnpike's JSON. Check that this is a region's address.`;
  throw new Refused(response, words, details);
}

async function exchange(
  admin: AdminClient,
  call: Call,
): Promise<{ readonly response: Response; readonly text: string }> {
  const url = new URL(admin.url + call.path);
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  try {
    const response = await fetch(url, {
      method: call.method,
      headers: {
        authorization: `Bearer ${admin.token}`,
        ...(call.body === undefined ? {} : { "content-type": "application/json" }),
        ...(call.idempotencyKey !== undefined && { "idempotency-key": call.idempotencyKey }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      redirect: "manual", // the token is sent only to the given address
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { response, text: await response.text() };
  } catch (error) {
    throw new Unreachable(call, admin.url, error);
  }
}

function parseJson(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

function errorIn(answer: object | null): Record<string, unknown> {
  const error = answer !== null && "error" in answer ? answer.error : null;
  if (typeof error !== "object" || error === null) return {};
  return Object.fromEntries(Object.entries(error).filter(([, value]) => value !== null));
}

/** Returns the cause of a fetch error, as the system's code or a message. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `nothing within ${TIMEOUT_MS / 1000} s`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
}
