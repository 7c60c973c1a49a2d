import * as z from "zod/mini";
import { optionalVariables } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { created, readBody, readFields } from "../../shared/http/endpoint.ts";
import type { Answer, View } from "../../shared/http/endpoint.ts";
import { once, parseFields, parseQuery, wholeNumber } from "../../shared/http/parse-body.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import { actorOf, secretOf } from "../../shared/caller.ts";
import type { Role } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { flattenResult, refuse, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import { idempotencyOf, readIdempotencyKey } from "../../shared/idempotency.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { readObject } from "../../shared/reach-object.ts";
import type { StoredKey } from "./stored-key.ts";
import { KEY_READ_ONLY, keyRecord } from "./stored-key.ts";
import { changeKeyEverywhere } from "./change-key.ts";
import { insertKeyOnce } from "./insert-once.store.ts";
import {
  findKey,
  findKeyByHash,
  findRole,
  insertKey,
  LISTED_REVOKED,
  listKeys,
  listRevokedKeys,
} from "./keys.store.ts";
import type { KeyOwner, ListCursor } from "./keys.store.ts";
import { keyChangeSchema, mintKeyOf, newKeySchema } from "./new-key.ts";
import { rotateKeyEverywhere, parseRotation, rotationView } from "./rotation.ts";
import type { Rotation, RotationRequest } from "./rotation.ts";
import { revokeKeyEverywhere } from "./revocation.ts";
import type { KeyServices } from "./revocation.ts";
import { ownSessionView } from "./sessions.route.ts";
import { keyStatusView } from "./terms.ts";
import type { ModelNames } from "./terms.ts";

/**
 * GET /v1/keys: the organization's live keys and its newest 100 revoked ones, newest first; of a `member`
 * its own. `next_after`, where it is, asks for older ones: `?revoked=true&limit&after`.
 */
export async function listKeysRoute(c: AppContext): Promise<Answer> {
  const asked = keysQuery(c.req.url);
  if (!asked.ok) return asked;
  const read = (): Promise<KeysPage> => listedKeys(c.env.DB, ownerOf(c), asked.value);
  const page = await queryDatabase(read, "keys_unreadable", fieldsOf(c));
  if (!page.ok) return page;
  return success(keysView(page.value, (key) => keyRecord(key, c.var.config.region, now(c.env))));
}

/** A page's last key as `next_after` names it: Unix ms, a dot, its id. */
const place = z.pipe(
  once.check(z.regex(/^\d{1,15}\.[^.]{1,100}$/, "must be a next_after")),
  z.transform((text): ListCursor => {
    const [createdAt = "", id = ""] = text.split(".");
    return { createdAt: Number(createdAt), keyId: id };
  }),
);

/** Which keys are listed: all live ones with the newest revoked, or, a page at a time, revoked ones. */
export const keysParameters = z.object({
  revoked: z._default(z.enum(["true", "false"]), "false"),
  limit: wholeNumber(1, LISTED_REVOKED, LISTED_REVOKED),
  after: z.optional(place),
});
type KeysQuery = z.infer<typeof keysParameters>;

/** `revoked`, `limit` and `after` of a list's URL; 400 with `param`. */
export function keysQuery(url: string): Result<KeysQuery> {
  const fields = parseQuery(keysParameters, url);
  return fields.ok ? success(fields.value) : fields;
}

/** Keys of one answer, and, where more revoked ones may follow, what asks for them with `revoked=true`. */
type KeysPage = { readonly keys: readonly StoredKey[]; readonly nextAfter: string | null };

/** What the book lists; throws when D1 fails. */
export async function listedKeys(
  db: D1Database,
  owner: KeyOwner,
  { revoked, limit, after }: KeysQuery,
): Promise<KeysPage> {
  const isPage = revoked === "true";
  const keys = isPage
    ? await listRevokedKeys(db, owner, { limit, after: after ?? null })
    : await listKeys(db, owner);
  const ended = keys.filter((key) => key.revokedAt !== null);
  const last = ended.length === (isPage ? limit : LISTED_REVOKED) ? ended.at(-1) : undefined;
  return { keys, nextAfter: last === undefined ? null : `${last.createdAt}.${last.keyId}` };
}

/** The JSON of a list of keys, each as `record` shows it. */
export function keysView({ keys, nextAfter }: KeysPage, record: (key: StoredKey) => object): View {
  return { keys: keys.map(record), ...(nextAfter !== null && { next_after: nextAfter }) };
}

/**
 * POST /v1/keys: 201, the record and, this once, the key. It belongs to the caller's member, so it may do
 * what its maker may and no more. A caller that was revoked meanwhile is 401 and made nothing. With an
 * Idempotency-Key once a day: a repeat is 409 and names the key it made, with another body 422.
 */
export async function createKeyRoute(c: AppContext, names: ModelNames): Promise<Answer> {
  const { config, member, admitted } = c.var;
  const name = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!name.ok) return name;
  const body = await readBody(c);
  if (!body.ok) return body;
  const fields = parseFields(newKeySchema, KEY_READ_ONLY, body.value.json);
  if (!fields.ok) return fields;
  const { orgId, keyId, keyHash, shown } = admitted.caller;
  const secret = secretOf(keyHash, shown) ?? keyHash;
  const mint = { region: config.region, keySecrets: config.keySecrets, now: now(c.env), names };
  const fresh = await mintKeyOf(mint, { memberId: member.id, orgId }, fields.value);
  if (!fresh.ok) return fresh;
  const { booked, key } = fresh.value;
  const named = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  const actor = actorOf(admitted.caller);
  const idempotency = name.value === null ? null : await idempotencyOf(name.value, named);
  const insert = (): Promise<Result<StoredKey>> =>
    idempotency === null
      ? insertKey(c.env.DB, booked, keyId, { callerSecret: secret, actor })
      : insertKeyOnce(c.env.DB, booked, { keyId, secret, idempotency, actor });
  const inserted = flattenResult(await queryDatabase(insert, "key_not_inserted", fieldsOf(c)));
  if (!inserted.ok) return inserted;
  return created({ ...keyRecord(inserted.value, config.region, mint.now), key });
}

