import * as z from "zod/mini";
import { created } from "../http/endpoint.ts";
import type { Answer } from "../http/endpoint.ts";
import { parseFields } from "../http/parse-body.ts";
import { revokeKeyEverywhere } from "../keys/revocation.ts";
import { atMost } from "../lib/at-most.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import {
  insertMember,
  listMembers,
  removeMember,
  updateMember,
} from "../organizations/members.store.ts";
import type { ChangedBy, EndedKey, MemberName } from "../organizations/members.store.ts";
import {
  emailSchema,
  MEMBER_READ_ONLY,
  memberRecord,
  roleSchema,
} from "../organizations/organization.ts";
import type { OperatorCall } from "./operator-context.ts";
import { organizationOf } from "./organizations.ts";

/** Keys that are ended at the same time: the platform lets six calls of one invocation wait for an answer. */
const AT_ONCE = 6;

export const newMember = z.object({ email: emailSchema, role: roleSchema });
export const memberChange = z.object({
  email: z.optional(emailSchema),
  role: z.optional(roleSchema),
});

/** `GET /orgs/{id}/members`. */
export async function getMembers(call: OperatorCall): Promise<Answer> {
  const found = await organizationOf(call);
  if (!found.ok) return found;
  const rows = await listMembers(call.db, found.value.id);
  return success({ members: rows.map(memberRecord) });
}

/** `POST /orgs/{id}/members`: 409 for an address that a member has, in whatever case. */
export async function postMember(call: OperatorCall): Promise<Answer> {
  const fields = parseFields(newMember, MEMBER_READ_ONLY, call.body);
  if (!fields.ok) return fields;
  const found = await organizationOf(call);
  if (!found.ok) return found;
  const member = {
    id: crypto.randomUUID(),
    orgId: found.value.id,
    createdAt: call.now,
    ...fields.value,
  };
  const added = await insertMember(call.db, member, call.actor);
  return added.ok ? created(memberRecord(added.value)) : added;
}

/** `PATCH /orgs/{id}/members/{member_id}`: a new role acts on the member's next request. */
export async function patchMember(call: OperatorCall): Promise<Answer> {
  const fields = parseFields(memberChange, MEMBER_READ_ONLY, call.body);
  if (!fields.ok) return fields;
  const changed = await updateMember(call.db, memberName(call), fields.value, changedBy(call));
  return changed.ok ? success(memberRecord(changed.value)) : changed;
}

/**
 * `DELETE /orgs/{id}/members/{member_id}`: the book first, then the register of every key that was live
 * until then, then the answer: from then on no request of the member is admitted. A 503 leaves the
 * member removed with some registers untold; a repeat tells them all again.
 */
export async function deleteMember(call: OperatorCall): Promise<Answer> {
  const member = memberName(call);
  const removed = await removeMember(call.db, member, changedBy(call));
  if (!removed.ok) return removed;
  const told = await endAll(call, removed.value);
  return told.ok ? success({ id: member.id, deleted: true }) : told;
}

/** One key that could not be ended stops no other; then the first failure is the answer. */
async function endAll(call: OperatorCall, keys: readonly EndedKey[]): Promise<Result<unknown>> {
  const ended = await atMost(AT_ONCE, keys, (key) => revokeKeyEverywhere(call, key));
  return ended.find((one) => !one.ok) ?? success(null);
}

function changedBy({ actor, now }: OperatorCall): ChangedBy {
  return { actor, nowMs: now };
}

function memberName({ params }: OperatorCall): MemberName {
  return { id: params["member_id"] ?? "", orgId: params["id"] ?? "" };
}
