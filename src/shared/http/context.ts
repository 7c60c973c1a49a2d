import type { Context, Next } from "hono";
import { routePath } from "hono/route";
import { configOf } from "../config/config.ts";
import type { Config, OperatorRole } from "../config/config.ts";
import type { Admitted, Caller, Member } from "../caller.ts";
import { now } from "../clock.ts";
import type { Failure, Result } from "../failure.ts";
import { mintId } from "../id.ts";
import type { ShedReason, Slot } from "../in-flight.ts";
import { logEvent, logException } from "../log.ts";
import type { Timers } from "../timers.ts";
import { allowOrigin, allowsOrigins, preflight } from "./cors.ts";
import type { Dialect } from "./dialect.ts";
import { failureResponse } from "./failure-response.ts";
import { givenId } from "./given-id.ts";
import type { JsonObject } from "./json-text.ts";
import { setRateHeaders } from "./rate-headers.ts";
import { hasValidEscapes } from "./routing-path.ts";
import { isSummed, logRequest } from "./request-log.ts";
import type { LoggedFailure } from "./request-log.ts";
import type { Region } from "../regions.ts";

/**
 * What travels with a request. What may be missing where it is asked for says so; the rest is set before any
 * handler runs that asks for it: `admission` and `admitted` by authentication.
 */
export type AppEnv = {
  Bindings: Env;
  Variables: {
    requestId: string;
    /** How its path speaks of failures, where that is not OpenAI's way. */
    dialect?: Dialect;
    startedMs: number;
    config: Config;
    /** The verdict on the key, asked for before the body is read. */
    admission: Promise<Result<Admitted>>;
    /**
     * Instead of `admission`: whose request it is if its key lives. Its wallet says so in the call that
     * holds for it; a request that comes to no hold asks by `admit` before it is answered.
     */
    presumed?: PresumedCaller;
    /** The place of a request that costs money among those in flight, or why it has none and is shed. */
    slot?: Slot | ShedReason;
    /** The place of a request with a body that is not paid for: free again when it is answered. */
    place?: Slot;
    admitted: Admitted;
    /** How long that verdict took: at a peer a key's first use asks its home. */
    admissionMs: number;
    /** Set by `requireMember` on the paths that ask for a role. */
    member: Member;
    /** Below `/admin/v1`: who operates. */
    operator: { readonly name: string; readonly role: OperatorRole };
    /** Set by `readMember` instead of `member` while the book cannot say. */
    memberUnread: Failure;
    /** All deadlines of the request; whoever answers it closes them. */
    timers: Timers;
    /** On the peers' paths: the region that signed the request, and the body that it signed. */
    peer: Region;
    peerBody: JsonObject;
    /** The pages that may read the answer, where its session names them. */
    origins?: readonly string[];
    /** What the request failed with, for its log line; set by `fail`, and for an answer of home's. */
    failure?: LoggedFailure;
    /** The whole of it, where it is this region's. */
    failed?: Failure;
    /** Whose key it is, where this isolate has met it before; it may have died since. */
    met?: Caller;
    /** Whoever answers writes the request's line itself, once it has ended: a paid one's comes after its charge. */
    logged?: boolean;
  };
};

type Variables = AppEnv["Variables"];

/** A variable where what sets it may not have run: on a path that it does not stand before, or when it refused. */
export function optionalVariables<Name extends keyof Variables>(
  c: Context<AppEnv>,
  name: Name,
): Variables[Name] | undefined {
  return c.get(name);
}

/** Who calls, not yet admitted, and how to ask for it. */
export type PresumedCaller = {
  readonly caller: Caller;
  /** Asks for it apart from the hold, once. */
  readonly admit: () => Promise<Result<Admitted>>;
  /** Null while nobody has: then the hold asks for it. */
  admission: Promise<Result<Admitted>> | null;
};

export type AppContext = Context<AppEnv>;

/**
 * The outermost middleware and the only one for every path: mints the request id (a client's own is
 * ignored; what a peer asks for keeps the id that its client was told), refuses to serve a misconfigured deployment, answers preflights, and finishes every
 * answer, errors and streams included, with its headers and one log line. Never reads a body.
 */
export async function requestContext(c: AppContext, next: Next): Promise<void> {
  c.set("startedMs", now(c.env));
  c.set("requestId", givenId(c.req.raw) ?? mintId("req_", c.get("startedMs")));
  const answer = early(c);
  if (answer === null) await guarded(c, next);
  else c.res = answer;
  c.get("place")?.release();
  finish(c);
}

/** Answers with a failure and remembers its kind for the request's log line. */
export function fail(c: AppContext, failure: Failure): Response {
  c.set("failure", failure.kind);
  c.set("failed", failure);
  const config = optionalVariables(c, "config");
  return failureResponse(failure, c.get("requestId"), {
    dialect: c.get("dialect") ?? null,
    docsUrl: config?.docsUrl ?? null,
  });
}

/** A bug: 500 without details. For `app.onError`. */
export function failUnexpectedly(error: unknown, c: AppContext): Response {
  logException(error, { request_id: c.get("requestId") });
  return fail(c, { kind: "internal" });
}