/** Who may give a key of each role more by PATCH: nobody below it, who may have its secret and would act as its member. */
const WIDENED_BY: Readonly<Record<Role, readonly Role[]>> = {
  owner: ["owner"],
  admin: ["owner", "admin"],
  billing: ["owner", "admin"],
  member: ["owner", "admin"],
};

/**
 * PATCH /v1/keys/{id}: 200, the record. Owners and admins change any key of the organization, everyone else
 * its own; one of a higher role, and everyone else's own, only to something tighter (403 `role_required`). What is new
 * counts from the answer on.
 */
export async function patchKeyRoute(c: AppContext, names: ModelNames): Promise<Answer> {
  const fields = await readFields(c, keyChangeSchema, ["scope", ...KEY_READ_ONLY]);
  if (!fields.ok) return fields;
  const { member, admitted } = c.var;
  const id = c.req.param("id") ?? "";
  const mayAny = WIDENED_BY.member.includes(member.role);
  const owner = { orgId: admitted.caller.orgId, memberId: mayAny ? null : member.id };
  const refuseWider = async ({ memberId }: StoredKey): Promise<Refusal | null> => {
    const roles = WIDENED_BY[(await findRole(c.env.DB, memberId)) ?? "owner"];
    return roles.includes(member.role) ? null : refuse({ kind: "role_required", roles });
  };
  const services = { ...keyServices(c), names };
  const change = (): Promise<Result<StoredKey>> =>
    changeKeyEverywhere(services, {
      find: () => findKey(c.env.DB, id, owner),
      fields: fields.value,
      refuseWider,
    });
  const changed = flattenResult(await queryDatabase(change, "key_not_changed", fieldsOf(c)));
  if (!changed.ok) return changed;
  return success(keyRecord(changed.value, c.var.config.region, services.now));
}

/** GET /v1/key: the calling key's record, what is left of each of its limits, and when it comes back. */
export async function ownKeyRoute(c: AppContext): Promise<Answer> {
  const { keyHash, orgId, shown } = c.var.admitted.caller;
  const read = (): Promise<StoredKey | null> => findKeyByHash(c.env.DB, keyHash);
  const booked = await queryDatabase(read, "key_unreadable", fieldsOf(c));
  if (!booked.ok) return booked;
  if (booked.value === null) return refuse({ kind: "invalid_api_key" });
  const { wallet, now: nowMs } = keyServices(c);
  const standing = await readObject(() => wallet(orgId).keyStanding(keyHash, shown));
  if (!standing.ok) return standing;
  if (shown?.session !== undefined) {
    return success(ownSessionView(c, shown.session, standing.value));
  }
  const record = keyRecord(booked.value, c.var.config.region, nowMs);
  return success({ ...record, ...keyStatusView(standing.value) });
}

