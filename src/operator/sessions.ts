import {
  parseSessionEnding,
  parseSessionsQuery,
  sessionsView,
} from "../accounts/keys/sessions.route.ts";
import { success } from "../shared/failure.ts";
import type { OperatorCall } from "./operator-context.ts";
import { findOrganizationOfCall } from "./organizations.ts";

const ANY_OWNER = { keyId: null, memberId: null };

export async function getSessions(call: OperatorCall) {
  const query = parseSessionsQuery(call.url);
  if (!query.ok) return query;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const wallet = call.wallet(found.value.id);
  const page = await wallet.sessions({ owner: ANY_OWNER, ...query.value });
  return page.ok ? success(sessionsView(page.value)) : page;
}

/**
 * Handles `DELETE /orgs/{id}/sessions/{session_id}`, also for an unused session. Ends it in all
 * regions before the response.
 */
export async function deleteSession(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { id: orgId } = found.value;
  const id = call.params["session_id"] ?? "";
  const ending = await parseSessionEnding(id, { ...call, of: { orgId }, owner: ANY_OWNER });
  if (!ending.ok) return ending;
  const ended = await call.wallet(orgId).endSession(ending.value);
  return ended.ok ? success({ id, ended: true }) : ended;
}
