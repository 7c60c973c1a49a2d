import * as z from "zod/mini";
import type { IssuerEntry } from "../shared/config/config.ts";
import { fail } from "../shared/http/context.ts";
import type { AppContext } from "../shared/http/context.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { readJson } from "../shared/http/read-json.ts";
import { readAnonymousBody } from "../shared/http/request-slots.ts";
import type { IdentityClaims } from "../accounts/identity-providers/claims.ts";
import { randomTicket } from "../accounts/identity-providers/issuer-cache.ts";
import {
  createExpiredTicketCookie,
  LOGIN_PURPOSES,
  createTicketCookie,
  readLoginTicket,
} from "../accounts/identity-providers/ticket.ts";
import type { LoginTicket } from "../accounts/identity-providers/ticket.ts";
import { now } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Failure, Result } from "../shared/failure.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";
import {
  startCompanyLogin,
  COMPANY_ISSUER_ID,
  resumeCompanyLogin,
  canStartLogin,
} from "./company-login.route.ts";
import type { StartedLogin } from "./company-login.route.ts";
import { findLoginContext, issuerCacheOf } from "./issuer-context.route.ts";
import { finishLogIn } from "./finish-login.route.ts";
import { requireSession } from "./own-session.route.ts";
import { LOGIN_BODY_LIMITS, limitFailedLogins } from "./session.route.ts";
import { hasFreshLogIn } from "./step-up.ts";

const ISSUER_NAMES: Readonly<Record<IssuerEntry["kind"], string>> = {
  oidc: "your company",
  google: "Google",
  entra: "Microsoft",
  github: "GitHub",
};

/** Handles GET /console/api/login. */
export function listIssuersRoute(c: AppContext): Response {
  const { issuers, signUp, region, peers, companyDomains } = c.var.config;
  return c.json({
    region,
    issuers: issuers.map(({ id, kind, name = ISSUER_NAMES[kind] }) => ({ id, name })),
    sign_up: signUp,
    joins: companyDomains !== "off",
    regions: peers.map((peer) => ({ region: peer.region, console: `${peer.url}/console/` })),
  });
}

/** Matches addresses within the console, so that logins can't redirect to other sites. */
const ROUTE = /^#\/[\w/?=&.%-]{0,200}$/;
const startSchema = z.object({
  issuer: z.string().check(z.maxLength(20)),
  purpose: z.enum(LOGIN_PURPOSES),
  invitation: z.nullish(z.string().check(z.maxLength(200))),
  company: z.nullish(z.string().check(z.maxLength(253))),
  go: z.nullish(z.string().check(z.regex(ROUTE, "must be a route of the console"))),
});

/**
 * Handles POST /console/api/login/start. Returns the identity provider's URL and sets a cookie that
 * the callback checks. Stores nothing.
 */
export async function loginStartRoute(c: AppContext): Promise<Response> {
  const body = await readAnonymousBody(c, readJson, LOGIN_BODY_LIMITS);
  const fields = body.ok ? parseFields(startSchema, [], body.value) : body;
  const started = fields.ok ? await startLogin(c, fields.value) : fields;
  if (!started.ok) return fail(c, started.failure);
  c.header("set-cookie", started.value.cookie);
  return c.json({ location: started.value.location });
}

async function startLogin(
  c: AppContext,
  requested: z.infer<typeof startSchema>,
): Promise<Result<{ readonly location: string; readonly cookie: string }>> {
  const { issuer, purpose } = requested;
  const isCompanyLogin = issuer === COMPANY_ISSUER_ID;
  const started = isCompanyLogin
    ? await startCompanyLogin(c, purpose, requested.company ?? "")
    : startConfiguredLogin(c, issuer);
  if (!started.ok) return started;
  const { at, connection } = started.value;
  const person = await personToLogIn(c, purpose, connection);
  if (!person.ok) return person;
  const ticket: LoginTicket = {
    ...ticketFor(requested),
    connection: connection?.id ?? null,
    personId: person.value,
    at: at.nowMs,
  };
  const location = await issuerCacheOf(c).location(at, ticket);
  if (!location.ok) return location;
  const { region, keySecrets: secrets } = c.var.config;
  const cookie = await createTicketCookie(ticket, { region, issuer: at.entry.id, secrets });
  return success({ location: location.value, cookie });
}

function ticketFor({ purpose, invitation, company, go }: z.infer<typeof startSchema>) {
  return {
    ...randomTicket(),
    purpose,
    invitation: purpose === "accept" ? (invitation ?? null) : null,
    company: purpose === "join" ? (company ?? null) : null,
    go: go ?? "#/",
  };
}

