import * as z from "zod/mini";
import { readOptionalVariable } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import {
  created,
  memberFilter,
  readBody,
  readBodyFields,
  queryForCaller,
} from "../../shared/http/endpoint.ts";
import {
  singleValueSchema,
  parseFields,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../shared/http/parse-body.ts";
import { actorOfCaller, presentedSecretHash } from "../../shared/caller.ts";
import type { Role } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { flattenResult, refuse, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import { hashIdempotentRequest, readIdempotencyKey } from "../../shared/idempotency.ts";
import { callObject } from "../../shared/reach-object.ts";
import type { StoredKey } from "./stored-key.ts";
import { KEY_READ_ONLY_FIELDS, apiKeyView } from "./stored-key.ts";
import { changeKeyEverywhere } from "./change-key.ts";
import { insertKeyOnce } from "./insert-once.store.ts";
import {
  findKey,
  findKeyByHash,
  findMemberRole,
  insertKey,
  LISTED_REVOKED_KEYS_MAX,
  listKeys,
  listRevokedKeys,
} from "./keys.store.ts";
import type { KeyOwner, KeyListCursor } from "./keys.store.ts";
import { keyChangeSchema, mintMemberKey, newKeySchema } from "./new-key.ts";
import { rotateKeyEverywhere, parseKeyRotation, rotatedKeyView } from "./rotation.ts";
import type { RotatedKey, KeyRotationRequest } from "./rotation.ts";
import { revokeKeyEverywhere, createKeyServices } from "./revocation.ts";
import type { KeyServices } from "./revocation.ts";
import { ownKeyData } from "./own-key-data.ts";
import { ownSessionView, walletOf } from "./sessions.route.ts";
import { keyStatusView } from "./terms.ts";
import type { ModelNames } from "./terms.ts";

/**
 * Handles GET /v1/keys. Returns active keys and the newest 100 revoked ones. With `?revoked=true`,
 * returns pages of all revoked keys. A `member` sees only their own.
 */
export async function listKeysRoute(c: AppContext) {
  const query = parseQuery(keysQuerySchema, c.req.url);
  if (!query.ok) return query;
  const page = await queryForCaller(c, "keys_unreadable", () =>
    readKeyPage(c.env.DB, ownerOf(c), query.value),
  );
  if (!page.ok) return page;
  return success(
    keyPageView(page.value, (key) => apiKeyView(key, c.var.config.region, now(c.env))),
  );
}

const cursorSchema = z.pipe(
  singleValueSchema.check(
    z.regex(/^\d{1,15}\.[^.]{1,100}$/, "must be the next_after of an earlier response"),
  ),
  z.transform((text): KeyListCursor => {
    const [createdAt = "", id = ""] = text.split(".");
    return { createdAt: Number(createdAt), keyId: id };
  }),
);

export const keysQuerySchema = z.object({
  revoked: z._default(z.enum(["true", "false"]), "false"),
  limit: wholeNumberParameterWithDefault(1, LISTED_REVOKED_KEYS_MAX, LISTED_REVOKED_KEYS_MAX),
  after: z.optional(cursorSchema),
});
type KeysQuery = z.infer<typeof keysQuerySchema>;

type KeysPage = { readonly keys: readonly StoredKey[]; readonly nextAfter: string | null };

export async function readKeyPage(
  db: D1Database,
  owner: KeyOwner,
  { revoked, limit, after }: KeysQuery,
): Promise<KeysPage> {
  const isRevokedList = revoked === "true";
  const keys = isRevokedList
    ? await listRevokedKeys(db, owner, { limit, after: after ?? null })
    : await listKeys(db, owner);
  const ended = keys.filter((key) => key.revokedAt !== null);
  const last =
    ended.length === (isRevokedList ? limit : LISTED_REVOKED_KEYS_MAX) ? ended.at(-1) : undefined;
  return { keys, nextAfter: last === undefined ? null : `${last.createdAt}.${last.keyId}` };
}

export function keyPageView<Shown>(
  { keys, nextAfter }: KeysPage,
  record: (key: StoredKey) => Shown,
) {
  return { keys: keys.map(record), ...(nextAfter !== null && { next_after: nextAfter }) };
}

/**
 * Handles POST /v1/keys. Returns 201 with the key object and, only here, the secret. A repeated
 * Idempotency-Key returns 409 with the key's ID.
 */
export async function createKeyRoute(c: AppContext, names: ModelNames) {
  const { config, member, admitted } = c.var;
  const name = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!name.ok) return name;
  const body = await readBody(c);
  if (!body.ok) return body;
  const fields = parseFields(newKeySchema, KEY_READ_ONLY_FIELDS, body.value.json);
  if (!fields.ok) return fields;
  const { orgId, keyId, keyHash, shown } = admitted.caller;
  const secret = presentedSecretHash(keyHash, shown) ?? keyHash;
  const services = { ...keyServices(c), names };
  const newKey = await mintMemberKey(services, { memberId: member.id, orgId }, fields.value);
  if (!newKey.ok) return newKey;
  const { storedKey: booked, key } = newKey.value;
  const idempotentRequest = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  const { actor } = services;
  const idempotency =
    name.value === null ? null : await hashIdempotentRequest(name.value, idempotentRequest);
  const insert = (): Promise<Result<StoredKey>> =>
    idempotency === null
      ? insertKey(c.env.DB, booked, keyId, { callerSecret: secret, actor })
      : insertKeyOnce(c.env.DB, booked, { keyId, secret, idempotency, actor });
  const inserted = flattenResult(await queryForCaller(c, "key_not_inserted", insert));
  if (!inserted.ok) return inserted;
  return created({ ...apiKeyView(inserted.value, config.region, services.now), key });
}

/** The roles that can raise a key's limits, for each role of the key's owner. */
const ROLES_RAISING_LIMITS: Readonly<Record<Role, readonly Role[]>> = {
  owner: ["owner"],
  admin: ["owner", "admin"],
  billing: ["owner", "admin"],
  member: ["owner", "admin"],
};

/**
 * Handles PATCH /v1/keys/{id}. Owners and admins can change any key, others their own. Raising
 * limits can require a higher role.
 */
export async function patchKeyRoute(c: AppContext, names: ModelNames) {
  const fields = await readBodyFields(c, keyChangeSchema, ["scope", ...KEY_READ_ONLY_FIELDS]);
  if (!fields.ok) return fields;
  const { member, admitted } = c.var;
  const id = c.req.param("id") ?? "";
  const canChangeAnyKey = ROLES_RAISING_LIMITS.member.includes(member.role);
  const owner = { orgId: admitted.caller.orgId, memberId: canChangeAnyKey ? null : member.id };
  const refuseRaisedLimits = async ({ memberId }: StoredKey): Promise<Refusal | null> => {
    const roles = ROLES_RAISING_LIMITS[(await findMemberRole(c.env.DB, memberId)) ?? "owner"];
    return roles.includes(member.role) ? null : refuse({ kind: "role_required", roles });
  };
  const services = { ...keyServices(c), names };
  const change = (): Promise<Result<StoredKey>> =>
    changeKeyEverywhere(services, {
      find: () => findKey(c.env.DB, id, owner),
      fields: fields.value,
      refuseRaisedLimits,
    });
  const changed = flattenResult(await queryForCaller(c, "key_not_changed", change));
  if (!changed.ok) return changed;
  return success(apiKeyView(changed.value, c.var.config.region, services.now));
}

export async function readOwnKeyRoute(c: AppContext) {
  const { keyHash, orgId, shown } = c.var.admitted.caller;
  const found = await queryForCaller(c, "key_unreadable", () => findKeyByHash(c.env.DB, keyHash));
  if (!found.ok) return found;
  if (found.value === null) return refuse({ kind: "invalid_api_key" });
  const { wallet, now: nowMs } = keyServices(c);
  const session = shown?.session ?? null;
  const includesSpend = session === null;
  const status = await callObject(() => wallet(orgId).keyStanding(keyHash, shown, includesSpend));
  if (!status.ok) return status;
  const { name, memberId, rpmLimit } = found.value;
  const { region } = c.var.config;
  const callerData =
    session === null
      ? { label: name, rpmLimit, memberId }
      : { label: session.id, rpmLimit: session.rpmLimit ?? rpmLimit, memberId: null };
  const data = ownKeyData(status.value, { ...callerData, orgId, region, session });
  if (session !== null) {
    return success({ ...ownSessionView(c, session, status.value), data });
  }
  const record = apiKeyView(found.value, region, nowMs);
  return success({ ...record, ...keyStatusView(status.value), data });
}

/**
 * Handles POST /v1/keys/{id}/rotate. Returns 201 with the key object and, only here, the new
 * secret. Requires an Idempotency-Key. A retry within a day returns the same secret.
 */
export async function rotateKeyRoute(c: AppContext) {
  const { admitted, config, member } = c.var;
  const { orgId, keyId, keyHash, shown } = admitted.caller;
  const id = c.req.param("id") ?? "";
  if (admitted.isLimited === true && id !== keyId) return refuse({ kind: "key_is_limited" });
  const request = await readRotation(c);
  if (!request.ok) return request;
  const owner = { orgId, memberId: member.id };
  const services = keyServices(c);
  const rotate = (): Promise<Result<RotatedKey>> =>
    rotateKeyEverywhere(services, {
      find: () => findKey(c.env.DB, id, owner),
      caller: { keyId, secret: presentedSecretHash(keyHash, shown) ?? keyHash },
      ...request.value,
    });
  const rotated = flattenResult(await queryForCaller(c, "key_not_rotated", rotate));
  if (!rotated.ok) return rotated;
  const record = apiKeyView(rotated.value.storedKey, config.region, services.now);
  return created(rotatedKeyView(rotated.value, record));
}

async function readRotation(c: AppContext): Promise<Result<KeyRotationRequest>> {
  const { orgId, keyId } = c.var.admitted.caller;
  const body = await readBody(c);
  if (!body.ok) return body;
  const header = c.req.header("idempotency-key") ?? null;
  const idempotentRequest = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  return parseKeyRotation({ header, body: body.value.json, named: idempotentRequest });
}

/**
 * Handles DELETE /v1/keys/{id}. If D1 fails, members can still revoke their own keys that were used
 * before.
 */
export async function revokeKeyRoute(c: AppContext) {
  const { config } = c.var;
  const id = c.req.param("id") ?? "";
  const memberFailure = readOptionalVariable(c, "memberUnread");
  const found =
    memberFailure === undefined
      ? await queryForCaller(c, "key_unreadable", () => findKey(c.env.DB, id, ownerOf(c)))
      : refuse(memberFailure);
  if (!found.ok) return revokeWithoutDatabase(c, id, found.failure);
  if (found.value === null) return refuse({ kind: "not_found", message: "No such key." });
  const revoked = await revokeKeyEverywhere(keyServices(c), found.value);
  if (!revoked.ok) return revoked;
  return success({ ...apiKeyView(revoked.value, config.region, now(c.env)), revoked: true });
}

async function revokeWithoutDatabase(c: AppContext, id: string, failure: Failure) {
  const { orgId, memberId } = c.var.admitted.caller;
  const used = await callObject(() => walletOf(c).keyOf(id));
  if (!used.ok || used.value === null || used.value.memberId !== memberId) return refuse(failure);
  const { keyHash, scope, rpmLimit } = used.value;
  const key = { keyId: id, keyHash, orgId, scope, revokedAt: null };
  const revoked = await revokeKeyEverywhere(keyServices(c), key);
  if (!revoked.ok) return revoked;
  return success({ id, region: c.var.config.region, scope, rpm_limit: rpmLimit, revoked: true });
}

function keyServices(c: AppContext): KeyServices {
  return createKeyServices(c.env, c.var.config, actorOfCaller(c.var.admitted.caller));
}

function ownerOf(c: AppContext): KeyOwner {
  return { orgId: c.var.admitted.caller.orgId, memberId: memberFilter(c) };
}
