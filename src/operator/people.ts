import * as z from "zod/mini";
import { created } from "../shared/http/endpoint.ts";
import { parseFields, parseQuery } from "../shared/http/parse-body.ts";
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
import { getOrganization, findOrganizationOfCall } from "./organizations.ts";
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
export async function postInvitation(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  if (found.value.isPersonal === 1 && !isForMember(call.body)) return personalOrganizationRefusal();
  const origin = new URL(call.url).origin;
  const invitation = await createInvitation({ ...call, origin }, found.value.id, {
    by: null,
    body: call.body,
  });
  if (!invitation.ok) return invitation;
  const by = { organization: found.value.name, inviter: null };
  return created({ ...invitation.value, mailed: sendInvitation(call, invitation.value, by) });
}

function isForMember(body: unknown): boolean {
  const fields = parseFields(newInvitationSchema, [], body);
  return !fields.ok || (fields.value.member_id ?? null) !== null;
}

/** Handles `DELETE /orgs/{id}/invitations/{invitation_id}`. */
export async function deleteInvitation(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { invitation_id: id = "" } = call.params;
  const ended = await endInvitation(call.db, { id, orgId: found.value.id }, call);
  if (ended) return success({ id, ended: true });
  return refuse({ kind: "not_found", message: "No such invitation." });
}

/** Handles `GET /orgs/{id}/domains`. */
export async function getDomains(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { id } = found.value;
  const [domains, issuer] = await Promise.all([
    listDomains(call.db, id),
    findCompanyIssuer(call.db, id),
  ]);
  return success({
    domains: domains.map((one) => companyDomainView(one, call.companyDomains)),
    has_own_login: issuer !== null,
  });
}

/** Handles `POST /orgs/{id}/domains/{domain}/approve`. */
export async function postDomainApproval(call: OperatorCall) {
  const { id: orgId = "", domain = "" } = call.params;
  const approved = await approveDomain(call.db, { domain, orgId }, call);
  if (!approved) return refuse({ kind: "not_found", message: "No such verified domain." });
  await emailOwnersAboutDomain(call, { domain, orgId }, "approved");
  return getDomains(call);
}

/** Handles `DELETE /orgs/{id}/company-issuer`, for a company whose login no longer works. */
export async function deleteCompanyIssuer(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { id } = found.value;
  if (!(await removeIssuer(call.db, id, call))) {
    return refuse({ kind: "not_found", message: "This organization has no company login." });
  }
  await emailOwnersAboutIssuerChange(call, id);
  return success({ id, deleted: true });
}

export const closeOrganizationQuerySchema = z.object({
  give_up_balance: z._default(z.enum(["true", "false"]), "false"),
});

/** Handles `DELETE /orgs/{id}`. */
export async function deleteOrganization(call: OperatorCall) {
  const fields = parseQuery(closeOrganizationQuerySchema, call.url);
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const by = {
    actor: call.actor,
    memberId: null,
    givesUp: fields.value.give_up_balance === "true",
  };
  const closed = await closeOrganizationEverywhere(call, found.value.id, by);
  return closed.ok ? success({ id: found.value.id, deleted: true }) : closed;
}

/** Handles `POST /orgs/{id}/restore`. */
export async function postOrganizationRestore(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const restored = await reopenOrganization(call, found.value.id, call.actor);
  if (!restored.ok) return restored;
  return getOrganization(call);
}

export const newMemberSchema = z.object({ email: emailSchema, role: roleSchema });
export const memberChangeSchema = z.object({
  email: z.optional(emailSchema),
  role: z.optional(roleSchema),
});

/** Handles `GET /orgs/{id}/members`. */
export async function getMembers(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const rows = await listMembers(call.db, found.value.id);
  return success({ members: rows.map(memberView) });
}

/** Handles `POST /orgs/{id}/members`. */
export async function postMember(call: OperatorCall) {
  const fields = parseFields(newMemberSchema, MEMBER_READ_ONLY_FIELDS, call.body);
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  if (found.value.isPersonal === 1) return personalOrganizationRefusal();
  const member = {
    id: crypto.randomUUID(),
    orgId: found.value.id,
    createdAt: call.now,
    ...fields.value,
  };
  const added = await insertMember(call.db, member, call.actor);
  return added.ok ? created(memberView(added.value)) : added;
}

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
