import * as z from "zod/mini";
import { parseFields } from "../../shared/http/parse-body.ts";
import { timestamp } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import { updateMember } from "../organizations/members.store.ts";
import { memberView, roleSchema } from "../organizations/organization.ts";
import { createMemberRemovalMail } from "./mail.ts";
import type { MemberCall } from "./people-call.ts";
import { removeMemberEverywhere } from "./removal.ts";
import { canGrantRole } from "./rights.ts";
import { listTeam } from "./team.store.ts";

export async function getTeam(call: MemberCall) {
  const rows = await listTeam(call.db, call.as.orgId);
  const seesAll = canGrantRole(call.as.role, "member");
  const members = rows.map((row) => ({
    id: row.id,
    name: row.name,
    email: seesAll || row.id === call.as.memberId ? row.email : null,
    role: row.role,
    logs_in: row.personId !== null,
    keys: row.keys,
    created_at: timestamp(row.createdAt),
    last_seen_at: row.seenAt === null ? null : timestamp(row.seenAt),
  }));
  return success({ members });
}

export const roleChangeSchema = z.object({ role: roleSchema });

export async function patchTeamMember(call: MemberCall) {
  const fields = parseFields(roleChangeSchema, [], call.body);
  if (!fields.ok) return fields;
  const { db, as, params } = call;
  if (as.status === "suspended") return refuse({ kind: "organization_suspended" });
  const member = { id: params["id"] ?? "", orgId: as.orgId };
  const by = { ...call, memberId: as.memberId };
  const changed = await updateMember(db, member, fields.value, by);
  if (changed.ok) call.takeEvents(as.orgId);
  return changed.ok ? success(memberView(changed.value)) : changed;
}

export async function deleteTeamMember(call: MemberCall) {
  const { as, params } = call;
  const member = { id: params["id"] ?? "", orgId: as.orgId };
  const removed = await removeMemberEverywhere(call, member, as.memberId);
  call.takeEvents(as.orgId);
  if (!removed.ok) return removed;
  const { email } = removed.value;
  if (member.id !== as.memberId && email !== null) {
    call.mail?.(createMemberRemovalMail(email, as.name));
  }
  return success({ id: member.id, deleted: true });
}
