import * as z from "zod/mini";
import { created } from "../shared/http/endpoint.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { success } from "../shared/failure.ts";
import {
  insertMember,
  listMembers,
  updateMember,
} from "../accounts/organizations/members.store.ts";
import type { MemberChangeActor, MemberIds } from "../accounts/organizations/members.store.ts";
import {
  emailSchema,
  MEMBER_READ_ONLY_FIELDS,
  memberRecord,
  roleSchema,
} from "../accounts/organizations/organization.ts";
import { personalOrganizationRefusal } from "../accounts/people/invitation-handlers.ts";
import { removeMemberEverywhere } from "../accounts/people/removal.ts";
import type { OperatorCall } from "./operator-context.ts";
import { findOrganizationOfCall } from "./organizations.ts";

export const newMemberSchema = z.object({ email: emailSchema, role: roleSchema });
export const memberChangeSchema = z.object({
  email: z.optional(emailSchema),
  role: z.optional(roleSchema),
});

export async function getMembers(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const rows = await listMembers(call.db, found.value.id);
  return success({ members: rows.map(memberRecord) });
}

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
  return added.ok ? created(memberRecord(added.value)) : added;
}

export async function patchMember(call: OperatorCall) {
  const fields = parseFields(memberChangeSchema, MEMBER_READ_ONLY_FIELDS, call.body);
  if (!fields.ok) return fields;
  const changed = await updateMember(call.db, memberIdsOf(call), fields.value, changeActor(call));
  return changed.ok ? success(memberRecord(changed.value)) : changed;
}

export async function deleteMember(call: OperatorCall) {
  const member = memberIdsOf(call);
  const removed = await removeMemberEverywhere(call, member, null);
  return removed.ok ? success({ id: member.id, deleted: true }) : removed;
}

function changeActor({ actor, now }: OperatorCall): MemberChangeActor {
  return { actor, nowMs: now };
}

function memberIdsOf({ params }: OperatorCall): MemberIds {
  return { id: params["member_id"] ?? "", orgId: params["id"] ?? "" };
}
