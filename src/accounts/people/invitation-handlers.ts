import * as z from "zod/mini";
import { created } from "../../shared/http/endpoint.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { mintConsoleKey } from "../keys/console-key.store.ts";
import { DAY_MS, timestamp } from "../../shared/clock.ts";
import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import { emailSchema, roleSchema } from "../organizations/organization.ts";
import { readInvitationToken, createInvitationToken, maskAddress } from "./invitation.ts";
import type { Invitation } from "./invitation.ts";
import {
  acceptInvitation,
  endInvitation,
  findInvitation,
  insertInvitation,
  listInvitations,
  wasRemovedSinceInvitation,
} from "./invitations.store.ts";
import type { InvitationDetails } from "./invitations.store.ts";
import { createInvitationMail } from "./mail.ts";
import type { MemberCall, PeopleCall, PeopleServices } from "./people-call.ts";
import { listMemberships } from "./people.store.ts";
import type { Membership, Person } from "./person.ts";

const ADDRESSED_INVITATION_DAYS = 7;
const LINK_INVITATION_DAYS = 3;

export const newInvitationSchema = z.object({
  role: z.optional(roleSchema),
  email: z.nullish(emailSchema),
  member_id: z.nullish(z.string().check(z.maxLength(100))),
});
export const invitationTokenSchema = z.object({ token: z.string().check(z.maxLength(200)) });

type InvitationServices = Pick<
  PeopleServices,
  "db" | "region" | "keySecrets" | "now" | "origin"
> & {
  readonly actor: Actor;
};

/**
 * Handles POST /invitations. Returns 201 with the link. If the address or member has an open
 * invitation, extends it.
 */
export async function postInvitation(call: MemberCall) {
  if (call.as.status === "suspended") return refuse({ kind: "organization_suspended" });
  if (call.as.isPersonal === 1) return personalOrganizationRefusal();
  const { as, person } = call;
  const invitation = await createInvitation(call, as.orgId, {
    by: as.memberId,
    body: call.body,
  });
  if (!invitation.ok) return invitation;
  const by = { organization: as.name, inviter: person.name };
  return created({ ...invitation.value, mailed: sendInvitation(call, invitation.value, by) });
}

export function personalOrganizationRefusal(): Refusal {
  const message = "This is a personal organization. Turn it into a team first.";
  return refuse({ kind: "conflict", message, param: null, code: "personal_organization" });
}

export function sendInvitation(
  { mail, region }: Pick<PeopleServices, "mail" | "region">,
  { email, role, expires_at: until, link }: CreatedInvitation,
  by: { readonly organization: string; readonly inviter: string | null },
): boolean {
  if (mail === null || email === null) return false;
  mail(createInvitationMail({ ...by, email, role, region, link, until }));
  return true;
}

type CreatedInvitation = ReturnType<typeof invitationRecord> & { readonly link: string };

export async function createInvitation(
  services: InvitationServices,
  orgId: string,
  { by, body }: { readonly by: string | null; readonly body: unknown },
): Promise<Result<CreatedInvitation>> {
  const fields = parseFields(newInvitationSchema, [], body);
  if (!fields.ok) return fields;
  const { role = "member", email = null, member_id: memberId = null } = fields.value;
  const refusal = addressRefusal({ role, email, memberId });
  if (refusal !== null) return refusal;
  const { db, now: nowMs, region, keySecrets, actor, origin } = services;
  const days =
    email === null && memberId === null ? LINK_INVITATION_DAYS : ADDRESSED_INVITATION_DAYS;
  const invitation = await insertInvitation(
    db,
    {
      id: mintId("inv_", nowMs),
      orgId,
      role,
      email,
      memberId,
      invitedBy: by,
      createdAt: nowMs,
      expiresAt: nowMs + days * DAY_MS,
    },
    actor,
  );
  if (!invitation.ok) return invitation;
  const token = await createInvitationToken(invitation.value.id, region, keySecrets);
  const link = `${origin}/console/#/invitation/${token}`;
  return success({ ...invitationRecord(invitation.value), link });
}

function addressRefusal({
  role,
  email,
  memberId,
}: Pick<Invitation, "role" | "email" | "memberId">): Refusal | null {
  if (email !== null && memberId !== null) {
    const message =
      "'email' can't be combined with 'member_id'. The invitation goes to the member's own address.";
    return refuse({ kind: "invalid_request", message, param: "email" });
  }
  if (email !== null || memberId !== null || role === "member") return null;
  const message = "An invitation without an email address can only have the role 'member'.";
  return refuse({ kind: "invalid_request", message, param: "email" });
}

export async function getInvitations(call: MemberCall) {
  const rows = await listInvitations(call.db, call.as.orgId, call.now);
  const invitations = rows.map((row) =>
    Object.assign(invitationRecord(row), { inviter: row.inviter }),
  );
  return success({ invitations });
}

