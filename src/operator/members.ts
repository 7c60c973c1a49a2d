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
import type { OperatorContext, OperatorRequest } from "./operator-context.ts";
import { organizationOf } from "./organizations.ts";

/** Keys that are ended at the same time: the platform lets six calls of one invocation wait for an answer. */
const AT_ONCE = 6;

export const newMember = z.object({ email: emailSchema, role: roleSchema });
export const memberChange = z.object({
  email: z.optional(emailSchema),
  role: z.optional(roleSchema),
});

/** `GET /orgs/{id}/members`. */
export async function getMembers(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const found = await organizationOf(context, request);
  if (!found.ok) return found;
  const rows = await listMembers(context.db, found.value.id);
  return success({ members: rows.map(memberRecord) });
}

/** `POST /orgs/{id}/members`: 409 for an address that a member has, in whatever case. */
export async function postMember(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const fields = parseFields(newMember, MEMBER_READ_ONLY, request.body);
  if (!fields.ok) return fields;
  const found = await organizationOf(context, request);
  if (!found.ok) return found;
  const member = {
    id: crypto.randomUUID(),
    orgId: found.value.id,
    createdAt: context.now,
    ...fields.value,
  };
  const added = await insertMember(context.db, member, context.actor);
  return added.ok ? created(memberRecord(added.value)) : added;
}

/** `PATCH /orgs/{id}/members/{member_id}`: a new role acts on the member's next request. */
export async function patchMember(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const fields = parseFields(memberChange, MEMBER_READ_ONLY, request.body);
  if (!fields.ok) return fields;
  const changed = await updateMember(
    context.db,
    memberName(request),
    fields.value,
    changedBy(context),
  );
  return changed.ok ? success(memberRecord(changed.value)) : changed;
}

/**
 * `DELETE /orgs/{id}/members/{member_id}`: the book first, then the register of every key that was live
 * until then, then the answer: from then on no request of the member is admitted. A 503 leaves the
 * member removed with some registers untold; a repeat tells them all again.
 */
export async function deleteMember(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const member = memberName(request);
  const removed = await removeMember(context.db, member, changedBy(context));
  if (!removed.ok) return removed;
  const told = await endAll(context, removed.value);
  return told.ok ? success({ id: member.id, deleted: true }) : told;
}

/** One key that could not be ended stops no other; then the first failure is the answer. */
async function endAll(
  context: OperatorContext,
  keys: readonly EndedKey[],
): Promise<Result<unknown>> {
  const ended = await atMost(AT_ONCE, keys, (key) => revokeKeyEverywhere(context, key));
  return ended.find((one) => !one.ok) ?? success(null);
}

function changedBy({ actor, now }: OperatorContext): ChangedBy {
  return { actor, nowMs: now };
}

function memberName({ params }: OperatorRequest): MemberName {
  return { id: params["member_id"] ?? "", orgId: params["id"] ?? "" };
}
