import type { Next } from "hono";
import { fail } from "../shared/http/context.ts";
import type { AppContext } from "../shared/http/context.ts";

import { queryDatabase } from "../shared/query-database.ts";
import { presentedSecretHash } from "../shared/caller.ts";
import type { VerifiedKey } from "../shared/caller.ts";
import { consoleAccountName } from "../shared/console-account.ts";
import { now } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Failure, Result } from "../shared/failure.ts";
import { objectsOf } from "../shared/contracts/objects.ts";
import type { Key } from "../shared/key.ts";
import { callObject } from "../shared/reach-object.ts";
import { findOperatorByHash, findOperatorByLogin } from "../operator/operator-token.ts";
import type { Operator } from "../operator/operator-token.ts";
import { findActingPerson } from "../accounts/people/people.store.ts";
import type { ActingPerson } from "../accounts/people/people.store.ts";
import { personConsoleAccountName } from "../accounts/people/removal.ts";
import type {
  ConsoleIdentity,
  ConsoleSessionMethods,
  AdmittedConsoleSession,
  OperatorIdentity,
  PersonSession,
} from "../shared/contracts/console-session.ts";
import {
  createExpiredSessionCookie,
  mintSessionCookie,
  SESSION_LIFETIME_S,
  readSessionCookie,
} from "./session-cookie.ts";
import type { SessionLocation } from "./session-cookie.ts";

/** A logged-in person. `key` is the current membership's console key, if any. */
export type ActivePerson = {
  readonly kind: "person";
  readonly session: PersonSession;
  readonly acting: ActingPerson;
  readonly key: { readonly verified: VerifiedKey; readonly known: Key } | null;
};

/** A logged-in operator. `as` is the ID of the viewed customer. */
export type ActiveOperator = {
  readonly kind: "operator";
  readonly operator: Operator;
  readonly as: string | null;
  readonly session: OperatorIdentity;
};

export type ActiveIdentity =
  | ActiveOperator
  | { readonly kind: "key"; readonly key: VerifiedKey; readonly known: Key }
  | ActivePerson;
export type ActiveSession = Omit<AdmittedConsoleSession, "identity"> & {
  readonly identity: ActiveIdentity;
  readonly place: SessionLocation;
};

/**
 * Allows only calls from the console's own pages. Before reading the cookie, rejects cross-site
 * requests, and changes without `Origin`, with 403.
 */
export async function requireConsolePage(c: AppContext, next: Next): Promise<Response | undefined> {
  const site = c.req.header("sec-fetch-site") ?? "same-origin";
  const origin = c.req.header("origin");
  const isOwn = origin === new URL(c.req.url).origin;
  const isRead = c.req.method === "GET" && origin === undefined;
  if ((site !== "same-origin" && site !== "none") || !(isOwn || isRead)) {
    return fail(c, { kind: "origin_not_allowed" });
  }
  await next();
  return undefined;
}

/** Creates a session for 12 hours and ends the browser's previous one. */
export async function openSession(
  c: AppContext,
  identity: ConsoleIdentity,
): Promise<Result<{ readonly cookie: string; readonly expiresAt: number } & SessionLocation>> {
  const expiresAt = now(c.env) + SESSION_LIFETIME_S * 1000;
  const cookie = await mintSessionCookie(c.var.config, accountOf(identity), SESSION_LIFETIME_S);
  const opened = await callConsoleSession(c, cookie, (sessions) =>
    sessions.open(cookie.session, identity, expiresAt),
  );
  if (!opened.ok) return opened;
  const previous = await findOwnSession(c);
  if (previous !== null) c.executionCtx.waitUntil(closeSession(c, previous));
  const { header, account, session } = cookie;
  return success({ cookie: header, expiresAt, account, session });
}

function accountOf(identity: ConsoleIdentity): string {
  if (identity.kind === "person") {
    return personConsoleAccountName(identity.personId, identity.realm);
  }
  if (identity.kind === "key") return consoleAccountName(identity.key.hash);
  if (identity.kind === "operator") return consoleAccountName(identity.tokenHash);
  return consoleAccountName(`operator/${identity.issuer}/${identity.subject}`);
}