export async function deleteInvitation(call: MemberCall) {
  const id = call.params["id"] ?? "";
  const ended = await endInvitation(call.db, { id, orgId: call.as.orgId }, call);
  return ended
    ? success({ id, ended: true })
    : refuse({ kind: "not_found", message: NO_SUCH_INVITATION });
}

const NO_SUCH_INVITATION = "No such invitation.";

export async function previewInvitation(services: PeopleServices, body: unknown) {
  const found = await findInvitationByToken(services, body);
  if (!found.ok) return found;
  const { organization, role, inviter, email, expiresAt } = found.value;
  const refusal = endedInvitationRefusal(found.value, services.now);
  if (refusal !== null) return refusal;
  return success({
    organization,
    role,
    inviter,
    email: email === null ? null : maskAddress(email),
    expires_at: timestamp(expiresAt),
    region: services.region,
  });
}

export async function postInvitationAcceptance(call: PeopleCall) {
  const fields = parseFields(invitationTokenSchema, [], call.body);
  if (!fields.ok) return fields;
  const { person, sessions } = call;
  const proven = person.isEmailProven === 1 && person.email !== null ? [person.email] : [];
  const accepted = await joinByInvitation(call, { token: fields.value.token, person, proven });
  if (!accepted.ok) return accepted;
  const { memberId, orgId } = accepted.value;
  const sessionChange = await sessions.act({ memberId, orgId });
  return sessionChange.ok
    ? success({ organization_id: orgId, member_id: memberId })
    : sessionChange;
}

/** Adds the person as the invited member. An existing member keeps their role. */
export async function joinByInvitation(
  services: PeopleServices,
  requested: {
    readonly token: string;
    readonly person: Person;
    readonly proven: readonly string[];
  },
): Promise<Result<Pick<Membership, "memberId" | "orgId">>> {
  const { db, now: nowMs } = services;
  const { person, proven } = requested;
  const found = await findInvitationByToken(services, { token: requested.token });
  if (!found.ok) return found;
  const { id, orgId, email } = found.value;
  const key = await mintConsoleKey(services);
  const acceptance = { person, proven, memberId: crypto.randomUUID(), key, nowMs };
  const memberId = await acceptInvitation(db, id, acceptance);
  services.takeEvents(orgId);
  if (memberId !== null) return success({ memberId, orgId });
  const own = (await listMemberships(db, person.id)).find((one) => one.orgId === orgId);
  if (own !== undefined) return success(own);
  const refusal = endedInvitationRefusal((await findInvitation(db, id)) ?? found.value, nowMs);
  if (refusal !== null) return refusal;
  if (await wasRemovedSinceInvitation(db, id, person.id)) {
    return endedConflict(
      "You were removed from the organization after this invitation. Please ask for a new invitation.",
    );
  }
  const hasInvitedAddress =
    email === null || proven.some((one) => one.toLowerCase() === email.toLowerCase());
  const message = hasInvitedAddress
    ? "This organization already has a member with your email address, who has no login yet. Please ask for an invitation for that member."
    : `This invitation is for ${maskAddress(email)}. Please log in with that address.`;
  return refuse({ kind: "conflict", message, param: null, code: "other_address" });
}

/** Returns a valid token's invitation, even an ended one. */
async function findInvitationByToken(
  services: PeopleServices,
  body: unknown,
): Promise<Result<InvitationDetails>> {
  const fields = parseFields(invitationTokenSchema, [], body);
  if (!fields.ok) return fields;
  const { db, region, keySecrets } = services;
  const id = await readInvitationToken(fields.value.token, region, keySecrets);
  const found = id === null ? null : await findInvitation(db, id);
  return found === null
    ? refuse({ kind: "not_found", message: NO_SUCH_INVITATION })
    : success(found);
}

function endedInvitationRefusal(invitation: InvitationDetails, nowMs: number): Refusal | null {
  const { acceptedAt, endedAt, expiresAt, isSuspended, isGiven } = invitation;
  if (acceptedAt !== null) return endedConflict("This invitation was already used.");
  if (endedAt !== null || isGiven !== 1) return endedConflict("This invitation was withdrawn.");
  if (expiresAt <= nowMs) return endedConflict("This invitation has expired.");
  return isSuspended === 1 ? refuse({ kind: "organization_suspended" }) : null;
}

function endedConflict(message: string): Refusal {
  return refuse({ kind: "conflict", message, param: null, code: "invitation_over" });
}

function invitationRecord(row: Invitation) {
  return {
    id: row.id,
    role: row.role,
    email: row.email,
    member_id: row.memberId,
    created_at: timestamp(row.createdAt),
    expires_at: timestamp(row.expiresAt),
  };
}
