import * as z from "zod/mini";
import type { Region } from "../lib/caller.ts";
import type { Generation } from "../lib/generation.ts";
import { mintedAt } from "../lib/id.ts";
import { micros } from "../lib/money.ts";
import { parseBody } from "../http/parse-body.ts";
import type { Result } from "../lib/failure.ts";
import type { Delivery, OutcomeItem, RevocationItem } from "./outbox-message.ts";
import { DELIVER_MAX } from "./outbox-schedule.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const count = z.int().check(z.minimum(0));
// No outcome is turned away for what does not touch money: a clock that stepped back, a long reason.
const ms = z.number();
const text = z.string();
const usage = z.object({
  input: count,
  cache_read: count,
  cache_write: count,
  cache_write_hour: z.optional(count),
  output: count,
  reasoning: count,
});
const price = z.object({ input: count, cached: count, cache_write: count, output: count });
const generation = z.object({
  model: text,
  provider: text,
  key_id: text,
  external_id: z.nullable(text),
  streamed: z.boolean(),
  usage,
  price,
  first_byte_ms: z.nullable(ms),
  duration_ms: ms,
  estimated: z.boolean(),
  finish_reason: z.nullable(text),
});
const hold = {
  hold_id: z.string().check(z.refine((id) => mintedAt(id, "req_") !== null)),
  org_id: z.string().check(z.regex(UUID)),
};
const outcome = z.discriminatedUnion("kind", [
  z.object({ ...hold, kind: z.literal("settle"), cost_micro: count, generation }),
  z.object({ ...hold, kind: z.literal("void") }),
]);
type WireGeneration = z.infer<typeof generation>;

/** One of the `items` of the operation `outcomes`; a void costs nothing and has no generation. */
export function outcomeToWire(item: OutcomeItem): object {
  return {
    hold_id: item.holdId,
    org_id: item.orgId,
    kind: item.kind,
    cost_micro: item.cost,
    generation: item.generation === null ? null : generationToWire(item.generation),
  };
}

/** Null for what is no outcome. The signed sender, not the item, says where the request ran. */
export function outcomeFromWire(value: unknown, sender: Region): OutcomeItem | null {
  const parsed = outcome.safeParse(value);
  if (!parsed.success) return null;
  const { data } = parsed;
  const { hold_id: holdId, org_id: orgId } = data;
  if (data.kind === "void") {
    return { holdId, orgId, kind: "void", cost: micros(0), generation: null };
  }
  const cost = micros(data.cost_micro);
  const ran = generationFromWire(data.generation, sender);
  return { holdId, orgId, kind: "settle", cost, generation: ran };
}

const hash = z.string().check(z.regex(/^[0-9a-f]{64}$/));
const revocation = z.object({ key_hash: hash, revoked_at: count, root: z.optional(hash) });

/** One of the `items` of the operation `revocations`; `revoked_at` in Unix ms. */
export function revocationToWire({ keyHash, revokedAt, root }: RevocationItem): object {
  return { key_hash: keyHash, revoked_at: revokedAt, ...(root !== undefined && { root }) };
}

/** Null for what is no revocation. */
export function revocationFromWire(value: unknown): RevocationItem | null {
  const parsed = revocation.safeParse(value);
  if (!parsed.success) return null;
  const { key_hash: keyHash, revoked_at: revokedAt, root } = parsed.data;
  return { keyHash, revokedAt, ...(root !== undefined && { root }) };
}

const message = z.object({ items: z.array(z.unknown()).check(z.maxLength(DELIVER_MAX)) });

/** The items of either operation, each still to be read: a malformed one does not stop the others. */
export function itemsIn(body: unknown): Result<readonly unknown[]> {
  const parsed = parseBody(message, body);
  return parsed.ok ? { ok: true, value: parsed.value.items } : parsed;
}

export type IdName = "hold_id" | "key_hash";

/** The answer to one item, under the id that it came with; null when it had none. */
export function resultToWire(idName: IdName, item: unknown, delivery: Delivery): object {
  const id = z.object({ [idName]: z.string() }).safeParse(item).data?.[idName] ?? null;
  if (delivery.kind === "unreachable") return { [idName]: id, result: "failed" };
  if (delivery.kind === "untried") return { [idName]: id, result: "failed", reason: NOT_TRIED };
  const { kind, ...reason } = delivery;
  return { [idName]: id, result: kind, ...reason };
}

const itemResult = z.object({
  result: z.enum(["delivered", "refused", "failed"]),
  reason: z.optional(z.string()),
});

/** An answer as `resultToWire` writes it; null for anything else. */
export function resultFromWire(
  idName: IdName,
  value: unknown,
): { readonly id: string; readonly delivery: Delivery } | null {
  const id = z.object({ [idName]: z.string() }).safeParse(value).data?.[idName];
  if (id === undefined) return null;
  const parsed = itemResult.safeParse(value);
  if (!parsed.success) return { id, delivery: NO_ANSWER };
  const { result, reason = "unsaid" } = parsed.data;
  if (result === "delivered") return { id, delivery: { kind: "delivered" } };
  if (result === "failed" && reason === NOT_TRIED) return { id, delivery: { kind: "untried" } };
  return { id, delivery: { kind: result, reason: reason.slice(0, REASON_MAX) } };
}

/** What becomes of an item without a proper answer of its own: it is repeated. */
export const NO_ANSWER: Delivery = { kind: "failed", reason: "no proper answer" };
/** What becomes of an item that nobody can read: never repeated. */
export const MALFORMED: Delivery = { kind: "refused", reason: "malformed" };
const REASON_MAX = 200;
/** On the wire `untried` is a failure with this reason. */
const NOT_TRIED = "not tried";

function generationToWire(made: Generation): WireGeneration & { readonly region: string } {
  return {
    model: made.model,
    provider: made.provider,
    region: made.region,
    key_id: made.keyId,
    external_id: made.externalId,
    streamed: made.streamed,
    usage: {
      input: made.usage.input,
      cache_read: made.usage.cacheRead,
      cache_write: made.usage.cacheWrite,
      ...(made.usage.cacheWriteHour !== undefined && {
        cache_write_hour: made.usage.cacheWriteHour,
      }),
      output: made.usage.output,
      reasoning: made.usage.reasoning,
    },
    price: {
      input: made.price.input,
      cached: made.price.cached,
      cache_write: made.price.cacheWrite,
      output: made.price.output,
    },
    first_byte_ms: made.firstByteMs,
    duration_ms: made.durationMs,
    estimated: made.estimated,
    finish_reason: made.finishReason,
  };
}

function generationFromWire(wire: WireGeneration, region: Region): Generation {
  return {
    model: wire.model,
    provider: wire.provider,
    region,
    keyId: wire.key_id,
    externalId: wire.external_id,
    streamed: wire.streamed,
    usage: {
      input: wire.usage.input,
      cacheRead: wire.usage.cache_read,
      cacheWrite: wire.usage.cache_write,
      ...(wire.usage.cache_write_hour !== undefined && {
        cacheWriteHour: Math.min(wire.usage.cache_write_hour, wire.usage.cache_write),
      }),
      output: wire.usage.output,
      reasoning: wire.usage.reasoning,
    },
    price: {
      input: wire.price.input,
      cached: wire.price.cached,
      cacheWrite: wire.price.cache_write,
      output: wire.price.output,
    },
    firstByteMs: wire.first_byte_ms,
    durationMs: wire.duration_ms,
    estimated: wire.estimated,
    finishReason: wire.finish_reason,
  };
}
