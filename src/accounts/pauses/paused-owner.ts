import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { PauseFields, PauseSource } from "../../shared/pauses.ts";
import type { NewPause } from "../../shared/contracts/pauses.ts";
import { findKey } from "../keys/keys.store.ts";
import type { KeyServices } from "../keys/revocation.ts";
import { parseSessionEndRequest } from "../keys/sessions.route.ts";
import { findMemberById } from "../organizations/members.store.ts";

type PauseCreator = Pick<KeyServices, "db" | "keySecrets" | "now" | "actor"> & {
  readonly orgId: string;
  readonly memberId: string | null;
  readonly source: PauseSource;
};

/** Returns the pause to create. Fails with 400, 403 or 404 if the caller can't pause the target. */
export async function validateNewPause(
  creator: PauseCreator,
  fields: PauseFields,
): Promise<Result<NewPause>> {
  const { scope, id = "", reason } = fields;
  const { orgId, memberId, source, actor } = creator;
  const until = typeof fields.until === "string" ? Date.parse(fields.until) : null;
  const stopRunning = fields.stop_running === true;
  const pause = { scope, id, source, reason, until, stopRunning, actor };
  if (memberId !== null && scope !== "key" && scope !== "session") {
    return refuse({ kind: "role_required", roles: ["owner", "admin", "billing"] });
  }
  if (scope === "organization") {
    return id === "" || id === orgId ? success({ ...pause, id: "" }) : noSuchOwnerRefusal(scope);
  }
  if (id === "") return invalid(`id must be the ID of the ${scope.replace("_", " ")}.`, "id");
  return validateOwnerPause(creator, pause);
}

async function validateOwnerPause(
  creator: PauseCreator,
  pause: NewPause,
): Promise<Result<NewPause>> {
  const { db, orgId } = creator;
  const { scope, id } = pause;
  if (scope === "session") return validateSessionPause(creator, pause);
  if (scope === "end_user") {
    const isOperator = creator.source === "operator";
    return isOperator ? invalid("scope can't be end_user for operators.", "scope") : success(pause);
  }
  if (scope === "key") {
    const key = await findKey(db, id, creator);
    return key === null || key.revokedAt !== null ? noSuchOwnerRefusal(scope) : success(pause);
  }
  const member = await findMemberById(db, { id, orgId });
  return member === null ? noSuchOwnerRefusal(scope) : success(pause);
}

async function validateSessionPause(
  creator: PauseCreator,
  pause: NewPause,
): Promise<Result<NewPause>> {
  const { orgId, memberId } = creator;
  const owner = { keyId: null, memberId };
  const ending = await parseSessionEndRequest(pause.id, { ...creator, of: { orgId }, owner });
  if (!ending.ok) return ending;
  const { isOwn, expiresAt } = ending.value;
  return success({ ...pause, session: { owner, isOwn: isOwn && memberId === null, expiresAt } });
}

function noSuchOwnerRefusal(noun: string): Refusal {
  return refuse({ kind: "not_found", message: `No such ${noun}.` });
}
