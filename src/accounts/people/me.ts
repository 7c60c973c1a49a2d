import * as z from "zod/mini";
import { created } from "../../shared/http/endpoint.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { timestamp } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { listConsoleKeys, ensureConsoleKey } from "../keys/console-key.store.ts";
import { revokeKeyEverywhere } from "../keys/revocation.ts";
import { listMembers } from "../organizations/members.store.ts";
import { nameSchema } from "../organizations/organization.ts";
import {
  closeOrganizationEverywhere,
  closeOrganizationSchema,
  requireBalanceGivenUp,
} from "./close-organization.ts";
import { listRestorableOrganizationsOfPerson } from "./closing.store.ts";
import { erasePerson, exportPerson, takeExportSlot } from "./erasure.store.ts";
import { createLoginMethodsChangedMail } from "./mail.ts";
import { createOrganizationWithWallet, countSignUp } from "./sign-up.ts";
import type { CreatedOrganizationIds } from "./sign-up.ts";
import { createMemberActor } from "./people-call.ts";
import type {
  MemberCall,
  PeopleCall,
  PeopleServices,
  ConsoleSessionSummary,
} from "./people-call.ts";
import {
  endSessionsOfPerson,
  isIdentityInUseError,
  listIdentities,
  listMemberships,
  recordMemberActivity,
  unlinkIdentity,
} from "./people.store.ts";
import type { Membership, Person } from "./person.ts";
import { removeMemberEverywhere } from "./removal.ts";
import {
  canCreateOrganization,
  convertToTeam,
  hasPersonalOrganization,
  tooManyOrganizationsRefusal,
} from "./sign-up.store.ts";
import type { Objects } from "../../shared/contracts/objects.ts";
import type { EventRecord } from "../../shared/event.ts";

export async function getMe(call: PeopleCall) {
  const { db, person, sessions, realm } = call;
  const [known, members, closed] = await Promise.all([
    listIdentities(db, person.id),
    listMemberships(db, person.id),
    realm === "" ? listRestorableOrganizationsOfPerson(db, person.id, call.now) : [],
  ]);
  const identities = known.filter((one) => realm === "" || one.realm === realm);
  const memberships = members.filter(({ orgId }) => realm === "" || orgId === realm);
  const listed = await sessions.list();
  if (!listed.ok) return listed;
  return success({
    person: { id: person.id, name: person.name, email: person.email },
    identities: identities.map(({ issuer, subject, createdAt, usedAt }) => ({
      issuer,
      subject,
      created_at: timestamp(createdAt),
      last_used_at: timestamp(usedAt),
    })),
    organizations: memberships.map(membershipRecord),
    closed_organizations: closed.map(({ orgId, name, restorableUntil }) => ({
      id: orgId,
      name,
      restorable_until: timestamp(restorableUntil),
    })),
    sessions: listed.value.map((one) => sessionRecord(one, sessions.id)),
  });
}

function membershipRecord(one: Membership) {
  return {
    id: one.orgId,
    name: one.name,
    slug: one.slug,
    status: one.status,
    is_personal: one.isPersonal === 1,
    member_id: one.memberId,
    role: one.role,
  };
}

function sessionRecord(one: ConsoleSessionSummary, own: string) {
  return {
    id: one.id,
    is_this: one.id === own,
    browser: one.browser,
    issuer: one.issuer,
    created_at: timestamp(one.openedAt),
    logged_in_at: timestamp(one.freshAt),
    logged_in_by: one.freshBy,
    expires_at: timestamp(one.expiresAt),
  };
}

export async function getMyExport(call: PeopleCall) {
  const view = await getMe(call);
  if (!view.ok) return view;
  const { db, person, now: nowMs } = call;
  const waitMs = await takeExportSlot(db, person.id, nowMs);
  if (waitMs > 0) {
    return refuse({ kind: "rate_limited", scope: "export", limit: 1, retryAfterMs: waitMs });
  }
  const { members, ...tables } = await exportPerson(db, person.id);
  const events = await listOwnEvents(call.wallet, members);
  return events.ok ? success({ ...view.value, ...tables, events: events.value }) : events;
}

export async function deleteMySession(call: PeopleCall) {
  const id = call.params["id"] ?? "";
  const ended = await call.sessions.close(id);
  return ended.ok ? success({ id, ended: true }) : ended;
}