function startConfiguredLogin(c: AppContext, issuer: string): Result<StartedLogin> {
  const at = findLoginContext(c, issuer);
  return at === null
    ? invalid("issuer must be a login method of this region.", "issuer")
    : success({ at, connection: null });
}

async function personToLogIn(
  c: AppContext,
  purpose: LoginTicket["purpose"],
  connection: CompanyIssuer | null,
): Promise<Result<string | null>> {
  if (purpose !== "link" && purpose !== "step_up") return success(null);
  const entered = await requireSession(c, true);
  if (!entered.ok) return entered;
  const { identity } = entered.value;
  if (identity.kind === "operator" && purpose === "step_up") return success(null);
  if (identity.kind !== "person") return refuse({ kind: "no_console_session" });
  if (!canStartLogin(identity, purpose, connection)) {
    return refuse({ kind: "role_required", roles: ["person"] });
  }
  // A linked login gives permanent access, so linking requires a recent login.
  const mayStart =
    purpose !== "link" || hasFreshLogIn(entered.value, now(c.env), c.var.config.stepUp);
  return mayStart ? success(identity.session.personId) : refuse({ kind: "login_too_old" });
}

/**
 * Handles GET /console/api/login/callback/{issuer}. Redirects (303) to the console with a session
 * or an error. Register it before `requireConsolePage`, because another site redirects to it.
 */
export async function callbackRoute(c: AppContext): Promise<Response> {
  const { region } = c.var.config;
  const isPage = (name: string, value: string): boolean => (c.req.header(name) ?? value) === value;
  if (!isPage("sec-fetch-mode", "navigate") || !isPage("sec-fetch-dest", "document")) {
    return fail(c, { kind: "origin_not_allowed" });
  }
  const ticket = await readRequestTicket(c);
  const result = await limitFailedLogins(c, () => completeLogin(c, ticket));
  const go = result.ok
    ? result.value.go
    : addFailureQuery(ticket?.go, failureQuery(result.failure));
  c.header("set-cookie", createExpiredTicketCookie(region));
  for (const cookie of result.ok ? result.value.cookies : []) {
    c.header("set-cookie", cookie, { append: true });
  }
  if (!result.ok) c.set("failure", result.failure.kind);
  const response = c.redirect(`/console/${go}`, 303);
  response.headers.set("referrer-policy", "no-referrer");
  return response;
}

function failureQuery(failure: Failure): string {
  if (failure.kind === "login_refused") {
    const { why, account = null } = failure;
    return new URLSearchParams({ why, ...(account !== null && { account }) }).toString();
  }
  const why = failure.kind === "conflict" ? (failure.code ?? "conflict") : failure.kind;
  return `why=${why}`;
}

function addFailureQuery(go = "#/", query: string): string {
  if (go === "#/") return `#/login?${query}`;
  return `${go}${go.includes("?") ? "&" : "?"}${query}`;
}

function readRequestTicket(c: AppContext): Promise<LoginTicket | null> {
  const { region, keySecrets: secrets } = c.var.config;
  const at = { region, issuer: c.req.param("issuer") ?? "", secrets, nowMs: now(c.env) };
  return readLoginTicket(c.req.header("cookie") ?? "", at);
}

async function completeLogin(
  c: AppContext,
  ticket: LoginTicket | null,
): Promise<Result<{ readonly go: string; readonly cookies: readonly string[] }>> {
  const id = c.req.param("issuer") ?? "";
  const { operatorLogins: logins } = c.var.config;
  if (ticket === null) return refuse({ kind: "login_refused", why: "expired" });
  const { connection: row = null } = ticket;
  const started = row === null ? startConfiguredLogin(c, id) : await resumeCompanyLogin(c, id, row);
  if (!started.ok && isIssuerGone(started.failure)) {
    return refuse({ kind: "login_refused", why: "expired" });
  }
  if (!started.ok) return started;
  const { at, connection } = started.value;
  const claims: Result<IdentityClaims> = await issuerCacheOf(c).claims(
    at,
    ticket,
    new URL(c.req.url),
  );
  if (!claims.ok) return claims;
  return finishLogIn(c, { entry: at.entry, logins, ticket, connection, claims: claims.value });
}

function isIssuerGone({ kind }: Failure): boolean {
  return kind === "invalid_request" || kind === "login_refused";
}
