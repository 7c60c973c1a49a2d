import type { Context, MiddlewareHandler, Next } from "hono";
import { routePath } from "hono/route";
import { configOf } from "../config/config.ts";
import type { Config, OperatorRole } from "../config/config.ts";
import type { AdmittedRequest, Caller, Member } from "../caller.ts";
import { now } from "../clock.ts";
import type { Failure, Result } from "../failure.ts";
import { mintId } from "../id.ts";
import type { OverloadReason, RequestSlot } from "../in-flight.ts";
import { logEvent, logException } from "../log.ts";
import type { Timers } from "../timers.ts";
import { addCorsHeaders, allowsAnyOrigin, preflightResponse } from "./cors.ts";
import type { Dialect } from "./dialect.ts";
import { failureResponse } from "./failure-response.ts";
import { internalRequestIds } from "./internal-request-id.ts";
import type { JsonObject } from "./json-text.ts";
import { createRateLimitHeaders } from "./rate-headers.ts";
import { hasValidEscapes } from "./routing-path.ts";
import { countInSummaryLine } from "./request-log.ts";
import type { LoggedFailure } from "./request-log.ts";
import type { Region } from "../regions.ts";

export type AppEnv = {
  Bindings: Env;
  Variables: {
    requestId: string;
    dialect?: Dialect;
    startedMs: number;
    config: Config;
    admission: Promise<Result<AdmittedRequest>>;
    /** Set instead of `admission` if placing the hold also admits the key. */
    presumed?: PresumedCaller;
    slot?: RequestSlot | OverloadReason;
    /** The memory slot of an unpaid request with a body, released after the response. */
    place?: RequestSlot;
    admitted: AdmittedRequest;
    /** Duration of the admission in ms, including a call to the home region. */
    admissionMs: number;
    member: Member;
    operator: { readonly name: string; readonly role: OperatorRole };
    memberUnread: Failure;
    timers: Timers;
    peer: Region;
    peerBody: JsonObject;
    origins?: readonly string[];
    failure?: LoggedFailure;
    failed?: Failure;
    met?: Caller;
    /** Whether the handler writes the log line, after the charge. */
    logged?: boolean;
  };
};

type Variables = AppEnv["Variables"];

/** Returns a variable, or undefined on paths that don't set it. */
export function readOptionalVariable<Name extends keyof Variables>(
  c: Context<AppEnv>,
  name: Name,
): Variables[Name] | undefined {
  return c.get(name);
}

/** The cached caller of a key that is admitted later, such as by the call for the hold. */
export type PresumedCaller = {
  readonly caller: Caller;
  readonly admitCaller: () => Promise<Result<AdmittedRequest>>;
  /** The admission. Null before `admitCaller` runs, or if the hold's call also admits the key. */
  admission: Promise<Result<AdmittedRequest>> | null;
};

export type AppContext = Context<AppEnv>;

/**
 * The outermost middleware. Creates the request ID, responds to CORS preflights, and adds headers
 * and a log line. Rejects all requests if the configuration is invalid. Never reads a body.
 */
export async function requestContext(c: AppContext, next: Next): Promise<void> {
  c.set("startedMs", now(c.env));
  c.set("requestId", internalRequestIds.get(c.req.raw) ?? mintId("req_", c.get("startedMs")));
  const answer = respondEarly(c);
  if (answer === null) await catchErrors(c, next);
  else c.res = answer;
  c.get("place")?.release();
  finishResponse(c);
}

/** Returns a failure's response, and records the failure for the log. */
export function fail(c: AppContext, failure: Failure): Response {
  c.set("failure", failure.kind);
  c.set("failed", failure);
  const config = readOptionalVariable(c, "config");
  return failureResponse(failure, c.get("requestId"), {
    dialect: c.get("dialect") ?? null,
    docsUrl: config?.docsUrl ?? null,
  });
}

/** Returns middleware that rejects the requests for which `check` returns a failure. */
export function rejectIf(
  check: (c: AppContext) => Failure | null | Promise<Failure | null>,
): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const failure = await check(c);
    if (failure !== null) return fail(c, failure);
    await next();
    return undefined;
  };
}

/** Logs an unexpected error and returns a 500 response. */
export function respondToUnexpectedError(error: unknown, c: AppContext): Response {
  logException(error, { request_id: c.get("requestId") });
  return fail(c, { kind: "internal" });
}

// A redirect isn't enough, because clients would keep sending keys over HTTP.
const HTTPS_ALONE =
  "This address requires https. A key that was sent over plain http may have been intercepted. Please replace it.";
/** Host names in private networks, for development. Cloudflare never routes them to a Worker. */
const PRIVATE_NAMES = [
  "[\\w-]+", // a name without a dot, such as localhost or a container's name
  "(?:[\\w-]+\\.)+(?:localhost|local|internal|lan|home\\.arpa)",
  "(?:127|10)(?:\\.\\d{1,3}){3}",
  "(?:192\\.168|169\\.254|172\\.(?:1[6-9]|2\\d|3[01]))(?:\\.\\d{1,3}){2}",
  "\\[(?:::1|f[cd][0-9a-f:]+|fe[89ab][0-9a-f:]+)\\]",
];
/** Matches the URL as text, because `URL` rejects some characters. */
const PRIVATE = new RegExp(`^http://(?:${PRIVATE_NAMES.join("|")})(?::\\d+)?(?:[/?#]|$)`, "i");