/**
 * Handles POST /me/log-out. Ends all sessions and revokes console keys, which also ends the session
 * tokens of the console.
 */
export async function postLogOut(call: PeopleCall) {
  await endSessionsOfPerson(call.db, call.person.id, call.now + 1);
  for (const key of await listConsoleKeys(call.db, call.person.id)) {
    const ending = { ...key, scope: "regional", revokedAt: null } as const;
    const actor = createMemberActor(key.memberId);
    const revoked = await revokeKeyEverywhere({ ...call, actor }, ending);
    if (!revoked.ok) return revoked;
    call.takeEvents(key.orgId);
  }
  const ended = await call.sessions.close(null);
  return ended.ok ? success({ ended: true }) : ended;
}

export const identitySchema = z.object({
  issuer: z.string().check(z.maxLength(300)),
  subject: z.string().check(z.maxLength(255)),
});

/**
 * Handles POST /me/unlink. Unlinks an identity, except the person's last one, and ends all
 * sessions.
 */
export async function postUnlink(call: PeopleCall) {
  const fields = parseFields(identitySchema, [], call.body);
  if (!fields.ok) return fields;
  if (await unlinkIdentity(call.db, fields.value, call.person.id)) {
    notifyLoginMethodsChanged(call, call.person, "taken away");
    return postLogOut(call);
  }
  const message = "Your account doesn't have this login, or it is your only login.";
  return refuse({ kind: "conflict", message, param: "issuer" });
}

/** Emails a person with a verified address that their login methods have changed. */
export function notifyLoginMethodsChanged(
  { mail, origin }: Pick<PeopleServices, "mail" | "origin">,
  { email, isEmailProven }: Person,
  change: "added" | "taken away",
): void {
  if (email !== null && isEmailProven === 1) {
    mail?.(createLoginMethodsChangedMail(email, change, origin));
  }
}

export const actAsOrganizationSchema = z.object({
  organization_id: z.string().check(z.maxLength(100)),
});

export async function postActingMembership(call: PeopleCall) {
  const fields = parseFields(actAsOrganizationSchema, [], call.body);
  if (!fields.ok) return fields;
  const { db, person, sessions, now: nowMs } = call;
  const all = await listMemberships(db, person.id);
  const chosen = all.find((one) => one.orgId === fields.value.organization_id);
  if (chosen === undefined) return refuse({ kind: "not_found", message: "No such organization." });
  if (chosen.isCompanys === 1) {
    const message = "This organization requires members to use its company login.";
    return refuse({ kind: "conflict", message, param: null, code: "company_log_in_required" });
  }
  await ensureConsoleKey(call, chosen.memberId);
  const sessionChange = await sessions.act(chosen);
  if (!sessionChange.ok) return sessionChange;
  await recordMemberActivity(db, chosen.memberId, nowMs);
  return success(membershipRecord(chosen));
}

export const newOrganizationByPersonSchema = z.object({ name: nameSchema });

export async function postOrganization(call: PeopleCall) {
  const fields = parseFields(newOrganizationByPersonSchema, [], call.body);
  if (!fields.ok) return fields;
  const { db, person, signUp, sessions } = call;
  if (signUp.mode === "off") return refuse({ kind: "login_refused", why: "unknown" });
  if (!(await canCreateOrganization(db, person.id))) return tooManyOrganizationsRefusal();
  const slots = await countSignUp(call, "person", person.id);
  if (!slots.ok) return slots;
  const { name } = fields.value;
  const hasOne = await hasPersonalOrganization(db, person.id);
  const creation = await createOwnOrganization(call, name, !hasOne);
  if (!creation.ok) return creation;
  const { orgId, memberId, isPersonal } = creation.value;
  const sessionChange = await sessions.act({ orgId, memberId });
  return sessionChange.ok
    ? created({ id: orgId, member_id: memberId, is_personal: isPersonal })
    : sessionChange;
}

