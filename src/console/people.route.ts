import type { HonoBase } from "hono/hono-base";
import { fail } from "../shared/http/context.ts";
import type { AppContext, AppEnv } from "../shared/http/context.ts";
import { readBody, respond } from "../shared/http/endpoint.ts";
import type { EndpointResult } from "../shared/http/endpoint.ts";
import { refuseOtherMethods } from "../shared/http/not-found.ts";
import { readJson } from "../shared/http/read-json.ts";
import { readAnonymousBody } from "../shared/http/request-slots.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { isStorageError, toStorageFailure } from "../shared/storage-failure.ts";
import { createMailSender } from "../accounts/people/mail.ts";
import { previewInvitation } from "../accounts/people/invitation-handlers.ts";
import { createMemberActor } from "../accounts/people/people-call.ts";
import type {
  PersonConsoleSessions,
  PeopleCall,
  PeopleServices,
  ConsoleSessionSummary,
} from "../accounts/people/people-call.ts";
import { listIdentities } from "../accounts/people/people.store.ts";
import { personConsoleAccountName } from "../accounts/people/removal.ts";
import type { SessionLocation } from "./session-cookie.ts";
import {
  callConsoleSession,
  requireSession,
  respondToSessionFailure,
} from "./own-session.route.ts";
import type { ActivePerson, ActiveSession } from "./own-session.route.ts";
import { PEOPLE_ROUTES } from "../accounts/people/endpoints.ts";
import type { PeopleEndpoint } from "../accounts/people/endpoints.ts";
import type { ListedSession } from "../shared/contracts/console-session.ts";
import { LOGIN_BODY_LIMITS, limitFailedLogins } from "./session.route.ts";
import { createCompanyLoginContext, issuerCacheOf } from "./issuer-context.route.ts";
import { hasFreshLogIn } from "./step-up.ts";
import { SYSTEM_ACTOR } from "../shared/event.ts";
import { createKeyServices } from "../accounts/keys/revocation.ts";
import { takeWaitingEventsLater } from "../accounts/organizations/member.route.ts";

const PREVIEW_ROUTE = { method: "POST", path: "/console/api/people/invitation/preview" } as const;

/** Adds the routes for people to the app. Register them after `requireConsolePage`. */
export function addPeopleRoutes(app: HonoBase<AppEnv>): void {
  app.post(PREVIEW_ROUTE.path, previewRoute);
  for (const row of PEOPLE_ROUTES) app.on(row.method, [row.path], (c) => handlePeopleCall(c, row));
  refuseOtherMethods(app, [...PEOPLE_ROUTES, PREVIEW_ROUTE]);
}

async function previewRoute(c: AppContext): Promise<Response> {
  const body = await readAnonymousBody(c, readJson, LOGIN_BODY_LIMITS);
  if (!body.ok) return fail(c, body.failure);
  const json = body.value;
  const preview = await limitFailedLogins(c, async () => {
    const response = await runHandler(c, () => previewInvitation(createPeopleServices(c), json));
    const isForged = !response.ok && response.failure.kind === "not_found";
    return isForged ? refuse({ kind: "login_refused", why: "refused" }) : response;
  });
  const isUnknown = !preview.ok && preview.failure.kind === "login_refused";
  if (isUnknown) return fail(c, { kind: "not_found", message: "No such invitation." });
  return respond(c, preview);
}

async function handlePeopleCall(c: AppContext, row: PeopleEndpoint): Promise<Response> {
  const entered = await requireSession(c, true);
  if (!entered.ok) return respondToSessionFailure(c, entered.failure);
  const called = await peopleCallOf(c, entered.value, row);
  if (!called.ok) return fail(c, called.failure);
  const call = called.value;
  const { as } = call;
  if (row.roles === null) {
    return respond(c, await runHandler(c, () => row.handle(call)));
  }
  if (as === null || !row.roles.includes(as.role)) {
    return fail(c, { kind: "role_required", roles: row.roles });
  }
  return respond(c, await runHandler(c, () => row.handle({ ...call, as })));
}

async function peopleCallOf(
  c: AppContext,
  session: ActiveSession,
  row: PeopleEndpoint,
): Promise<Result<PeopleCall>> {
  const { identity } = session;
  if (identity.kind !== "person" || !canCall(identity, row)) {
    return refuse({ kind: "role_required", roles: ["person"] });
  }
  const services = createPeopleServices(c);
  if (row.freshLogin !== "never" && !hasFreshLogIn(session, services.now, c.var.config.stepUp)) {
    return refuse({ kind: "login_too_old" });
  }
  const body = hasBody(c, row)
    ? await readBody(c, `person:${identity.session.personId}`)
    : success(null);
  if (!body.ok) return body;
  const { memberId, tenant, realm } = identity.session;
  return success({
    ...services,
    ...identity.acting,
    ...(memberId !== null && { actor: createMemberActor(memberId) }),
    params: c.req.param(),
    body: body.value?.json ?? null,
    sessions: sessionsOf(c, session, identity),
    tenant: tenant ?? null,
    realm: realm ?? "",
  });
}

