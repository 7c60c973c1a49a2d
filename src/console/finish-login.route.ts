import type { AppContext } from "../shared/http/context.ts";
import type { IssuerEntry, OperatorLogin } from "../shared/config/config.ts";
import type { IdentityClaims } from "../accounts/identity-providers/claims.ts";
import type { LoginTicket } from "../accounts/identity-providers/ticket.ts";
import { now, timestamp } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { ensureConsoleKey } from "../accounts/keys/console-key.store.ts";
import { mintId } from "../shared/id.ts";
import { findOperatorByLogin } from "../operator/operator-token.ts";
import { createNewBrowserMail } from "../accounts/people/mail.ts";
import { notifyLoginMethodsChanged } from "../accounts/people/me.ts";
import {
  findJoinableDomainOfPerson,
  findJoinableDomainOfOrganization,
  joinOrganizationByDomain,
} from "../accounts/people/company.ts";
import { listVerifiedAddresses } from "../accounts/people/company-issuer.ts";
import { markIssuerTested, findPersonByIdentity } from "../accounts/people/company-issuer.store.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";
import { createMemberActor } from "../accounts/people/people-call.ts";
import { joinByInvitation } from "../accounts/people/invitation-handlers.ts";
import type { PeopleServices } from "../accounts/people/people-call.ts";
import {
  deletePersonWithoutMemberships,
  insertPersonIfNew,
  linkIdentity,
  listMemberships,
  findPersonId,
  findAndRefreshPerson,
  recordMemberActivity,
} from "../accounts/people/people.store.ts";
import type { IssuerProfile } from "../accounts/people/people.store.ts";
import type { Identity, Person } from "../accounts/people/person.ts";
import { creditPromotion, signUp } from "../accounts/people/sign-up.ts";
import { COMPANY_ISSUER_ID, canStartLogin } from "./company-login.route.ts";
import { recordBrowser } from "./known-browser.ts";
import { requireSession, openSession } from "./own-session.route.ts";
import type { ActivePerson } from "./own-session.route.ts";
import { createPeopleServices, catchStorageErrors } from "./people.route.ts";
import type { PersonSession } from "../shared/contracts/console-session.ts";
import { findLoginFreshness } from "./step-up.ts";

type CompletedLogin = {
  readonly entry: IssuerEntry;
  readonly logins: readonly OperatorLogin[];
  readonly ticket: LoginTicket;
  readonly claims: IdentityClaims;
  readonly connection: CompanyIssuer | null;
};
const NOT_FRESH = { freshAt: 0, freshBy: "auth_time" } as const;

type LoginResult = Result<{ readonly go: string; readonly cookies: readonly string[] }>;
type LastMembership = { readonly memberId: string; readonly orgId: string } | null;

/** Completes a login after the identity provider's response. */
export async function finishLogIn(c: AppContext, completed: CompletedLogin): Promise<LoginResult> {
  const { ticket, logins, claims } = completed;
  const issuer = completed.entry.id;
  const services = createPeopleServices(c);
  if (ticket.purpose === "link" || ticket.purpose === "step_up") {
    return catchStorageErrors(c, () => finishInSession(c, services, completed));
  }
  const loginId = { issuer, subject: claims.account };
  if (completed.connection === null && findOperatorByLogin(loginId, logins) !== null) {
    return openOperatorSession(c, completed, freshness(completed, services.now) ?? NOT_FRESH);
  }
  return openPersonSession(c, services, completed);
}

async function openOperatorSession(
  c: AppContext,
  { ticket, entry, claims }: CompletedLogin,
  proof: NonNullable<ReturnType<typeof findLoginFreshness>>,
): Promise<LoginResult> {
  const loginId = { issuer: entry.id, subject: claims.account };
  const opened = await openSession(c, { kind: "operator_login", ...loginId, ...proof });
  return opened.ok ? success({ go: ticket.go, cookies: [opened.value.cookie] }) : opened;
}