/**
 * Returns the cookie's session. Fails with 401 if its key, operator or member is no longer active,
 * or with 409 if the page shows another organization (`x-organization`).
 */
export async function requireSession(
  c: AppContext,
  isCounted: boolean,
): Promise<Result<ActiveSession>> {
  const place = await findOwnSession(c);
  if (place === null) return refuse({ kind: "no_console_session" });
  const entered = await callConsoleSession(c, place, (sessions) =>
    sessions.enter(place.session, isCounted),
  );
  if (!entered.ok) return entered;
  const active = await findActiveIdentity(c, entered.value.identity);
  if (active.ok) {
    return requireShownOrganization(c, { ...entered.value, identity: active.value, place });
  }
  if (active.failure.kind !== "invalid_api_key") return active;
  c.executionCtx.waitUntil(closeSession(c, place));
  return refuse({ kind: "no_console_session" });
}

function requireShownOrganization(c: AppContext, session: ActiveSession): Result<ActiveSession> {
  const shown = c.req.header("x-organization");
  const { identity } = session;
  if (shown === undefined || identity.kind === "key") return success(session);
  const current = identity.kind === "person" ? identity.session.orgId : identity.as;
  if (shown === current) return success(session);
  const message = "You have switched to another organization. Please reload this page.";
  return refuse({ kind: "conflict", message, param: null, code: "other_organization" });
}

/** Returns an error response, which deletes an ended session's cookie. */
export function respondToSessionFailure(c: AppContext, failure: Failure): Response {
  const response = fail(c, failure);
  if (failure.kind === "no_console_session") {
    response.headers.set("set-cookie", createExpiredSessionCookie(c.var.config.region));
  }
  return response;
}

export async function findActiveIdentity(
  c: AppContext,
  identity: ConsoleIdentity,
): Promise<Result<ActiveIdentity>> {
  const { operators, operatorLogins } = c.var.config;
  if (identity.kind === "person") return findActivePerson(c, identity);
  if (identity.kind === "key") {
    const known = await readKey(c, identity.key);
    return known.ok ? success({ ...identity, known: known.value }) : known;
  }
  const operator =
    identity.kind === "operator"
      ? await findOperatorByHash(identity.tokenHash, operators)
      : findOperatorByLogin(identity, operatorLogins);
  if (operator === null) return refuse({ kind: "invalid_api_key" });
  return success({ kind: "operator", operator, as: identity.as ?? null, session: identity });
}

async function findActivePerson(
  c: AppContext,
  session: PersonSession,
): Promise<Result<ActiveIdentity>> {
  const found = await queryDatabase(
    () => findActingPerson(c.env.DB, session),
    "person_unreadable",
    {
      org_id: session.orgId ?? session.personId,
    },
  );
  if (!found.ok) return found;
  const acting = found.value;
  if (acting === null) return refuse({ kind: "invalid_api_key" });
  if (acting.as === null) return success({ kind: "person", session, acting, key: null });
  const home = c.var.config.region;
  const verified: VerifiedKey = { hash: acting.as.keyHash, home, scope: "regional" };
  const known = await readKey(c, verified);
  if (!known.ok) return known;
  return success({ kind: "person", session, acting, key: { verified, known: known.value } });
}

function readKey(c: AppContext, key: VerifiedKey): Promise<Result<Key>> {
  return callObject(() =>
    objectsOf(c.env).register(key.hash).whose(presentedSecretHash(key.hash, key.shown)),
  );
}

export function findOwnSession(c: AppContext): Promise<SessionLocation | null> {
  return readSessionCookie(c.req.header("cookie"), c.var.config);
}

export function closeSession(c: AppContext, place: SessionLocation): Promise<Result<null>> {
  return callConsoleSession(c, place, (sessions) => sessions.close(place.session));
}

export function callConsoleSession<T>(
  c: AppContext,
  { account }: Pick<SessionLocation, "account">,
  call: (sessions: ConsoleSessionMethods) => Promise<Result<T>>,
): Promise<Result<T>> {
  return callObject(() => call(objectsOf(c.env).consoles(account)));
}
