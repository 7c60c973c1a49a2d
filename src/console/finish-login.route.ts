import type { Context } from "hono";
import type { IssuerEntry, OperatorLogin } from "../shared/config/config.ts";
import type { AppEnv } from "../shared/http/context.ts";
import type { Claims } from "../accounts/identity-providers/claims.ts";
import type { Ticket } from "../accounts/identity-providers/ticket.ts";
import { now, timestamp } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { ensureConsoleKey } from "../accounts/keys/console-key.store.ts";
import { mintId } from "../shared/id.ts";
import { operatorOfLogin } from "../operator/operator-token.ts";
import { newBrowserMail } from "../accounts/people/mail.ts";
import { notifyLoginMethods } from "../accounts/people/me.ts";
import {
  findCompanyToJoin,
  findOwnJoinableDomain,
  joinOrganization,
} from "../accounts/people/company.ts";
import { confirmedAddresses } from "../accounts/people/company-issuer.ts";
import { markIssuerTried, findPersonOfRealm } from "../accounts/people/company-issuer.store.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";
import { memberActor } from "../accounts/people/people-call.ts";
import { joinByInvitation } from "../accounts/people/invitation-handlers.ts";
import type { PeopleServices } from "../accounts/people/people-call.ts";
import {
  deleteLonePerson,
  insertLonePerson,
  linkIdentity,
  membershipsOf,
  findPersonId,
  findAndRefreshPerson,
  recordActing,
} from "../accounts/people/people.store.ts";
import type { IssuerProfile } from "../accounts/people/people.store.ts";
import type { Identity, Person } from "../accounts/people/person.ts";
import { creditPromotion, signUp } from "../accounts/people/sign-up.ts";
import { COMPANY, canStartLogin } from "./company-login.route.ts";
import { knownBrowser } from "./known-browser.ts";
import { enterSession, openSession } from "./own-session.route.ts";
import type { ActivePerson } from "./own-session.route.ts";
import { peopleServices, withStorageFailures } from "./people.route.ts";
import type { PersonSession } from "../shared/contracts/console-session.ts";
import { freshnessOf } from "./step-up.ts";

type AppContext = Context<AppEnv>;

type Answered = {
  readonly entry: IssuerEntry;
  readonly logins: readonly OperatorLogin[];
  readonly ticket: Ticket;
  readonly claims: Claims;
  readonly connection: CompanyIssuer | null;
};
const STALE = { freshAt: 0, freshBy: "auth_time" } as const;

type Finished = Result<{ readonly go: string; readonly cookies: readonly string[] }>;
type LastPlace = { readonly memberId: string; readonly orgId: string } | null;

export async function finishLogIn(c: AppContext, answered: Answered): Promise<Finished> {
  const { ticket, logins, claims } = answered;
  const issuer = answered.entry.id;
  const services = peopleServices(c);
  if (ticket.purpose === "link" || ticket.purpose === "step_up") {
    return withStorageFailures(c, () => ofLiveSession(c, services, answered));
  }
  const named = { issuer, subject: claims.account };
  if (answered.connection === null && operatorOfLogin(named, logins) !== null) {
    return openOperator(c, answered, freshness(answered, services.now) ?? STALE);
  }
  return ofPerson(c, services, answered);
}

async function openOperator(
  c: AppContext,
  { ticket, entry, claims }: Answered,
  proof: NonNullable<ReturnType<typeof freshnessOf>>,
): Promise<Finished> {
  const named = { issuer: entry.id, subject: claims.account };
  const opened = await openSession(c, { kind: "operator_login", ...named, ...proof });
  return opened.ok ? success({ go: ticket.go, cookies: [opened.value.cookie] }) : opened;
}

async function ofPerson(
  c: AppContext,
  services: PeopleServices,
  answered: Answered,
): Promise<Finished> {
  const { ticket, entry, claims } = answered;
  const found = await withStorageFailures(c, () => whoActs(c, services, answered));
  if (!found.ok) return found;
  const { person, place } = found.value;
  const identity: PersonSession = {
    kind: "person",
    personId: person.id,
    memberId: place?.memberId ?? null,
    orgId: place?.orgId ?? null,
    issuer: answered.connection === null ? entry.id : COMPANY,
    ...realmOf(answered),
    ...(claims.company.tenant !== null && { tenant: claims.company.tenant }),
    openedAt: services.now,
    browser: browserOf(c.req.header("user-agent") ?? ""),
    ...(freshness(answered, services.now) ?? STALE),
  };
  const opened = await openSession(c, identity);
  if (!opened.ok) return opened;
  const known = await tellNewBrowser(c, services, { ...found.value, browser: identity.browser });
  return success({ go: ticket.go, cookies: [opened.value.cookie, ...known] });
}

/**
 * Emails a person who logs in with a new browser. Returns the cookie that identifies the browser.
 */
