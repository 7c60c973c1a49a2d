import { fail } from "../shared/http/context.ts";
import type { AppContext } from "../shared/http/context.ts";
import type { FreshLoginRule, Route } from "../shared/http/route.ts";
import { internalRequestIds } from "../shared/http/internal-request-id.ts";
import { respondNotFound } from "../shared/http/not-found.ts";
import { routingPath } from "../shared/http/routing-path.ts";
import { internalCallers, toAdmittedRequest } from "../accounts/keys/internal-caller.ts";
import { MEMBER_ROLES, createRequestCredential } from "../shared/caller.ts";
import { now } from "../shared/clock.ts";
import type { Failure } from "../shared/failure.ts";
import { operatorByRequest } from "../operator/operator-token.ts";
import { readJson } from "../shared/http/read-json.ts";
import { LOGIN_BODY_LIMITS } from "./session.route.ts";
import { viewerAdmission } from "./as-customer.route.ts";
import { PLAYGROUND_PATHS } from "./allowed-calls.ts";
import { requireSession, respondToSessionFailure } from "./own-session.route.ts";
import type { ActiveIdentity, ActivePerson, ActiveSession } from "./own-session.route.ts";
import { findFreshLoginRule, hasFreshLogIn, requiresNewLogin } from "./step-up.ts";

type DispatchTarget = {
  readonly dispatch: (
    request: Request,
    env: Env,
    context: ExecutionContext,
  ) => Promise<Response> | Response;
  readonly paidPaths: ReadonlySet<string>;
  readonly rows: readonly Route[];
};

/** Request headers to forward. Credentials and `Origin` aren't forwarded. */
const REQUEST_HEADERS = [
  "accept",
  "anthropic-beta",
  "anthropic-version",
  "content-encoding",
  "content-length",
  "content-type",
  "idempotency-key",
  "x-end-user",
  "x-tags",
];

/**
 * Handles /console/api/v1/* as `/v1/*` with the session's key, and for operators
 * /console/api/admin/v1/* as `/admin/v1/*`. Only playground requests are paid and count toward the
 * key's limits.
 */
export async function dispatchConsoleCall(
  c: AppContext,
  target: DispatchTarget,
): Promise<Response> {
  const request = innerRequest(c.req.raw);
  const path = routingPath(request);
  const isPaid = c.req.method === "POST" && target.paidPaths.has(path);
  if (isPaid && !PLAYGROUND_PATHS.has(path)) return respondNotFound(c);
  const entered = await requireSession(c, !isPaid);
  if (!entered.ok) return respondToSessionFailure(c, entered.failure);
  const isFresh = hasFreshLogIn(entered.value, now(c.env), c.var.config.stepUp);
  const needsNoLogin =
    isPaid ||
    isFresh ||
    !(await needsFreshLogin(request, findFreshLoginRule(target.rows, c.req.method, path)));
  const refusal = refusalOf(c, entered.value, needsNoLogin);
  if (refusal !== null) return fail(c, refusal);
  if (!setInnerCaller(c, request, { session: entered.value, path, isPaid })) {
    const roles = path.startsWith("/admin/") ? ["operator"] : MEMBER_ROLES;
    return fail(c, { kind: "role_required", roles });
  }
  internalRequestIds.set(request, c.var.requestId);
  c.set("logged", true); // the inner request has its own log line
  return target.dispatch(request, c.env, c.executionCtx as ExecutionContext);
}

function innerRequest(outer: Request): Request {
  const { origin, pathname, search } = new URL(outer.url);
  const path = pathname.replace(/^\/+console\/+api\/+/, "/");
  const headers = new Headers();
  for (const name of REQUEST_HEADERS) {
    const value = outer.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const { method, body, signal } = outer;
  return new Request(origin + path + search, { method, headers, body, signal });
}

async function needsFreshLogin(request: Request, freshLogin: FreshLoginRule): Promise<boolean> {
  if (typeof freshLogin === "string") return requiresNewLogin(freshLogin, null);
  const body = await readJson(request.clone(), LOGIN_BODY_LIMITS);
  return requiresNewLogin(freshLogin, body.ok ? body.value : null);
}

/**
 * Returns a failure for a write by an operator viewing a customer, or for a call that needs a newer
 * login.
 */
function refusalOf(c: AppContext, session: ActiveSession, needsNoLogin: boolean): Failure | null {
  const { identity } = session;
  const isRead = c.req.method === "GET" || c.req.method === "HEAD";
  if (identity.kind === "operator" && identity.as !== null && !isRead) return { kind: "read_only" };
  return needsNoLogin ? null : { kind: "login_too_old" };
}

type ConsoleCall = {
  readonly session: ActiveSession;
  readonly path: string;
  readonly isPaid: boolean;
};

/** Sets the inner request's caller. Returns false if the session can't make the call. */
function setInnerCaller(c: AppContext, request: Request, consoleCall: ConsoleCall): boolean {
  const { identity, rate } = consoleCall.session;
  const isAdmin = /^\/admin\/v1(?:\/|$)/.test(consoleCall.path);
  if (identity.kind === "operator") {
    const { as, operator } = identity;
    if (isAdmin) {
      operatorByRequest.set(request, operator);
      return true;
    }
    // Stored responses belong to the customer, so operators can't read them.
    if (as === null || /^\/v1\/responses(?:\/|$)/.test(consoleCall.path)) return false;
    const admitted = viewerAdmission(as, rate, c.var.config.region);
    internalCallers.set(request, { admitted });
    return true;
  }
  if (isAdmin) return false;
  const key = keyOfIdentity(identity);
  if (key === null) return false;
  const { verified, known } = key;
  if (consoleCall.isPaid) internalCallers.set(request, { key: verified });
  else {
    const by = createRequestCredential(verified.hash, verified.shown);
    const admitted = toAdmittedRequest(known, by, c.var.config.region);
    const isPerson = identity.kind === "person";
    const caller = { ...admitted.caller, ...(isPerson && { isPerson }) };
    internalCallers.set(request, { admitted: { ...admitted, caller, rate } });
  }
  return true;
}

function keyOfIdentity(
  identity: Exclude<ActiveIdentity, { readonly kind: "operator" }>,
): ActivePerson["key"] {
  return identity.kind === "person"
    ? identity.key
    : { verified: identity.key, known: identity.known };
}
