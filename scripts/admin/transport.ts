const TIMEOUT_MS = 120_000; // rebuilding a large wallet takes long
/** Errors of a connection that was never made: nothing can have been done. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** The target of an operator's calls, and its token. */
export type AdminClient = {
  /** Ends in /admin/v1. */
  readonly url: string;
  readonly token: string;
};

/** One call; `path` is below `/admin/v1`, made with `pathOf`. */
export type Call = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  readonly idempotencyKey?: string;
};

/** The region's error with its message and other fields. */
export class Refused extends Error {
  readonly status: number;
  /** `type`, `code`, `param` and more, as in the answer's `error`; nulls are left out. */
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

/** No answer came. `maybeDone`: the call may have arrived all the same. */
export class Unreachable extends Error {
  readonly maybeDone: boolean;

  constructor(call: Call, url: string, error: unknown) {
    const reason = reasonOf(error);
    super(`No answer from ${url}: ${reason}`);
    this.name = "Unreachable";
    this.maybeDone = call.method !== "GET" && !NEVER_SENT.has(reason);
  }
}

/** A path of these segments; a segment that would lead elsewhere is a bug of the caller. */
export function pathOf(...segments: readonly string[]): string {
  for (const segment of segments) {
    if (!/^[A-Za-z0-9_-]+$/.test(segment)) throw new Error("not a segment of a path");
  }
  return `/${segments.join("/")}`;
}

/** Makes one call and answers with its JSON. Throws `Refused` or `Unreachable`. */
export async function ask<T>(admin: AdminClient, call: Call): Promise<T> {
  const { response, text } = await exchange(admin, call);
  const answer = parsed(text);
  if (response.ok && answer !== null) return answer as T;
  const { message, ...details } = errorIn(answer);
  const words =
    typeof message === "string"
      ? message
      : `${admin.url} answered ${response.status} with something else than JSON of this service. Is this a region's address?`;
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
      redirect: "manual", // the token goes only to the given address
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { response, text: await response.text() };
  } catch (error) {
    throw new Unreachable(call, admin.url, error);
  }
}

function parsed(text: string): object | null {
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

/** Returns the cause of a fetch error: the system's code, or a message. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `nothing within ${TIMEOUT_MS / 1000} s`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
}