async function openPersonSession(
  c: AppContext,
  services: PeopleServices,
  completed: CompletedLogin,
): Promise<LoginResult> {
  const { ticket, entry, claims } = completed;
  const found = await catchStorageErrors(c, () => findPersonWithKey(c, services, completed));
  if (!found.ok) return found;
  const { person, place } = found.value;
  const identity: PersonSession = {
    kind: "person",
    personId: person.id,
    memberId: place?.memberId ?? null,
    orgId: place?.orgId ?? null,
    issuer: completed.connection === null ? entry.id : COMPANY_ISSUER_ID,
    ...realmOf(completed),
    ...(claims.company.tenant !== null && { tenant: claims.company.tenant }),
    openedAt: services.now,
    browser: browserOf(c.req.header("user-agent") ?? ""),
    ...(freshness(completed, services.now) ?? NOT_FRESH),
  };
  const opened = await openSession(c, identity);
  if (!opened.ok) return opened;
  const known = await emailNewBrowser(c, services, { ...found.value, browser: identity.browser });
  return success({ go: ticket.go, cookies: [opened.value.cookie, ...known] });
}

/**
 * Emails a person who logs in with a new browser. Returns the cookie that identifies the browser.
 */
async function emailNewBrowser(
  c: AppContext,
  { mail, region, keySecrets, origin, now: nowMs }: PeopleServices,
  of: { readonly person: Person; readonly isNew: boolean; readonly browser: string },
): Promise<readonly string[]> {
  if (mail === null) return [];
  const { person, isNew, browser } = of;
  const at = { region, keySecrets };
  const { isKnown, cookie } = await recordBrowser(c.req.header("cookie") ?? "", at, person.id);
  if (!isKnown && !isNew && person.email !== null && person.isEmailProven === 1) {
    mail(createNewBrowserMail(person.email, { browser, region, origin, time: timestamp(nowMs) }));
  }
  return [cookie];
}

function freshness(
  { claims, entry }: CompletedLogin,
  nowMs: number,
): ReturnType<typeof findLoginFreshness> {
  return findLoginFreshness(claims.authenticatedAt, nowMs, entry.reauth);
}

function identityOf({ claims, connection }: CompletedLogin): Identity {
  return { realm: connection?.orgId ?? "", issuer: claims.issuer, subject: claims.subject };
}

function realmOf({ connection }: CompletedLogin): Pick<PersonSession, "realm" | "connection"> {
  return connection === null ? {} : { realm: connection.orgId, connection: connection.id };
}

type KnownPerson = Result<{
  readonly person: Person;
  readonly place: LastMembership;
  readonly isNew: boolean;
}>;

async function findPersonWithKey(
  c: AppContext,
  services: PeopleServices,
  completed: CompletedLogin,
): Promise<KnownPerson> {
  const found = await findPerson(c, services, completed);
  if (found.ok && found.value.place !== null) {
    await ensureConsoleKey(services, found.value.place.memberId);
  }
  return found;
}

async function findPerson(
  c: AppContext,
  services: PeopleServices,
  completed: CompletedLogin,
): Promise<KnownPerson> {
  const { purpose } = completed.ticket;
  const { connection } = completed;
  if (connection !== null) return findPersonOfCompany(services, { ...completed, connection });
  const profile = profileOf(completed.claims);
  const known = await findAndRefreshPerson(
    services.db,
    identityOf(completed),
    profile,
    services.now,
  );
  if (purpose === "accept") return acceptInvitation(services, completed, known);
  if (purpose === "join") return joinCompany(services, completed, known);
  if (known !== null) return knownPersonResult(services, known);
  if (purpose === "sign_up") return signUpPerson(c, services, completed);
  return refuse({ kind: "login_refused", why: "unknown", account: profile.email });
}