function isPlainHttp(url: string): boolean {
  return url.startsWith("http:") && !PRIVATE.test(url);
}

function respondEarly(c: AppContext): Response | null {
  const parsed = configOf(c.env);
  if (!parsed.ok) {
    logEvent("misconfigured", {
      request_id: c.get("requestId"),
      variables: parsed.problems.map(({ variable, problem }) => ({ variable, problem })),
    });
    return fail(c, { kind: "misconfigured" });
  }
  c.set("config", parsed.config);
  if (isPlainHttp(c.req.url)) {
    return fail(c, { kind: "invalid_request", message: HTTPS_ALONE, param: null });
  }
  if (c.req.method === "OPTIONS" && allowsAnyOrigin(c.req.path)) {
    return preflightResponse(c.req.raw);
  }
  if (hasValidEscapes(c.req.url)) return null;
  const message = "The path contains an invalid percent-escape.";
  return fail(c, { kind: "invalid_request", message, param: null });
}

async function catchErrors(c: AppContext, next: Next): Promise<void> {
  try {
    await next();
  } catch (thrown) {
    c.res = respondToUnexpectedError(thrown, c);
  }
}

function finishResponse(c: AppContext): void {
  const headers = writableHeaders(c);
  const admitted = readOptionalVariable(c, "admitted");
  headers.set("x-content-type-options", "nosniff");
  // The value `no-transform` prevents compression in proxies, which would delay events.
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  headers.set("cache-control", isStream ? "no-cache, no-transform" : "no-store");
  setDialectHeaders(c, headers, admitted);
  if (admitted !== undefined) setCallerHeaders(headers, admitted);
  else if (c.res.status >= 400 || readOptionalVariable(c, "peer") === undefined) {
    setKeylessHeaders(headers);
  }
  if (allowsAnyOrigin(c.req.path)) {
    addCorsHeaders(headers, c.req.header("origin"), c.get("origins") ?? null);
  }
  const config = readOptionalVariable(c, "config");
  if (c.get("logged") === true) return;
  if (hasFailed(c) || config?.logRequests === "all") log(c, admitted);
}

function hasFailed(c: AppContext): boolean {
  return c.res.status >= 400 || c.get("failure") !== undefined;
}

function log(c: AppContext, admitted: AdmittedRequest | undefined): void {
  const request = {
    requestId: c.get("requestId"),
    route: routePath(c),
    status: c.res.status,
    orgId: admitted?.caller.orgId ?? null,
    failure: c.get("failure") ?? null,
  };
  const nowMs = now(c.env);
  if (countInSummaryLine(readOptionalVariable(c, "config"), request, nowMs)) return;
  // The line never contains a key, prompt, output, path or query value.
  logEvent("request", {
    request_id: request.requestId,
    method: c.req.method,
    route: request.route,
    status: request.status,
    duration_ms: nowMs - c.get("startedMs"), // time until the headers, because streams run longer
    org_id: request.orgId,
    key_id: admitted?.caller.keyId ?? null,
    failure: request.failure,
  });
}

/** Returns the response's headers. Copies them if they are read-only, as those of `fetch` are. */
function writableHeaders(c: AppContext): Headers {
  const response = c.res;
  try {
    response.headers.set("x-request-id", c.get("requestId"));
    return response.headers;
  } catch {
    const copy = new Response(response.body, response);
    copy.headers.delete("server");
    copy.headers.set("x-request-id", c.get("requestId"));
    c.res = undefined; // otherwise, Hono would copy the old response's headers
    c.res = copy;
    return copy.headers;
  }
}

function setDialectHeaders(
  c: AppContext,
  headers: Headers,
  admitted: AdmittedRequest | undefined,
): void {
  const dialect = c.get("dialect");
  if (dialect === undefined) return;
  setHeaders(headers, dialect.headers(c.get("requestId"), admitted ?? null));
}

function setCallerHeaders(headers: Headers, { caller, rate, tokens }: AdmittedRequest): void {
  headers.set("openai-organization", caller.orgId);
  setHeaders(headers, createRateLimitHeaders(rate));
  if (tokens !== undefined) setHeaders(headers, createRateLimitHeaders(tokens, "tokens"));
}

function setHeaders(headers: Headers, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) headers.set(name, value);
}

/**
 * Sets browser security headers. Responses to requests with a key don't need them, because browser
 * navigation sends no key.
 */
function setKeylessHeaders(headers: Headers): void {
  // Docs pages set their own content security policy.
  const isPage = headers.get("content-type")?.startsWith("text/html") === true;
  if (!isPage) headers.set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  headers.set("strict-transport-security", "max-age=31536000");
}