/**
 * POST /v1/keys/{id}/rotate: 201, the record, and this once its new secret; the others end after
 * `overlap_seconds`. Everyone rotates the keys of its own member, and a key with limits itself: who gets a secret
 * acts as its member. With the same Idempotency-Key, which it must have, a repeat within a day is the same secret.
 */
export async function rotateKeyRoute(c: AppContext): Promise<Answer> {
  const { admitted, config, member } = c.var;
  const { orgId, keyId, keyHash, shown } = admitted.caller;
  const id = c.req.param("id") ?? "";
  const isForeign = id !== keyId || shown?.session !== undefined;
  if (admitted.isLimited === true && isForeign) return refuse({ kind: "key_is_limited" });
  const asked = await rotationOf(c);
  if (!asked.ok) return asked;
  const owner = { orgId, memberId: member.id };
  const services = { ...keyServices(c), region: config.region, keySecrets: config.keySecrets };
  const rotate = (): Promise<Result<Rotation>> =>
    rotateKeyEverywhere(services, {
      find: () => findKey(c.env.DB, id, owner),
      caller: { keyId, secret: secretOf(keyHash, shown) ?? keyHash },
      ...asked.value,
    });
  const rotated = flattenResult(await queryDatabase(rotate, "key_not_rotated", fieldsOf(c)));
  if (!rotated.ok) return rotated;
  const record = keyRecord(rotated.value.booked, config.region, services.now);
  return created(rotationView(rotated.value, record));
}

async function rotationOf(c: AppContext): Promise<Result<RotationRequest>> {
  const { orgId, keyId } = c.var.admitted.caller;
  const body = await readBody(c);
  if (!body.ok) return body;
  const header = c.req.header("idempotency-key") ?? null;
  const named = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  return parseRotation({ header, body: body.value.json, named });
}

/**
 * DELETE /v1/keys/{id}: 200, the record with `revoked: true`, however often. A key may revoke itself.
 * Unknown ids, other organizations' keys and, for a `member`, other members' are one and the same 404.
 * While the book is away a member's keys that were ever used can still be ended by another of its keys: the
 * record is then what is known without the book, which is told later.
 */
export async function revokeKeyRoute(c: AppContext): Promise<Answer> {
  const { config } = c.var;
  const id = c.req.param("id") ?? "";
  const unread = optionalVariables(c, "memberUnread");
  const found =
    unread === undefined
      ? await queryDatabase(() => findKey(c.env.DB, id, ownerOf(c)), "key_unreadable", fieldsOf(c))
      : refuse(unread);
  if (!found.ok) return revokeWithoutBook(c, id, found.failure);
  if (found.value === null) return refuse({ kind: "not_found", message: "No such key." });
  const revoked = await revokeKeyEverywhere(keyServices(c), found.value);
  if (!revoked.ok) return revoked;
  return success(keyRecord(revoked.value, config.region, now(c.env)));
}

/** For a key of the caller's own member that its wallet has met; `failure` for any other. */
async function revokeWithoutBook(c: AppContext, id: string, failure: Failure): Promise<Answer> {
  const { orgId, memberId } = c.var.admitted.caller;
  const used = await readObject(() => objectsOf(c.env).wallet(orgId).keyOf(id));
  if (!used.ok || used.value === null || used.value.memberId !== memberId) return refuse(failure);
  const { keyHash, scope, rpmLimit } = used.value;
  const key = { keyId: id, keyHash, orgId, scope, revokedAt: null };
  const revoked = await revokeKeyEverywhere(keyServices(c), key);
  if (!revoked.ok) return revoked;
  return success({ id, region: c.var.config.region, scope, rpm_limit: rpmLimit, revoked: true });
}

/** What calls about a key work with. */
function keyServices(c: AppContext): KeyServices {
  const { region, peers, keySecrets } = c.var.config;
  return {
    ...objectsOf(c.env),
    db: c.env.DB,
    region,
    peers: peers.map((peer) => peer.region),
    keySecrets,
    now: now(c.env),
    actor: actorOf(c.var.admitted.caller),
  };
}

/** Whose keys the caller may see and revoke: a `member` its own, everyone else the organization's. */
function ownerOf(c: AppContext): KeyOwner {
  const { admitted, member } = c.var;
  return { orgId: admitted.caller.orgId, memberId: member.role === "member" ? member.id : null };
}

function fieldsOf(c: AppContext): { readonly request_id: string; readonly org_id: string } {
  return { request_id: c.var.requestId, org_id: c.var.admitted.caller.orgId };
}
