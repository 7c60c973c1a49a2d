import { created } from "../shared/http/endpoint.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { changeKeyEverywhere } from "../accounts/keys/change-key.ts";
import { KEY_READ_ONLY_FIELDS, apiKeyView } from "../accounts/keys/stored-key.ts";
import type { StoredKey } from "../accounts/keys/stored-key.ts";
import { findKey } from "../accounts/keys/keys.store.ts";
import { keysQuerySchema, keyPageView, readKeyPage } from "../accounts/keys/keys.route.ts";
import { keyChangeSchema } from "../accounts/keys/new-key.ts";
import { revokeKeyEverywhere } from "../accounts/keys/revocation.ts";
import {
  rotateKeyEverywhere,
  parseKeyRotation,
  rotatedKeyView,
} from "../accounts/keys/rotation.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import type { OperatorCall } from "./operator-context.ts";
import { noFields, queryOf, withOrganization } from "./organization-call.ts";
import {
  parseSessionEndRequest,
  sessionPageView,
  sessionsQuerySchema,
} from "../accounts/keys/sessions.route.ts";

/** Handles `GET /orgs/{id}/keys`. */
export const getKeys = withOrganization(
  queryOf(keysQuerySchema),
  async (call, { id: orgId }, query) => {
    const page = await readKeyPage(call.db, { orgId, memberId: null }, query);
    return success(keyPageView(page, (key) => keyView(call, key)));
  },
);

/** Handles `GET /orgs/{id}/keys/{key_id}`. */
export async function getKey(call: OperatorCall) {
  const found = await findKeyOfCall(call);
  return found.ok ? success(keyView(call, found.value)) : found;
}

/** Handles `PATCH /orgs/{id}/keys/{key_id}`. */
export async function patchKey(call: OperatorCall) {
  const fields = parseFields(keyChangeSchema, ["scope", ...KEY_READ_ONLY_FIELDS], call.body);
  if (!fields.ok) return fields;
  const changed = await changeKeyEverywhere(call, {
    find: () => findKeyOrNull(call),
    fields: fields.value,
    refuseRaisedLimits: async () => null,
  });
  return changed.ok ? success(keyView(call, changed.value)) : changed;
}

/**
 * Handles `POST /orgs/{id}/keys/{key_id}/rotate`. For a day, the same operator, Idempotency-Key and
 * body return the same secret.
 */
export async function postKeyRotation(call: OperatorCall) {
  const request = await parseKeyRotation({
    header: call.idempotencyKey,
    body: call.body,
    named: {
      keyId: `operator:${call.actor.id}`,
      orgId: call.params["id"] ?? "",
      path: new URL(call.url).pathname,
      bytes: new TextEncoder().encode(JSON.stringify(call.body)),
    },
  });
  if (!request.ok) return request;
  const find = () => findKeyOrNull(call);
  const rotated = await rotateKeyEverywhere(call, { find, caller: null, ...request.value });
  if (!rotated.ok) return rotated;
  return created(rotatedKeyView(rotated.value, keyView(call, rotated.value.storedKey)));
}

/** Handles `DELETE /orgs/{id}/keys/{key_id}`. */
export async function deleteKey(call: OperatorCall) {
  const found = await findKeyOfCall(call);
  if (!found.ok) return found;
  const revoked = await revokeKeyEverywhere(call, found.value);
  return revoked.ok ? success(keyView(call, revoked.value)) : revoked;
}

async function findKeyOfCall(call: OperatorCall): Promise<Result<StoredKey>> {
  const key = await findKeyOrNull(call);
  return key === null ? refuse({ kind: "not_found", message: "No such key." }) : success(key);
}

function findKeyOrNull({ db, params }: OperatorCall): Promise<StoredKey | null> {
  return findKey(db, params["key_id"] ?? "", { orgId: params["id"] ?? "", memberId: null });
}

function keyView(call: OperatorCall, key: StoredKey) {
  return apiKeyView(key, call.region, call.now);
}

const ANY_OWNER = { keyId: null, memberId: null };

/** Handles `GET /orgs/{id}/sessions`. */
export const getKeySessions = withOrganization(
  queryOf(sessionsQuerySchema),
  async (call, { id }, query) => {
    const page = await call.wallet(id).sessions({ owner: ANY_OWNER, ...query });
    return page.ok ? success(sessionPageView(page.value)) : page;
  },
);

/**
 * Handles `DELETE /orgs/{id}/sessions/{session_id}`, also for an unused session. The session ends
 * in all regions before the response.
 */
export const deleteKeySession = withOrganization(noFields, async (call, { id: orgId }) => {
  const id = call.params["session_id"] ?? "";
  const ending = await parseSessionEndRequest(id, { ...call, of: { orgId }, owner: ANY_OWNER });
  if (!ending.ok) return ending;
  const ended = await call.wallet(orgId).endSession(ending.value);
  return ended.ok ? success({ id, ended: true }) : ended;
});