function profileOf({ name, email, proven }: IdentityClaims): IssuerProfile {
  const address = proven[0] ?? email;
  return {
    name: name ?? address?.split("@", 1).join() ?? "Somebody",
    email: address,
    isEmailProven: proven.length > 0 ? 1 : 0,
  };
}

/**
 * Returns the member with this identity, or creates one when joining. A new member needs an address
 * at a verified domain of the company. Never changes a known person.
 */
async function findPersonOfCompany(
  services: PeopleServices,
  completed: CompletedLogin & { readonly connection: CompanyIssuer },
): Promise<KnownPerson> {
  const { db, now: nowMs } = services;
  const { claims, connection, ticket } = completed;
  const known = await findPersonByIdentity(db, identityOf(completed), nowMs);
  const places = known === null ? [] : await listMemberships(db, known.id);
  const place = places.find(({ orgId }) => orgId === connection.orgId);
  if (known !== null && place !== undefined) {
    await recordMemberActivity(db, place.memberId, nowMs);
    return success({ person: known, place, isNew: false });
  }
  const domain = await findJoinableDomainOfOrganization(services, connection.orgId);
  if (ticket.purpose !== "join" || domain === null) {
    return refuse({ kind: "login_refused", why: "unknown" });
  }
  const proven = await listVerifiedAddresses(db, connection.orgId, claims);
  const email = proven[0] ?? null;
  const reported = { ...completed, claims: { ...claims, proven, email } };
  return joinAsPerson(services, reported, known, async (person) => {
    const joined = await joinOrganizationByDomain(services, domain, person);
    return joined === null ? refuse({ kind: "login_refused", why: "unknown" }) : success(joined);
  });
}

async function acceptInvitation(
  services: PeopleServices,
  completed: CompletedLogin,
  known: Person | null,
): Promise<KnownPerson> {
  const { claims, ticket } = completed;
  const token = ticket.invitation ?? "";
  return joinAsPerson(services, completed, known, (person) =>
    joinByInvitation(services, { token, person, proven: claims.proven }),
  );
}

async function joinCompany(
  services: PeopleServices,
  completed: CompletedLogin,
  known: Person | null,
): Promise<KnownPerson> {
  const { claims, ticket } = completed;
  const company = await findJoinableDomainOfPerson(services, ticket.company ?? "", claims.company);
  if (company === null) return refuse({ kind: "login_refused", why: "unknown" });
  return joinAsPerson(services, completed, known, async (person) => {
    const place = await joinOrganizationByDomain(services, company, person);
    return place === null ? refuse({ kind: "login_refused", why: "unknown" }) : success(place);
  });
}

async function joinAsPerson(
  services: PeopleServices,
  completed: CompletedLogin,
  known: Person | null,
  join: (person: Person) => Promise<Result<NonNullable<LastMembership>>>,
): Promise<KnownPerson> {
  const { db, now: nowMs } = services;
  const profile = profileOf(completed.claims);
  const fresh = { id: mintId("per_", nowMs), ...profile, sessionsFrom: nowMs };
  const isNew = known === null && (await insertPersonIfNew(db, fresh, identityOf(completed)));
  const person =
    known ??
    (isNew ? fresh : await findAndRefreshPerson(db, identityOf(completed), profile, nowMs)); // a concurrent request created the person
  if (person === null) return refuse({ kind: "overloaded" });
  const place = await join(person);
  if (place.ok) return success({ person, place: place.value, isNew });
  if (isNew) await deletePersonWithoutMemberships(db, person.id);
  return place;
}

