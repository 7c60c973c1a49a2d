import * as z from "zod/mini";
import { created } from "../shared/http/endpoint.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { refuse, success } from "../shared/failure.ts";
import {
  closeOrganizationEverywhere,
  reopenOrganization,
} from "../accounts/people/close-organization.ts";
import { companyDomainView, emailOwnersAboutDomain } from "../accounts/people/company.ts";
import { emailOwnersAboutIssuerChange } from "../accounts/people/company-issuer.ts";
import { findCompanyIssuer, removeIssuer } from "../accounts/people/company-issuer.store.ts";
import { approveDomain, listDomains } from "../accounts/people/company.store.ts";
import { endInvitation } from "../accounts/people/invitations.store.ts";
import {
  createInvitation,
  newInvitationSchema,
  personalOrganizationRefusal,
  sendInvitation,
} from "../accounts/people/invitation-handlers.ts";
import type { OperatorCall } from "./operator-context.ts";
import { bodyOf, noFields, queryOf, withOrganization } from "./organization-call.ts";
import { getOrganization } from "./organizations.ts";
import {
  insertMember,
  listMembers,
  updateMember,
} from "../accounts/organizations/members.store.ts";
import type { MemberIds } from "../accounts/organizations/members.store.ts";
import {
  emailSchema,
  MEMBER_READ_ONLY_FIELDS,
  memberView,
  roleSchema,
} from "../accounts/organizations/organization.ts";
import { removeMemberEverywhere } from "../accounts/people/removal.ts";

/** Handles `POST /orgs/{id}/invitations`. */
export const postInvitation = withOrganization(noFields, async (call, { id, name, isPersonal }) => {
  if (isPersonal === 1 && !isForMember(call.body)) return personalOrganizationRefusal();
  const origin = new URL(call.url).origin;
  const invitation = await createInvitation({ ...call, origin }, id, { by: null, body: call.body });
  if (!invitation.ok) return invitation;
  const by = { organization: name, inviter: null };
  return created({ ...invitation.value, mailed: sendInvitation(call, invitation.value, by) });
});

function isForMember(body: unknown): boolean {
  const fields = parseFields(newInvitationSchema, [], body);
  return !fields.ok || (fields.value.member_id ?? null) !== null;
}

/** Handles `DELETE /orgs/{id}/invitations/{invitation_id}`. */
export const deleteInvitation = withOrganization(noFields, async (call, { id: orgId }) => {
  const { invitation_id: id = "" } = call.params;
  if (await endInvitation(call.db, { id, orgId }, call)) return success({ id, ended: true });
  return refuse({ kind: "not_found", message: "No such invitation." });
});

/** Handles `GET /orgs/{id}/domains`. */
export const getDomains = withOrganization(noFields, async (call, { id }) => {
  const [domains, issuer] = await Promise.all([
    listDomains(call.db, id),
    findCompanyIssuer(call.db, id),
  ]);
  return success({
    domains: domains.map((one) => companyDomainView(one, call.companyDomains)),
    has_own_login: issuer !== null,
  });
});

/** Handles `POST /orgs/{id}/domains/{domain}/approve`. */
export async function postDomainApproval(call: OperatorCall) {
  const { id: orgId = "", domain = "" } = call.params;
  const approved = await approveDomain(call.db, { domain, orgId }, call);
  if (!approved) return refuse({ kind: "not_found", message: "No such verified domain." });
  await emailOwnersAboutDomain(call, { domain, orgId }, "approved");
  return getDomains(call);
}

/** Handles `DELETE /orgs/{id}/company-issuer`, for a company whose login no longer works. */
export const deleteCompanyIssuer = withOrganization(noFields, async (call, { id }) => {
  if (!(await removeIssuer(call.db, id, call))) {
    return refuse({ kind: "not_found", message: "This organization has no company login." });
  }
  await emailOwnersAboutIssuerChange(call, id);
  return success({ id, deleted: true });
});

export const closeOrganizationQuerySchema = z.object({
  give_up_balance: z._default(z.enum(["true", "false"]), "false"),
});

/** Handles `DELETE /orgs/{id}`. */
export const deleteOrganization = withOrganization(
  queryOf(closeOrganizationQuerySchema),
  async (call, { id }, { give_up_balance: givesUp }) => {
    const by = { actor: call.actor, memberId: null, givesUp: givesUp === "true" };
    const closed = await closeOrganizationEverywhere(call, id, by);
    return closed.ok ? success({ id, deleted: true }) : closed;
  },
);

/** Handles `POST /orgs/{id}/restore`. */
export const postOrganizationRestore = withOrganization(noFields, async (call, { id }) => {
  const restored = await reopenOrganization(call, id, call.actor);
  return restored.ok ? getOrganization(call) : restored;
});

export const newMemberSchema = z.object({ email: emailSchema, role: roleSchema });
export const memberChangeSchema = z.object({
  email: z.optional(emailSchema),
  role: z.optional(roleSchema),
});

/** Handles `GET /orgs/{id}/members`. */
export const getMembers = withOrganization(noFields, async ({ db }, { id }) => {
  const rows = await listMembers(db, id);
  return success({ members: rows.map(memberView) });
});

/** Handles `POST /orgs/{id}/members`. */
export const postMember = withOrganization(
  bodyOf(newMemberSchema, MEMBER_READ_ONLY_FIELDS),
  async ({ db, actor, now }, { id: orgId, isPersonal }, fields) => {
    if (isPersonal === 1) return personalOrganizationRefusal();
    const member = { id: crypto.randomUUID(), orgId, createdAt: now, ...fields };
    const added = await insertMember(db, member, actor);
    return added.ok ? created(memberView(added.value)) : added;
  },
);

/** Handles `PATCH /orgs/{id}/members/{member_id}`. */
export async function patchMember(call: OperatorCall) {
  const fields = parseFields(memberChangeSchema, MEMBER_READ_ONLY_FIELDS, call.body);
  if (!fields.ok) return fields;
  const changed = await updateMember(call.db, memberIdsOf(call), fields.value, call);
  return changed.ok ? success(memberView(changed.value)) : changed;
}

/** Handles `DELETE /orgs/{id}/members/{member_id}`. */
export async function deleteMember(call: OperatorCall) {
  const member = memberIdsOf(call);
  const removed = await removeMemberEverywhere(call, member, null);
  return removed.ok ? success({ id: member.id, deleted: true }) : removed;
}

function memberIdsOf({ params }: OperatorCall): MemberIds {
  return { id: params["member_id"] ?? "", orgId: params["id"] ?? "" };
}
