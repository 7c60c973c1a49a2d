import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { parseBody } from "../http/parse-body.ts";
import { MANAGEMENT_BYTES_MAX, readJsonBody } from "../http/read-json.ts";
import { askBook } from "../lib/ask-book.ts";
import { now } from "../lib/clock.ts";
import type { Result } from "../lib/failure.ts";
import { idempotencyOf, readIdempotencyKey } from "../lib/idempotency.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import type { LogFields } from "../lib/log.ts";
import { insertKeyOnce } from "./insert-once.store.ts";
import { keyRecord } from "./key-record.ts";
import { findKey, insertKey, listKeys } from "./keys.store.ts";
import type { KeyOwner } from "./keys.store.ts";
import type { KeyRow } from "./key-record.ts";
import { mintKeyOf, newKeySchema } from "./new-key.ts";
import { revokeKeyEverywhere } from "./revocation.ts";

type AppContext = Context<AppEnv>;

/** GET /v1/keys: the organisation's keys, revoked ones too, newest first; of a `member` its own. */
export async function listKeysRoute(c: AppContext): Promise<Response> {
  const rows = await askBook(() => listKeys(c.env.DB, ownerOf(c)), "keys_unreadable", fieldsOf(c));
  if (!rows.ok) return fail(c, rows.failure);
  return c.json({ keys: rows.value.map((row) => keyRecord(row, c.var.config.region)) });
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
  const fields = parseBody(newKeySchema, body.value.json);
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
 */
export async function revokeKeyRoute(c: AppContext): Promise<Response> {
  const { config } = c.var;
  const id = c.req.param("id") ?? "";
  const found = await askBook(
    () => findKey(c.env.DB, id, ownerOf(c)),
    "key_unreadable",
    fieldsOf(c),
  );
  if (!found.ok) return fail(c, found.failure);
  if (found.value === null) return fail(c, { kind: "not_found", message: "No such key." });
  const limiters = inJurisdiction(c.env.KEY_LIMITER, config.jurisdiction);
  const wallets = inJurisdiction(c.env.WALLET, config.jurisdiction);
  const outboxes = inJurisdiction(c.env.REGION_OUTBOX, config.jurisdiction);
  const revoked = await revokeKeyEverywhere(
    {
      db: c.env.DB,
      limiter: (keyHash) => limiters.getByName(keyHash),
      wallet: (orgId) => wallets.getByName(orgId),
      peers: config.peers.map(({ region }) => region),
      outbox: (name) => outboxes.getByName(name),
      now: now(c.env),
    },
    found.value,
  );
  if (!revoked.ok) return fail(c, revoked.failure);
  return c.json(keyRecord(revoked.value, config.region));
}

/** Whose keys the caller may see and revoke: a `member` its own, everyone else the organisation's. */
function ownerOf(c: AppContext): KeyOwner {
  const { admitted, member } = c.var;
  return { orgId: admitted.caller.orgId, memberId: member.role === "member" ? member.id : null };
}

function fieldsOf(c: AppContext): LogFields {
  return { request_id: c.var.requestId, org_id: c.var.admitted.caller.orgId };
}