/**
 * Reports whether a session can make the call. A session from a company's identity provider can't
 * access the person's own data.
 */
function canCall({ session }: ActivePerson, { roles, method, path }: PeopleEndpoint): boolean {
  const isOwn = roles === null && !(method === "GET" && path === "/console/api/people/me");
  return session.realm === undefined || !isOwn;
}

function hasBody(c: AppContext, { method }: PeopleEndpoint): boolean {
  return method !== "GET" && c.req.raw.body !== null && c.req.header("content-length") !== "0";
}

/** Calls `run`, and converts its storage errors to failures. */
export async function catchStorageErrors<T>(
  c: AppContext,
  run: () => Promise<Result<T>>,
): Promise<Result<T>> {
  try {
    return await run();
  } catch (error) {
    if (!isStorageError(error)) throw error;
    logWarning("people_not_served", { request_id: c.var.requestId, reason: errorMessageOf(error) });
    return refuse(toStorageFailure(error));
  }
}

async function runHandler(
  c: AppContext,
  run: () => Promise<EndpointResult>,
): Promise<EndpointResult> {
  const response = await catchStorageErrors<EndpointResult>(c, async () => success(await run()));
  return response.ok ? response.value : response;
}

function sessionsOf(
  c: AppContext,
  { place }: ActiveSession,
  { session }: ActivePerson,
): PersonConsoleSessions {
  const { personId, realm } = session;
  const places = async (): Promise<readonly Pick<SessionLocation, "account">[]> => {
    const known = realm === undefined ? await listIdentities(c.env.DB, personId) : [];
    const realms = new Set(known.map((one) => one.realm).filter((one) => one !== ""));
    return [
      place,
      ...[...realms].map((one) => ({ account: personConsoleAccountName(personId, one) })),
    ];
  };
  return {
    id: place.session,
    list: async () => {
      const listed: ConsoleSessionSummary[] = [];
      for (const one of await places()) {
        const found = await callConsoleSession(c, one, (sessionObject) => sessionObject.list());
        if (!found.ok) return found;
        listed.push(...found.value.flatMap((known) => sessionSummary(known, realm)));
      }
      return success(listed);
    },
    close: async (id) => {
      for (const one of await places()) {
        const closed = await callConsoleSession(c, one, (sessionObject) => sessionObject.close(id));
        if (!closed.ok) return closed;
      }
      return success(null);
    },
    act: ({ memberId, orgId }) =>
      callConsoleSession(c, place, (sessionObject) =>
        sessionObject.become(place.session, { ...session, memberId, orgId }),
      ),
  };
}

function sessionSummary(
  { name, identity, expiresAt }: ListedSession,
  realm: string | undefined,
): readonly ConsoleSessionSummary[] {
  if (identity.kind !== "person") return [];
  if (realm !== undefined && identity.realm !== realm) return [];
  const { browser, issuer, openedAt, freshAt, freshBy } = identity;
  return [{ id: name, browser, issuer, openedAt, freshAt, freshBy, expiresAt }];
}

export function createPeopleServices(c: AppContext): PeopleServices {
  const { config } = c.var;
  const { numbers, signUp, mail, companyDomains } = config;
  return {
    ...createKeyServices(c.env, config, SYSTEM_ACTOR),
    takeEvents: (orgId) => takeWaitingEventsLater(c, orgId),
    origin: new URL(c.req.url).origin,
    companyDomains,
    isSandbox: config.sandbox,
    reachIssuer: (entry) =>
      issuerCacheOf(c).checkReachable(createCompanyLoginContext(c, entry, "")),
    mail: createMailSender(mail, (work) => c.executionCtx.waitUntil(work)),
    signUp: {
      mode: signUp,
      maxPerHour: numbers.SIGN_UPS_AN_HOUR,
      maxPerDayAndAddress: numbers.SIGN_UPS_A_DAY_AN_ADDRESS,
      creditMicro: numbers.SIGN_UP_CREDIT_MICRO,
      maxCreditsPerDayMicro: numbers.SIGN_UP_CREDITS_A_DAY_MICRO,
    },
  };
}
