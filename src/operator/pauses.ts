import { validateNewPause } from "../accounts/pauses/paused-owner.ts";
import { success } from "../shared/failure.ts";
import { created } from "../shared/http/endpoint.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { pauseSchema, pauseView } from "../shared/pauses.ts";
import type { OperatorCall } from "./operator-context.ts";
import { findOrganizationOfCall } from "./organizations.ts";

/** Handles `GET /orgs/{id}/pauses`. */
export async function getPauses(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const pauses = await call.wallet(found.value.id).pauses(null);
  return pauses.ok ? success({ pauses: pauses.value.map(pauseView) }) : pauses;
}

/** Handles `POST /orgs/{id}/pauses`. Only operators can end an operator's pause. */
export async function postPause(call: OperatorCall) {
  const fields = parseFields(pauseSchema, [], call.body);
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { id: orgId } = found.value;
  const creator = { ...call, orgId, memberId: null, source: "operator" } as const;
  const pause = await validateNewPause(creator, fields.value);
  if (!pause.ok) return pause;
  const storedPause = await call.wallet(orgId).putPause(pause.value);
  if (!storedPause.ok) return storedPause;
  return storedPause.value.created
    ? created(pauseView(storedPause.value))
    : success(pauseView(storedPause.value));
}

/** Handles `DELETE /orgs/{id}/pauses/{pause_id}`. */
export async function deletePause(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const id = call.params["pause_id"] ?? "";
  const ending = { id, source: "operator", actor: call.actor } as const;
  const ended = await call.wallet(found.value.id).endPause(ending);
  return ended.ok ? success({ id, ended: true }) : ended;
}