async function createOwnOrganization(
  call: PeopleCall,
  name: string,
  isPersonal: boolean,
): Promise<Result<CreatedOrganizationIds & { readonly isPersonal: boolean }>> {
  const { person, signUp } = call;
  const isSuspended = signUp.mode === "approve";
  const newOrganization = {
    person,
    identity: null,
    promotedIdentity: null,
    name,
    isSuspended,
    isPersonal,
  };
  try {
    const creation = await createOrganizationWithWallet(call, newOrganization);
    return creation.ok ? success({ ...creation.value, isPersonal }) : creation;
  } catch (error) {
    if (!isPersonal || !isIdentityInUseError(error)) throw error;
    return createOwnOrganization(call, name, false);
  }
}

/** Converts a personal organization to a team. */
export async function postTeamConversion(call: MemberCall) {
  await convertToTeam(call.db, call.as.orgId);
  return success({ id: call.as.orgId, is_personal: false });
}

/**
 * Handles DELETE /me. Removes the person from all organizations, closes those without other
 * members, and erases the person.
 */
export async function deleteMe(call: PeopleCall) {
  const fields = parseFields(closeOrganizationSchema, [], call.body ?? {});
  if (!fields.ok) return fields;
  const { db, person, now: nowMs, sessions } = call;
  const own = await Promise.all(
    (await listMemberships(db, person.id)).map(async (one) => {
      const others = (await listMembers(db, one.orgId)).filter(({ id }) => id !== one.memberId);
      return { orgId: one.orgId, memberId: one.memberId, role: one.role, others };
    }),
  );
  const isLastOwner = own.some(
    ({ role, others }) =>
      role === "owner" && others.length > 0 && others.every((other) => other.role !== "owner"),
  );
  if (isLastOwner) {
    const message =
      "You are the only owner of an organization with other members. Make another member an owner first, or close the organization.";
    return refuse({ kind: "conflict", message, param: null, code: "last_owner" });
  }
  const givesUpBalance = fields.value.give_up_balance;
  const soleMemberships = own.filter(({ others }) => others.length === 0);
  const closings = await Promise.all(
    soleMemberships.map(({ orgId }) => requireBalanceGivenUp(call, orgId, givesUpBalance)),
  );
  const balanceRefusal = closings.find((one) => !one.ok);
  if (balanceRefusal !== undefined) return balanceRefusal;
  for (const { orgId, memberId, others } of own) {
    const actor = createMemberActor(memberId);
    const member = { id: memberId, orgId };
    const removal = await (others.length > 0
      ? removeMemberEverywhere({ ...call, actor }, member, memberId)
      : closeOrganizationEverywhere(call, orgId, {
          actor,
          memberId,
          givesUp: givesUpBalance,
          isAlone: true,
        }));
    if (!removal.ok) return removal;
    call.takeEvents(orgId);
  }
  if (!(await erasePerson(db, person.id, nowMs))) return refuse({ kind: "overloaded" });
  const ended = await sessions.close(null);
  return ended.ok ? success({ id: person.id, deleted: true }) : ended;
}

const EVENTS_PER_PAGE = 1000;
const PAGES_PER_ORGANIZATION_MAX = 10;
const ORGANIZATIONS_MAX = 50;

type MembershipIds = { readonly memberId: string; readonly orgId: string };

async function listOwnEvents(
  wallet: Objects["wallet"],
  memberships: readonly MembershipIds[],
): Promise<Result<ReturnType<typeof ownEventView>[]>> {
  const found: ReturnType<typeof ownEventView>[] = [];
  const organizations = [...Map.groupBy(memberships, ({ orgId }) => orgId)];
  for (const [orgId, own] of organizations.slice(0, ORGANIZATIONS_MAX)) {
    const memberIds = own.map(({ memberId }) => memberId);
    let after: string | null = null;
    for (let page = 0; page < PAGES_PER_ORGANIZATION_MAX; page++) {
      const query = { type: null, from: null, to: null, limit: EVENTS_PER_PAGE, after, memberIds };
      const answer = await wallet(orgId).events(query);
      if (!answer.ok) return answer;
      const { events, nextAfter } = answer.value;
      found.push(...events.map((one) => ownEventView(one, orgId)));
      after = nextAfter;
      if (after === null) break;
    }
  }
  return success(found);
}

function ownEventView({ id, type, actor, subject, data, createdAt }: EventRecord, orgId: string) {
  const created_at = timestamp(createdAt);
  return { organization_id: orgId, id, type, actor, subject, data, created_at };
}