// Nothing is sent on to https: a client that follows would send its key by http again and again.
const HTTPS_ALONE =
  "This address is served by https alone. A key that came by plain http may have been read on its way: replace it.";
/** Names and addresses that only a local or private network resolves. A Worker on Cloudflare never receives them. */
const PRIVATE_NAMES = [
  "[\\w-]+", // a name without a dot: localhost, or a container's
  "(?:[\\w-]+\\.)+(?:localhost|local|internal|lan|home\\.arpa)",
  "(?:127|10)(?:\\.\\d{1,3}){3}",
  "(?:192\\.168|169\\.254|172\\.(?:1[6-9]|2\\d|3[01]))(?:\\.\\d{1,3}){2}",
  "\\[(?:::1|f[cd][0-9a-f:]+|fe[89ab][0-9a-f:]+)\\]",
];
/** Matches the text, because a request's URL may contain characters that `URL` rejects. */
const PRIVATE = new RegExp(`^http://(?:${PRIVATE_NAMES.join("|")})(?::\\d+)?(?:[/?#]|$)`, "i");

function isPlainHttp(url: string): boolean {
  return url.startsWith("http:") && !PRIVATE.test(url);
}

/** What is answered before any route is asked, or null. */
function early(c: AppContext): Response | null {
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
  if (c.req.method === "OPTIONS" && allowsOrigins(c.req.path)) return preflight(c.req.raw);
  if (hasValidEscapes(c.req.url)) return null;
  const message = "The path holds a malformed percent-escape.";
  return fail(c, { kind: "invalid_request", message, param: null });
}

/** Hono hands thrown `Error`s to `onError`; this catches whatever else can be thrown. */
async function guarded(c: AppContext, next: Next): Promise<void> {
  try {
    await next();
  } catch (thrown) {
    c.res = failUnexpectedly(thrown, c);
  }
}

function finish(c: AppContext): void {
  const headers = writableHeaders(c);
  const admitted = optionalVariables(c, "admitted");
  headers.set("x-content-type-options", "nosniff");
  // no-transform: a proxy that compresses a stream would hold its events back
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  headers.set("cache-control", isStream ? "no-cache, no-transform" : "no-store");
  setDialectHeaders(c, headers, admitted);
  if (admitted !== undefined) setCallerHeaders(headers, admitted);
  else if (c.res.status >= 400 || optionalVariables(c, "peer") === undefined) {
    setKeylessHeaders(headers);
  }
  if (allowsOrigins(c.req.path)) {
    allowOrigin(headers, c.req.header("origin"), c.get("origins") ?? null);
  }
  const config = optionalVariables(c, "config");
  if (c.get("logged") === true) return;
  if (isRefused(c) || config?.logRequests === "all") log(c, admitted);
}

/** Also where the refusal is told in a stream, whose status is 200. */
function isRefused(c: AppContext): boolean {
  return c.res.status >= 400 || c.get("failure") !== undefined;
}

function log(c: AppContext, admitted: Admitted | undefined): void {
  const request = {
    requestId: c.get("requestId"),
    route: routePath(c),
    status: c.res.status,
    orgId: admitted?.caller.orgId ?? null,
    failure: c.get("failure") ?? null,
  };
  const nowMs = now(c.env);
  if (isSummed(optionalVariables(c, "config"), request, nowMs)) return;
  const durationMs = nowMs - c.get("startedMs");
  const keyId = admitted?.caller.keyId ?? null;
  logRequest({ ...request, method: c.req.method, durationMs, keyId });
}

/** With the request's id. Headers of an answer that came from `fetch` cannot be changed; its copy's can. */
function writableHeaders(c: AppContext): Headers {
  const response = c.res;
  try {
    response.headers.set("x-request-id", c.get("requestId"));
    return response.headers;
  } catch {
    const copy = new Response(response.body, response);
    copy.headers.delete("server"); // the other end's
    copy.headers.set("x-request-id", c.get("requestId"));
    c.res = undefined; // else Hono copies every header again
    c.res = copy;
    return copy.headers;
  }
}

function setDialectHeaders(c: AppContext, headers: Headers, admitted: Admitted | undefined): void {
  const dialect = c.get("dialect");
  if (dialect === undefined) return;
  const own = dialect.headers(c.get("requestId"), admitted ?? null);
  for (const [name, value] of Object.entries(own)) headers.set(name, value);
}

/** On every answer to an authenticated request, whatever its outcome. */
function setCallerHeaders(headers: Headers, { caller, rate, tokens }: Admitted): void {
  headers.set("openai-organization", caller.orgId);
  setRateHeaders(headers, rate);
  if (tokens !== undefined) setRateHeaders(headers, tokens, "tokens");
}

/**
 * For an answer that no key asked for, which a browser may be made to show: nothing of it runs or is
 * framed, and the next visit is by https. A page of the site brings its own policy. An answer to a key cannot be a page: a browser that follows a
 * link sends no Authorization. So paid answers go without these.
 */
function setKeylessHeaders(headers: Headers): void {
  const isPage = headers.get("content-type")?.startsWith("text/html") === true; // of the site, with its own policy
  if (!isPage) headers.set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  headers.set("strict-transport-security", "max-age=31536000");
}
