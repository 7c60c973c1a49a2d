import type { Context } from "hono";
import type { AppEnv } from "../../shared/http/context.ts";
import { admittedKey, identifyGlobalKey } from "../../accounts/keys/internal-caller.ts";
import type { StoredResponseResult } from "../../shared/contracts/stored-responses.ts";
import { continuationFilter, responseOwner } from "../../shared/contracts/stored-responses.ts";
import { refuse } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { callObject } from "../../shared/reach-object.ts";
import { recallResultToJson, parseStoredResponsesRequest } from "./stored-format.ts";
import type { StoredResponsesRequest } from "./stored-format.ts";

export async function storedResponsesPeer(c: Context<AppEnv>): Promise<Response> {
  const request = parseStoredResponsesRequest(c.var.peerBody);
  const answer =
    request === null ? refuse({ kind: "storage_unavailable" }) : await runOperation(c, request);
  return c.json(recallResultToJson(answer));
}

async function runOperation(
  c: Context<AppEnv>,
  { called, recall, keep }: StoredResponsesRequest,
): Promise<Result<StoredResponseResult | null>> {
  const { config, timers } = c.var;
  const register = objectsOf(c.env).register;
  const key = await identifyGlobalKey(register, called, null, timers.after);
  if (!key.ok) return key;
  const admitted = admittedKey(key.value, called, config.region);
  const kept = () => objectsOf(c.env).kept(key.value.orgId);
  if (recall !== null) return callObject(() => kept().recall(recall, continuationFilter(admitted)));
  if (keep === null) return refuse({ kind: "storage_unavailable" });
  return callObject(() => kept().keep({ ...keep, by: responseOwner(admitted.caller) }));
}
