import type { KeySecret } from "../../shared/config/config.ts";
import type { Actor } from "../../shared/event.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { PauseFields, PauseSource } from "../../shared/pauses.ts";
import type { NewPause } from "../../shared/contracts/pauses.ts";
import { findKey } from "../keys/keys.store.ts";
import { parseSessionEnding } from "../keys/sessions.route.ts";
import { findMemberById } from "../organizations/members.store.ts";

type PausingParty = {
  readonly db: D1Database;
  readonly orgId: string;
  readonly memberId: string | null;
  readonly source: PauseSource;
  readonly actor: Actor;
  readonly keySecrets: readonly KeySecret[];
  readonly now: number;
};

/** Returns the pause to create. Fails with 400, 403 or 404 if the caller can't pause its target. */
export async function validateNewPause(
  party: PausingParty,
  fields: PauseFields,
): Promise<Result<NewPause>> {
  const { scope, id = "", reason } = fields;
  const { orgId, memberId, source, actor } = party;
  const until = typeof fields.until === "string" ? Date.parse(fields.until) : null;
  const stopRunning = fields.stop_running === true;
  const pause = { scope, id, source, reason, until, stopRunning, actor };
  if (memberId !== null && scope !== "key" && scope !== "session") return refuseMembers();
  if (scope === "organization") {
    return id === "" || id === orgId ? success({ ...pause, id: "" }) : noSuchOwner(scope);
  }
  if (id === "") return invalid(`id must be the ID of the ${scope.replace("_", " ")}.`, "id");
  return ownerPause(party, pause);
}

async function ownerPause(party: PausingParty, pause: NewPause): Promise<Result<NewPause>> {
  const { db, orgId } = party;
  const { scope, id } = pause;
  if (scope === "session") return sessionPause(party, pause);
  if (scope === "end_user") {
    const isOperator = party.source === "operator";
    return isOperator ? invalid("scope can't be end_user for operators.", "scope") : success(pause);
  }
  if (scope === "key") {
    const key = await findKey(db, id, party);
    return key === null || key.revokedAt !== null ? noSuchOwner(scope) : success(pause);
  }
  const member = await findMemberById(db, { id, orgId });
  return member === null ? noSuchOwner(scope) : success(pause);
}

async function sessionPause(party: PausingParty, pause: NewPause): Promise<Result<NewPause>> {
  const { orgId, memberId } = party;
  const owner = { keyId: null, memberId };
  const ending = await parseSessionEnding(pause.id, { ...party, of: { orgId }, owner });
  if (!ending.ok) return ending;
  const { isOwn, expiresAt } = ending.value;
  return success({ ...pause, session: { owner, isOwn: isOwn && memberId === null, expiresAt } });
}

function refuseMembers(): Refusal {
  return refuse({ kind: "role_required", roles: ["owner", "admin", "billing"] });
}

function noSuchOwner(noun: string): Refusal {
  return refuse({ kind: "not_found", message: `No such ${noun}.` });
}
