import { validateNewPause } from "../accounts/pauses/paused-owner.ts";
import { success } from "../shared/failure.ts";
import { created } from "../shared/http/endpoint.ts";
import { pauseSchema, pauseView } from "../shared/pauses.ts";
import { bodyOf, noFields, withOrganization } from "./organization-call.ts";

/** Handles `GET /orgs/{id}/pauses`. */
export const getPauses = withOrganization(noFields, async ({ wallet }, { id }) => {
  const pauses = await wallet(id).pauses(null);
  return pauses.ok ? success({ pauses: pauses.value.map(pauseView) }) : pauses;
});

/** Handles `POST /orgs/{id}/pauses`. Only operators can end an operator's pause. */
export const postPause = withOrganization(bodyOf(pauseSchema), async (call, { id }, fields) => {
  const creator = { ...call, orgId: id, memberId: null, source: "operator" } as const;
  const pause = await validateNewPause(creator, fields);
  if (!pause.ok) return pause;
  const storedPause = await call.wallet(id).putPause(pause.value);
  if (!storedPause.ok) return storedPause;
  return storedPause.value.created
    ? created(pauseView(storedPause.value))
    : success(pauseView(storedPause.value));
});

/** Handles `DELETE /orgs/{id}/pauses/{pause_id}`. */
export const deletePause = withOrganization(noFields, async (call, { id: orgId }) => {
  const { pause_id: id = "" } = call.params;
  const ending = { id, source: "operator", actor: call.actor } as const;
  const ended = await call.wallet(orgId).endPause(ending);
  return ended.ok ? success({ id, ended: true }) : ended;
});