async function signUpPerson(
  c: AppContext,
  services: PeopleServices,
  completed: CompletedLogin,
): Promise<KnownPerson> {
  const { claims } = completed;
  const identity = identityOf(completed);
  const profile = profileOf(claims);
  const address = c.req.header("cf-connecting-ip") ?? "";
  const email = claims.proven[0] ?? null;
  const { accountCreatedAt: madeAt } = claims;
  const signedUp = await signUp(services, { identity, name: profile.name, email, address, madeAt });
  if (!signedUp.ok) return signedUp;
  if (signedUp.value !== null) {
    const { person, ...place } = signedUp.value;
    return success({ person, place, isNew: true });
  }
  const other = await findAndRefreshPerson(services.db, identity, profile, services.now);
  if (other === null) return refuse({ kind: "login_refused", why: "unknown" });
  return knownPersonResult(services, other);
}

async function knownPersonResult(services: PeopleServices, person: Person): Promise<KnownPerson> {
  return success({ person, place: await findLastMembership(services, person), isNew: false });
}

async function findLastMembership(
  services: PeopleServices,
  person: Person,
): Promise<LastMembership> {
  const places = await listMemberships(services.db, person.id);
  const last = places.find(({ isCompanys }) => isCompanys === 0);
  if (last === undefined) return null;
  await recordMemberActivity(services.db, last.memberId, services.now);
  if (services.signUp.creditMicro > 0) await creditPromotion(services, last.orgId);
  return { memberId: last.memberId, orgId: last.orgId };
}

async function finishInSession(
  c: AppContext,
  services: PeopleServices,
  completed: CompletedLogin,
): Promise<LoginResult> {
  const { ticket } = completed;
  const entered = await requireSession(c, true);
  if (!entered.ok) return entered;
  const { identity } = entered.value;
  if (identity.kind === "operator" && ticket.purpose === "step_up") {
    return confirmOperator(c, completed, identity.operator.name);
  }
  if (identity.kind !== "person" || identity.session.personId !== ticket.personId) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  if (!canStartLogin(identity, ticket.purpose, completed.connection)) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  if (ticket.purpose === "link") return linkLogin(services, completed, identity);
  if ((await findPersonId(services.db, identityOf(completed))) !== identity.session.personId) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  const nowMs = services.now;
  const fresh = freshness(completed, nowMs);
  if (fresh === null) return refuse({ kind: "login_refused", why: "refused" });
  // A stolen copy of the old cookie must not count as a recent login.
  const opened = await openSession(c, { ...identity.session, openedAt: nowMs, ...fresh });
  return opened.ok ? success({ go: ticket.go, cookies: [opened.value.cookie] }) : opened;
}

async function linkLogin(
  services: PeopleServices,
  completed: CompletedLogin,
  { session, acting }: ActivePerson,
): Promise<LoginResult> {
  const { db, now: nowMs } = services;
  const { connection, ticket } = completed;
  const { personId, memberId } = session;
  if (!(await linkIdentity(db, identityOf(completed), personId, nowMs))) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  notifyLoginMethodsChanged(services, acting.person, "added");
  if (connection !== null && memberId !== null) {
    await markIssuerTested(db, connection, {
      memberId,
      actor: createMemberActor(memberId),
      now: nowMs,
    });
    services.takeEvents(connection.orgId);
  }
  return success({ go: ticket.go, cookies: [] });
}

async function confirmOperator(
  c: AppContext,
  completed: CompletedLogin,
  name: string,
): Promise<LoginResult> {
  const { entry, claims, logins, connection } = completed;
  const other = findOperatorByLogin({ issuer: entry.id, subject: claims.account }, logins);
  if (connection !== null || other?.name !== name) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  const fresh = freshness(completed, now(c.env));
  if (fresh === null) return refuse({ kind: "login_refused", why: "refused" });
  return openOperatorSession(c, completed, fresh);
}

function browserOf(agent: string): string {
  const [browser = "A browser"] = /Edg|OPR|Firefox|Chrome|Safari/.exec(agent) ?? [];
  const [system = ""] = /Windows|Android|iPhone|iPad|Mac OS|Linux/.exec(agent) ?? [];
  const name = { Edg: "Edge", OPR: "Opera" }[browser] ?? browser;
  return system === "" ? name : `${name} on ${system}`;
}
