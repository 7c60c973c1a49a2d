import { actorOfCaller, createRequestCredential } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { flattenResult, success } from "../../shared/failure.ts";
import type { AppContext } from "../../shared/http/context.ts";
import {
  created,
  memberFilter,
  readBodyFields,
  queryForCaller,
} from "../../shared/http/endpoint.ts";
import { pauseSchema, pauseView } from "../../shared/pauses.ts";
import { callObject } from "../../shared/reach-object.ts";
import { readMemberKeyIds } from "../keys/keys.store.ts";
import { walletOf } from "../keys/sessions.route.ts";
import { validateNewPause } from "./paused-owner.ts";

/**
 * Handles POST /v1/pauses. Before it returns, all regions reject the paused owner's new requests.
 */
export async function createPauseRoute(c: AppContext) {
  const fields = await readBodyFields(c, pauseSchema, []);
  if (!fields.ok) return fields;
  const { caller } = c.var.admitted;
  const { orgId } = caller;
  const party = {
    db: c.env.DB,
    orgId,
    memberId: memberFilter(c),
    source: "member",
    actor: actorOfCaller(caller),
    keySecrets: c.var.config.keySecrets,
    now: now(c.env),
  } as const;
  const pause = flattenResult(
    await queryForCaller(c, "pause_unreadable", () => validateNewPause(party, fields.value)),
  );
  if (!pause.ok) return pause;
  const by = createRequestCredential(caller.keyHash, caller.shown);
  const storedPause = await callObject(() => walletOf(c).putPause(pause.value, by));
  if (!storedPause.ok) return storedPause;
  return storedPause.value.created
    ? created(pauseView(storedPause.value))
    : success(pauseView(storedPause.value));
}

export async function listPausesRoute(c: AppContext) {
  const { orgId } = c.var.admitted.caller;
  const memberId = memberFilter(c);
  const keys =
    memberId === null
      ? success([])
      : await queryForCaller(c, "keys_unreadable", () =>
          readMemberKeyIds(c.env.DB, { orgId, memberId }),
        );
  if (!keys.ok) return keys;
  const reader = memberId === null ? null : { memberId, keyIds: keys.value };
  const pauses = await callObject(() => walletOf(c).pauses(reader));
  return pauses.ok ? success({ pauses: pauses.value.map(pauseView) }) : pauses;
}

export async function endPauseRoute(c: AppContext) {
  const { caller } = c.var.admitted;
  const ending = {
    id: c.req.param("id") ?? "",
    source: "member",
    actor: actorOfCaller(caller),
  } as const;
  const by = createRequestCredential(caller.keyHash, caller.shown);
  const ended = await callObject(() => walletOf(c).endPause(ending, by));
  return ended.ok ? success({ id: ending.id, ended: true }) : ended;
}
