import { created } from "../http/endpoint.ts";
import type { Answer, View } from "../http/endpoint.ts";
import { parseFields } from "../http/parse-body.ts";
import { changeKeyEverywhere } from "../keys/change-key.ts";
import { KEY_READ_ONLY, keyRecord } from "../keys/booked-key.ts";
import type { BookedKey } from "../keys/booked-key.ts";
import { findKey } from "../keys/keys.store.ts";
import { keysQuery, keysView, listedKeys } from "../keys/keys.route.ts";
import { keyChangeSchema } from "../keys/new-key.ts";
import { revokeKeyEverywhere } from "../keys/revocation.ts";
import { rotateKeyEverywhere, rotationAsked, rotationView } from "../keys/rotation.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import type { OperatorContext, OperatorRequest } from "./operator-context.ts";
import { organizationOf } from "./organizations.ts";

/** `GET /orgs/{id}/keys`: as `GET /v1/keys`, of all members. */
export async function getKeys(context: OperatorContext, request: OperatorRequest): Promise<Answer> {
  const asked = keysQuery(request.url);
  if (!asked.ok) return asked;
  const found = await organizationOf(context, request);
  if (!found.ok) return found;
  const owner = { orgId: found.value.id, memberId: null };
  const page = await listedKeys(context.db, owner, asked.value);
  return success(keysView(page, (key) => withMember(context, key)));
}

/** `GET /orgs/{id}/keys/{key_id}`. */
export async function getKey(context: OperatorContext, request: OperatorRequest): Promise<Answer> {
  const found = await keyOf(context, request);
  return found.ok ? success(withMember(context, found.value)) : found;
}

/** `PATCH /orgs/{id}/keys/{key_id}`: the book first, then register and wallet: what is new counts at once. */
export async function patchKey(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const fields = parseFields(keyChangeSchema, ["scope", ...KEY_READ_ONLY], request.body);
  if (!fields.ok) return fields;
  const { id, orgId } = namesOf(request);
  const changed = await changeKeyEverywhere(context, {
    find: () => findKey(context.db, id, { orgId, memberId: null }),
    fields: fields.value,
    mayWiden: true,
  });
  return changed.ok ? success(withMember(context, changed.value)) : changed;
}

/**
 * `POST /orgs/{id}/keys/{key_id}/rotate`: as `POST /v1/keys/{id}/rotate`, with its Idempotency-Key, for any key.
 * The same name and body are the same secret for a day, if the same operator asks.
 */
export async function postRotation(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const { id, orgId } = namesOf(request);
  const asked = await rotationAsked({
    header: request.idempotencyKey,
    body: request.body,
    named: {
      keyId: `operator:${context.actor.id}`,
      orgId,
      path: new URL(request.url).pathname,
      bytes: new TextEncoder().encode(JSON.stringify(request.body)),
    },
  });
  if (!asked.ok) return asked;
  const find = (): ReturnType<typeof findKey> => findKey(context.db, id, { orgId, memberId: null });
  const rotated = await rotateKeyEverywhere(context, { find, caller: null, ...asked.value });
  if (!rotated.ok) return rotated;
  return created(rotationView(rotated.value, withMember(context, rotated.value.booked)));
}

/** `DELETE /orgs/{id}/keys/{key_id}`: the record with `revoked: true`; again: the same, and every notice again. */
export async function deleteKey(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const found = await keyOf(context, request);
  if (!found.ok) return found;
  const revoked = await revokeKeyEverywhere(context, found.value);
  return revoked.ok ? success(withMember(context, revoked.value)) : revoked;
}

async function keyOf(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Result<BookedKey>> {
  const { id, orgId } = namesOf(request);
  const key = await findKey(context.db, id, { orgId, memberId: null });
  return key === null ? noSuchKey() : success(key);
}

function namesOf({ params }: OperatorRequest): { readonly id: string; readonly orgId: string } {
  return { id: params["key_id"] ?? "", orgId: params["id"] ?? "" };
}

function noSuchKey(): Result<never> {
  return refuse({ kind: "not_found", message: "No such key." });
}

function withMember(context: OperatorContext, key: BookedKey): View {
  return { ...keyRecord(key, context.region, context.now), member_id: key.memberId };
}
