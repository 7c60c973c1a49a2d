import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { parseFields } from "../http/parse-body.ts";
import { MANAGEMENT_BYTES_MAX, readJsonBody } from "../http/read-json.ts";
import { askBook } from "../lib/ask-book.ts";
import { now } from "../lib/clock.ts";
import { refuse } from "../lib/failure.ts";
import type { Failure, Result } from "../lib/failure.ts";
import { idempotencyOf, readIdempotencyKey } from "../lib/idempotency.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { readObject } from "../lib/reach-object.ts";
import { insertKeyOnce } from "./insert-once.store.ts";
import { KEY_READ_ONLY, keyRecord } from "./key-record.ts";
import { findKey, insertKey } from "./keys.store.ts";
import type { KeyOwner } from "./keys.store.ts";
import type { KeyRow } from "./key-record.ts";
import { mintKeyOf, newKeySchema } from "./new-key.ts";
import { keysQuery, keysView, listedKeys } from "./listed-keys.ts";
import type { KeysPage } from "./listed-keys.ts";
import { revokeKeyEverywhere } from "./revocation.ts";
import type { RevocationServices } from "./revocation.ts";

type AppContext = Context<AppEnv>;

/**
 * GET /v1/keys: the organisation's live keys and its newest 100 revoked ones, newest first; of a `member`
 * its own. `next_after`, where it is, asks for older ones: `?revoked=true&limit&after`.
 */
export async function listKeysRoute(c: AppContext): Promise<Response> {
  const asked = keysQuery(c.req.url);
  if (!asked.ok) return fail(c, asked.failure);
  const read = (): Promise<KeysPage> => listedKeys(c.env.DB, ownerOf(c), asked.value);
  const page = await askBook(read, "keys_unreadable", fieldsOf(c));
  if (!page.ok) return fail(c, page.failure);
  return c.json(keysView(page.value, (row) => keyRecord(row, c.var.config.region)));
}

/**
 * POST /v1/keys: 201, the record and, this once, the key. It belongs to the caller's member, so it may do
 * what its maker may and no more. A caller that was revoked meanwhile is 401 and made nothing. With an
 * Idempotency-Key once a day: a repeat is 409 and names the key it made, with another body 422.
 */
export async function createKeyRoute(c: AppContext): Promise<Response> {
  const { config, member, admitted } = c.var;
  const timeoutMs = config.numbers.BODY_TIMEOUT_MS;
  const name = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!name.ok) return fail(c, name.failure);
  const body = await readJsonBody(c.req.raw, { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs });
  if (!body.ok) return fail(c, body.failure);
  const fields = parseFields(newKeySchema, KEY_READ_ONLY, body.value.json);
  if (!fields.ok) return fail(c, fields.failure);
  const { orgId, keyId } = admitted.caller;
  const mint = { region: config.region, keySecrets: config.keySecrets, now: now(c.env) };
  const fresh = await mintKeyOf(mint, { id: member.id, org_id: orgId }, fields.value);
  const named = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  const idempotency = name.value === null ? null : await idempotencyOf(name.value, named);
  const insert = (): Promise<Result<KeyRow>> =>
    idempotency === null
      ? insertKey(c.env.DB, fresh.row, keyId)
      : insertKeyOnce(c.env.DB, fresh.row, { keyId, idempotency });
  const asked = await askBook(insert, "key_not_inserted", fieldsOf(c));
  const inserted = asked.ok ? asked.value : asked;
  if (!inserted.ok) return fail(c, inserted.failure);
  return c.json({ ...keyRecord(inserted.value, config.region), key: fresh.key }, 201);
}

/**
 * DELETE /v1/keys/{id}: 200, the record with `revoked: true`, however often. A key may revoke itself.
 * Unknown ids, other organisations' keys and, for a `member`, other members' are one and the same 404.
 * While the book is away a member's keys that were ever used can still be ended by another of its keys: the
 * record is then what is known without the book, which is told later.
 */
export async function revokeKeyRoute(c: AppContext): Promise<Response> {
  const { config } = c.var;
  const id = c.req.param("id") ?? "";
  const unread = c.get("memberUnread") as Failure | undefined;
  const found =
    unread === undefined
      ? await askBook(() => findKey(c.env.DB, id, ownerOf(c)), "key_unreadable", fieldsOf(c))
      : refuse(unread);
  if (!found.ok) return revokeWithoutBook(c, id, found.failure);
  if (found.value === null) return fail(c, { kind: "not_found", message: "No such key." });
  const revoked = await revokeKeyEverywhere(revocationServices(c), found.value);
  if (!revoked.ok) return fail(c, revoked.failure);
  return c.json(keyRecord(revoked.value, config.region));
}

/** For a key of the caller's own member that its wallet has met; `failure` for any other. */
async function revokeWithoutBook(c: AppContext, id: string, failure: Failure): Promise<Response> {
  const { orgId, memberId } = c.var.admitted.caller;
  const wallets = inJurisdiction(c.env.WALLET, c.var.config.jurisdiction);
  const used = await readObject(() => wallets.getByName(orgId).keyOf(id));
  if (!used.ok || used.value === null || used.value.memberId !== memberId) return fail(c, failure);
  const { keyHash: hash, scope, rpmLimit: rpm_limit } = used.value;
  const key = { id, hash, org_id: orgId, scope, revoked_at: null };
  const revoked = await revokeKeyEverywhere(revocationServices(c), key);
  if (!revoked.ok) return fail(c, revoked.failure);
  return c.json({ id, region: c.var.config.region, scope, rpm_limit, revoked: true });
}

function revocationServices(c: AppContext): RevocationServices {
  const { jurisdiction, peers } = c.var.config;
  const limiters = inJurisdiction(c.env.KEY_LIMITER, jurisdiction);
  const wallets = inJurisdiction(c.env.WALLET, jurisdiction);
  const outboxes = inJurisdiction(c.env.REGION_OUTBOX, jurisdiction);
  return {
    db: c.env.DB,
    limiter: (keyHash) => limiters.getByName(keyHash),
    wallet: (orgId) => wallets.getByName(orgId),
    peers: peers.map(({ region }) => region),
    outbox: (name) => outboxes.getByName(name),
    now: now(c.env),
  };
}

/** Whose keys the caller may see and revoke: a `member` its own, everyone else the organisation's. */
function ownerOf(c: AppContext): KeyOwner {
  const { admitted, member } = c.var;
  return { orgId: admitted.caller.orgId, memberId: member.role === "member" ? member.id : null };
}

function fieldsOf(c: AppContext): { readonly request_id: string; readonly org_id: string } {
  return { request_id: c.var.requestId, org_id: c.var.admitted.caller.orgId };
}