async function tellNewBrowser(
  c: AppContext,
  { mail, region, keySecrets, origin, now: nowMs }: PeopleServices,
  of: { readonly person: Person; readonly isNew: boolean; readonly browser: string },
): Promise<readonly string[]> {
  if (mail === null) return [];
  const { person, isNew, browser } = of;
  const at = { region, keySecrets };
  const { isKnown, cookie } = await knownBrowser(c.req.header("cookie") ?? "", at, person.id);
  if (!isKnown && !isNew && person.email !== null && person.isEmailProven === 1) {
    mail(newBrowserMail(person.email, { browser, region, origin, time: timestamp(nowMs) }));
  }
  return [cookie];
}

function freshness({ claims, entry }: Answered, nowMs: number): ReturnType<typeof freshnessOf> {
  return freshnessOf(claims.authenticatedAt, nowMs, entry.reauth);
}

function identityOf({ claims, connection }: Answered): Identity {
  return { realm: connection?.orgId ?? "", issuer: claims.issuer, subject: claims.subject };
}

function realmOf({ connection }: Answered): Pick<PersonSession, "realm" | "connection"> {
  return connection === null ? {} : { realm: connection.orgId, connection: connection.id };
}

type KnownPerson = Result<{
  readonly person: Person;
  readonly place: LastPlace;
  readonly isNew: boolean;
}>;

async function whoActs(
  c: AppContext,
  services: PeopleServices,
  answered: Answered,
): Promise<KnownPerson> {
  const found = await whoIs(c, services, answered);
  if (found.ok && found.value.place !== null) {
    await ensureConsoleKey(services, found.value.place.memberId);
  }
  return found;
}

async function whoIs(
  c: AppContext,
  services: PeopleServices,
  answered: Answered,
): Promise<KnownPerson> {
  const { purpose } = answered.ticket;
  const { connection } = answered;
  if (connection !== null) return whoIsOfCompany(services, { ...answered, connection });
  const profile = toldBy(answered.claims);
  const known = await findAndRefreshPerson(
    services.db,
    identityOf(answered),
    profile,
    services.now,
  );
  if (purpose === "accept") return whoAccepts(services, answered, known);
  if (purpose === "join") return whoJoins(services, answered, known);
  if (known !== null) return ofKnown(services, known);
  if (purpose === "sign_up") return whoSignsUp(c, services, answered);
  return refuse({ kind: "login_refused", why: "unknown", account: profile.email });
}

function toldBy({ name, email, proven }: Claims): IssuerProfile {
  const address = proven[0] ?? email;
  return {
    name: name ?? address?.split("@", 1).join() ?? "Somebody",
    email: address,
    isEmailProven: proven.length > 0 ? 1 : 0,
  };
}

/**
 * Returns the member with this identity, or creates one when joining. Only email addresses of the
 * company's proven domains count, and they never change a known person.
 */
async function whoIsOfCompany(
  services: PeopleServices,
  answered: Answered & { readonly connection: CompanyIssuer },
): Promise<KnownPerson> {
  const { db, now: nowMs } = services;
  const { claims, connection, ticket } = answered;
  const known = await findPersonOfRealm(db, identityOf(answered), nowMs);
  const places = known === null ? [] : await membershipsOf(db, known.id);
  const place = places.find(({ orgId }) => orgId === connection.orgId);
  if (known !== null && place !== undefined) {
    await recordActing(db, place.memberId, nowMs);
    return success({ person: known, place, isNew: false });
  }
  const domain = await findOwnJoinableDomain(services, connection.orgId);
  if (ticket.purpose !== "join" || domain === null) {
    return refuse({ kind: "login_refused", why: "unknown" });
  }
  const proven = await confirmedAddresses(db, connection.orgId, claims);
  const email = proven[0] ?? null;
  const reported = { ...answered, claims: { ...claims, proven, email } };
  return letIn(services, reported, known, async (person) => {
    const joined = await joinOrganization(services, domain, person);
    return joined === null ? refuse({ kind: "login_refused", why: "unknown" }) : success(joined);
  });
}

async function whoAccepts(
  services: PeopleServices,
  answered: Answered,
  known: Person | null,
): Promise<KnownPerson> {
  const { claims, ticket } = answered;
  const token = ticket.invitation ?? "";
  return letIn(services, answered, known, (person) =>
    joinByInvitation(services, { token, person, proven: claims.proven }),
  );
}

async function whoJoins(
  services: PeopleServices,
  answered: Answered,
  known: Person | null,
): Promise<KnownPerson> {
  const { claims, ticket } = answered;
  const company = await findCompanyToJoin(services, ticket.company ?? "", claims.company);
  if (company === null) return refuse({ kind: "login_refused", why: "unknown" });
  return letIn(services, answered, known, async (person) => {
    const place = await joinOrganization(services, company, person);
    return place === null ? refuse({ kind: "login_refused", why: "unknown" }) : success(place);
  });
}

