import type { Context } from "hono";
import type { Caller } from "../lib/caller.ts";
import { externalIdProblem } from "../lib/external-id.ts";
import { invalid, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { idempotencyOf, readIdempotencyKey } from "../lib/idempotency.ts";
import type { Idempotency } from "../lib/idempotency.ts";
import type { ShedReason, Slot } from "../lib/in-flight.ts";
import type { AppEnv } from "../http/context.ts";
import { BODY_BYTES_MAX, readJsonBody } from "../http/read-json.ts";
import type { JsonBody } from "../http/read-json.ts";
import type { Recalled } from "../contracts/kept.ts";
import type { Asked, Door } from "../core/door.ts";
import { homeOf } from "./home-or-away.route.ts";
import { recall } from "./keeping.ts";
import { objectsOf } from "../contracts/objects.ts";

/** Who asks, and what. */
export type Read = {
  readonly caller: Caller;
  readonly asked: Asked;
  /** Its Idempotency-Key and what it came with; null without one. */
  readonly idempotency: Idempotency | null;
  /** Of the body. */
  readonly bytes: number;
};
/** Not understood, or shed for want of room. */
export type NotRead = Refusal | { readonly ok: false; readonly shed: ShedReason };

type Reading = {
  readonly c: Context<AppEnv>;
  readonly door: Door;
  readonly slot: Slot | undefined;
};

/** Begins to read the body, as far as there is room for it. */
export function startReading({ c, slot }: Reading): Promise<Result<JsonBody>> {
  return readJsonBody(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: c.get("config").numbers.BODY_TIMEOUT_MS,
    after: c.get("timers").after,
    hasRoom: (bytes) => (slot?.grow(bytes) ?? null) === null,
  });
}

/** The request in its door's words; refused for its Idempotency-Key, then for its body. */
export async function read(
  { c, door, slot }: Reading,
  caller: Caller,
  reading: Promise<Result<JsonBody>>,
): Promise<NotRead | { readonly ok: true; readonly value: Read }> {
  const { orgId, shown } = caller;
  const keyId = shown?.session?.id ?? caller.keyId; // no session hears of another's
  const why = slot?.handTo(orgId) ?? null;
  if (why !== null) return { ok: false, shed: why };
  const key = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!key.ok) return key;
  const body = await reading;
  if (!body.ok) return body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
  const { bytes } = body.value;
  const asked = await understood({ c, door, slot }, body.value);
  if (!asked.ok) return asked;
  const named = { keyId, orgId, path: c.req.path, bytes };
  const idempotency = key.value === null ? null : await idempotencyOf(key.value, named);
  return { ok: true, value: { caller, asked: asked.value, idempotency, bytes: bytes.length } };
}

type Understood = { readonly ok: true; readonly value: Asked } | NotRead;

/** The body with what it names of kept answers, which is read once the key is admitted. */
async function understood(
  { c, door, slot }: Reading,
  { json, bytes: { length: bytes } }: JsonBody,
): Promise<Understood> {
  const named = door.names?.(json) ?? null;
  if (named === null) return parsed(c, door, { json });
  const admission = await c.get("presumed")?.admit();
  if (admission?.ok === false) return admission;
  const { admitted } = c.var;
  const at = {
    admitted,
    home: homeOf(c, admitted.caller),
    kept: objectsOf(c.env).kept,
    slot,
    bytes,
  };
  const recalled = await recall(at, named);
  return recalled.ok ? parsed(c, door, { json, recalled: recalled.value }) : recalled;
}

/** The body as the door reads it, and who spends. */
function parsed(
  c: Context<AppEnv>,
  door: Door,
  { json, recalled }: { readonly json: object; readonly recalled?: Recalled },
): Result<Asked> {
  const at = {
    header: (name: string) => c.req.header(name),
    query: (name: string) => c.req.query(name),
  };
  const asked = door.parse(json, at, recalled);
  if (!asked.ok) return asked;
  const user = endUserOf(asked.value, c.req.header(END_USER));
  return user.ok ? success({ ...asked.value, user: user.value }) : user;
}

const END_USER = "x-end-user";
const PLAIN = /^[\u0020-\u007e]*$/;

/** Who spends: what the body and the header `x-end-user` say, which must be one. */
function endUserOf({ user, paramOf }: Asked, header: string | undefined): Result<string | null> {
  if (header === undefined) return success(user);
  // Other letters would be read in whichever encoding the two ends believe in.
  const problem = PLAIN.test(header) ? externalIdProblem(header) : "must be plain ASCII";
  if (problem !== null) return invalid(`x-end-user ${problem}.`, END_USER);
  if (user === null || user === header) return success(header);
  const param = paramOf === undefined ? "user" : paramOf("user");
  return invalid("The body and the header x-end-user name two different end users.", param);
}