async function letIn(
  services: PeopleServices,
  answered: Answered,
  known: Person | null,
  ask: (person: Person) => Promise<Result<NonNullable<LastPlace>>>,
): Promise<KnownPerson> {
  const { db, now: nowMs } = services;
  const profile = toldBy(answered.claims);
  const fresh = { id: mintId("per_", nowMs), ...profile, sessionsFrom: nowMs };
  const isNew = known === null && (await insertLonePerson(db, fresh, identityOf(answered)));
  const person =
    known ?? (isNew ? fresh : await findAndRefreshPerson(db, identityOf(answered), profile, nowMs)); // a concurrent request created the person
  if (person === null) return refuse({ kind: "overloaded" });
  const place = await ask(person);
  if (place.ok) return success({ person, place: place.value, isNew });
  if (isNew) await deleteLonePerson(db, person.id);
  return place;
}

async function whoSignsUp(
  c: AppContext,
  services: PeopleServices,
  answered: Answered,
): Promise<KnownPerson> {
  const { claims } = answered;
  const identity = identityOf(answered);
  const profile = toldBy(claims);
  const address = c.req.header("cf-connecting-ip") ?? "";
  const email = claims.proven[0] ?? null;
  const { madeAt } = claims;
  const signedUp = await signUp(services, { identity, name: profile.name, email, address, madeAt });
  if (!signedUp.ok) return signedUp;
  if (signedUp.value !== null) {
    const { person, ...place } = signedUp.value;
    return success({ person, place, isNew: true });
  }
  const other = await findAndRefreshPerson(services.db, identity, profile, services.now);
  if (other === null) return refuse({ kind: "login_refused", why: "unknown" });
  return ofKnown(services, other);
}

async function ofKnown(services: PeopleServices, person: Person): Promise<KnownPerson> {
  return success({ person, place: await lastPlace(services, person), isNew: false });
}

async function lastPlace(services: PeopleServices, person: Person): Promise<LastPlace> {
  const places = await membershipsOf(services.db, person.id);
  const last = places.find(({ isCompanys }) => isCompanys === 0);
  if (last === undefined) return null;
  await recordActing(services.db, last.memberId, services.now);
  if (services.signUp.creditMicro > 0) await creditPromotion(services, last.orgId);
  return { memberId: last.memberId, orgId: last.orgId };
}

async function ofLiveSession(
  c: AppContext,
  services: PeopleServices,
  answered: Answered,
): Promise<Finished> {
  const { ticket } = answered;
  const entered = await enterSession(c, true);
  if (!entered.ok) return entered;
  const { identity } = entered.value;
  if (identity.kind === "operator" && ticket.purpose === "step_up") {
    return confirmOperator(c, answered, identity.operator.name);
  }
  if (identity.kind !== "person" || identity.session.personId !== ticket.personId) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  if (!canStartLogin(identity, ticket.purpose, answered.connection)) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  if (ticket.purpose === "link") return link(services, answered, identity);
  if ((await findPersonId(services.db, identityOf(answered))) !== identity.session.personId) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  const nowMs = services.now;
  const fresh = freshness(answered, nowMs);
  if (fresh === null) return refuse({ kind: "login_refused", why: "refused" });
  // A new cookie is set, so that a stolen copy of the old one doesn't become fresh.
  const opened = await openSession(c, { ...identity.session, openedAt: nowMs, ...fresh });
  return opened.ok ? success({ go: ticket.go, cookies: [opened.value.cookie] }) : opened;
}

async function link(
  services: PeopleServices,
  answered: Answered,
  { session, acting }: ActivePerson,
): Promise<Finished> {
  const { db, now: nowMs } = services;
  const { connection, ticket } = answered;
  const { personId, memberId } = session;
  if (!(await linkIdentity(db, identityOf(answered), personId, nowMs))) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  notifyLoginMethods(services, acting.person, "added");
  if (connection !== null && memberId !== null) {
    await markIssuerTried(db, connection, { memberId, actor: memberActor(memberId), nowMs });
    services.takeEvents(connection.orgId);
  }
  return success({ go: ticket.go, cookies: [] });
}

async function confirmOperator(c: AppContext, answered: Answered, name: string): Promise<Finished> {
  const { entry, claims, logins, connection } = answered;
  const other = operatorOfLogin({ issuer: entry.id, subject: claims.account }, logins);
  if (connection !== null || other?.name !== name) {
    return refuse({ kind: "login_refused", why: "other_person" });
  }
  const fresh = freshness(answered, now(c.env));
  if (fresh === null) return refuse({ kind: "login_refused", why: "refused" });
  return openOperator(c, answered, fresh);
}

function browserOf(agent: string): string {
  const [browser = "A browser"] = /Edg|OPR|Firefox|Chrome|Safari/.exec(agent) ?? [];
  const [system = ""] = /Windows|Android|iPhone|iPad|Mac OS|Linux/.exec(agent) ?? [];
  const name = { Edg: "Edge", OPR: "Opera" }[browser] ?? browser;
  return system === "" ? name : `${name} on ${system}`;
}
