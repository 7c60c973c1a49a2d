import * as z from "zod/mini";
import { parseBody } from "../shared/http/parse-body.ts";
import type { Result } from "../shared/failure.ts";
import { peerGenerationSchema } from "../shared/generation.ts";
import type { Generation } from "../shared/generation.ts";
import { creationTimeOfId } from "../shared/id.ts";
import { keyHashSchema } from "../shared/key.ts";
import { micros } from "../shared/money.ts";
import { UNITS } from "../shared/usage.ts";
import type { RevocationItem, OutcomeItem } from "../shared/contracts/outbox.ts";
import { DELIVERY_BATCH_MAX } from "./outbox-schedule.ts";
import type { Region } from "../shared/regions.ts";
import { errorMessageOf } from "../shared/log.ts";
import type { Settlement } from "../shared/contracts/wallet.ts";
import type { StubGetters } from "../shared/contracts/objects.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const nonNegativeInt = z.int().check(z.minimum(0));
const holdFields = {
  hold_id: z.string().check(z.refine((id) => creationTimeOfId(id, "req_") !== null)),
  org_id: z.string().check(z.regex(UUID)),
};
const peerGeneration = fromSnakeCase(peerGenerationSchema);
const outcomeSchema = z.discriminatedUnion("kind", [
  z.object({
    ...holdFields,
    kind: z.literal("settle"),
    cost_micro: nonNegativeInt,
    is_capped: z.exactOptional(z.boolean()),
    generation: peerGeneration,
  }),
  z.object({
    ...holdFields,
    kind: z.literal("void"),
    generation: z.optional(z.unknown()),
  }),
]);

export function outcomeToJson(item: OutcomeItem): object {
  return {
    hold_id: item.holdId,
    org_id: item.orgId,
    kind: item.kind,
    cost_micro: item.cost,
    ...(item.kind === "settle" && { is_capped: item.isCapped }),
    generation: toSnakeCase(item.generation),
  };
}

export function outcomeFromJson(value: unknown, sender: Region): OutcomeItem | null {
  const data =
    outcomeSchema.safeParse(value).data ??
    outcomeSchema.safeParse(removeOptionalFields(value)).data;
  if (data === undefined) return null;
  const { hold_id: holdId, org_id: orgId } = data;
  if (data.kind === "void") {
    // The hold must end even if the data of `absorbed` can't be parsed.
    const absorbedGeneration = peerGeneration.safeParse(data.generation).data;
    const generation =
      absorbedGeneration === undefined ? null : { ...absorbedGeneration, region: sender };
    return { holdId, orgId, kind: "void", cost: micros(0), generation };
  }
  const cost = micros(data.cost_micro);
  const isCapped = data.is_capped === true;
  return {
    holdId,
    orgId,
    kind: "settle",
    cost,
    generation: { ...data.generation, region: sender },
    isCapped,
  };
}

/**
 * Fields that don't affect money. If another release's fields can't be parsed, the charge is
 * accepted without them.
 */
const OPTIONAL_FIELDS: ReadonlySet<string> = new Set([
  "failed",
  "kind",
  "purpose",
  "session_tags",
  "skipped",
  "trace",
  "warm",
]);
const itemWithGeneration = z.looseObject({ generation: z.record(z.string(), z.unknown()) });

function removeOptionalFields(value: unknown): unknown {
  const { data } = itemWithGeneration.safeParse(value);
  if (data === undefined) return value;
  const generation = Object.entries(data.generation).filter(([name]) => !OPTIONAL_FIELDS.has(name));
  return { ...data, generation: Object.fromEntries(generation) };
}

const revocationSchema = z.object({
  key_hash: keyHashSchema,
  revoked_at: nonNegativeInt,
  root: z.optional(keyHashSchema),
});

export function revocationToJson({ keyHash, revokedAt, root }: RevocationItem): object {
  return { key_hash: keyHash, revoked_at: revokedAt, ...(root !== undefined && { root }) };
}

export function revocationFromJson(value: unknown): RevocationItem | null {
  const parsed = revocationSchema.safeParse(value);
  if (!parsed.success) return null;
  const { key_hash: keyHash, revoked_at: revokedAt, root } = parsed.data;
  return { keyHash, revokedAt, ...(root !== undefined && { root }) };
}

const messageSchema = z.object({
  items: z.array(z.unknown()).check(z.maxLength(DELIVERY_BATCH_MAX)),
});

/** Returns the items without parsing them, so that one invalid item can't block the others. */
export function parsePeerItems(body: unknown): Result<readonly unknown[]> {
  const parsed = parseBody(messageSchema, body);
  return parsed.ok ? { ok: true, value: parsed.value.items } : parsed;
}

export type OutboxItemIdField = "hold_id" | "key_hash";

export function deliveryResultToJson(
  idName: OutboxItemIdField,
  item: unknown,
  delivery: DeliveryResult,
): object {
  const id = z.object({ [idName]: z.string() }).safeParse(item).data?.[idName] ?? null;
  if (delivery.kind === "unreachable") return { [idName]: id, result: "failed" };
  if (delivery.kind === "untried") return { [idName]: id, result: "failed", reason: NOT_TRIED };
  const { kind, ...reason } = delivery;
  return { [idName]: id, result: kind, ...reason };
}

const itemResultSchema = z.object({
  result: z.enum(["delivered", "refused", "failed"]),
  reason: z.optional(z.string()),
});

export function deliveryResultFromJson(
  idName: OutboxItemIdField,
  value: unknown,
): { readonly id: string; readonly delivery: DeliveryResult } | null {
  const id = z.object({ [idName]: z.string() }).safeParse(value).data?.[idName];
  if (id === undefined) return null;
  const parsed = itemResultSchema.safeParse(value);
  if (!parsed.success) return { id, delivery: INVALID_RESPONSE_RESULT };
  const { result, reason = "unsaid" } = parsed.data;
  if (result === "delivered") return { id, delivery: { kind: "delivered" } };
  if (result === "failed" && reason === NOT_TRIED) return { id, delivery: { kind: "untried" } };
  return { id, delivery: { kind: result, reason: reason.slice(0, REASON_MAX) } };
}

/** The result if a message's result is missing, repeated or invalid. The message is retried. */
export const INVALID_RESPONSE_RESULT: DeliveryResult = {
  kind: "failed",
  reason: "no proper answer",
};
/** The result for an item that can't be parsed. The item isn't retried. */
export const MALFORMED_ITEM_RESULT: DeliveryResult = { kind: "refused", reason: "malformed" };
const REASON_MAX = 200;
const NOT_TRIED = "not tried";

const RENAMED_LEVELS = 2;
const UNIT_NAMES: ReadonlySet<string> = new Set(UNITS);

function toSnakeCase(value: unknown): unknown {
  return renameFields(value, (name) =>
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
}

function fromSnakeCase<T>(schema: z.ZodMiniType<T>) {
  return z.pipe(
    z.pipe(
      z.unknown(),
      z.transform((value) => renameFields(value, toCamelCase)),
    ),
    schema,
  );
}

function toCamelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Renames fields by `rename`, except usage units and customers' tags. */
function renameFields(
  value: unknown,
  rename: (name: string) => string,
  depth = RENAMED_LEVELS,
): unknown {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (depth === 0 || !isObject) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      UNIT_NAMES.has(name) ? name : rename(name),
      name === "tags" ? inner : renameFields(inner, rename, depth - 1),
    ]),
  );
}

/** A queued message. If its `receiver` fails, only messages to this receiver wait. */
export type OutboxMessage = {
  readonly id: string;
  readonly kind: string;
  readonly receiver: string;
  readonly body: string;
};

/**
 * The result of a delivery. `refused` is final. `untried`: the receiver had failed before, or no
 * time was left. `unreachable`: no message got a response.
 */
export type DeliveryResult =
  | { readonly kind: "delivered" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "untried" }
  | { readonly kind: "unreachable" };

/** A function that delivers up to 100 messages. If it throws, all of them failed. */
export type DeliverMessages = (
  messages: readonly OutboxMessage[],
) => Promise<readonly DeliveryResult[]>;

export type WalletSettlementMethods = StubGetters<"wallet", "settle" | "void">["wallet"];

/** Returns an outcome's message. Retries of an outcome get the same ID and kind. */
export function createOutcomeMessage(item: OutcomeItem): OutboxMessage {
  const { holdId: id, kind, ...body } = item;
  return { id, kind, receiver: item.orgId, body: JSON.stringify(body) };
}

export function createRevocationMessage({
  keyHash,
  revokedAt,
  root,
}: RevocationItem): OutboxMessage {
  const body = JSON.stringify({ revokedAt, root });
  return { id: keyHash, kind: "revoke", receiver: root ?? keyHash, body };
}

const outcomeBody = z.object({
  orgId: z.string().check(z.minLength(1)),
  cost: z.int().check(z.minimum(0)),
  generation: z.custom<Generation | null>((value) => typeof value === "object"),
  isCapped: z._default(z.boolean(), false),
});

export function outcomeFromMessage({ id, kind, body }: OutboxMessage): OutcomeItem | null {
  const parsed = outcomeBody.safeParse(JSON.parse(body));
  if (!parsed.success) return null;
  const { orgId, cost, generation, isCapped } = parsed.data;
  if (kind === "void") return { holdId: id, orgId, kind, cost: micros(0), generation };
  if (kind !== "settle" || generation === null) return null;
  return { holdId: id, orgId, kind, cost: micros(cost), generation, isCapped };
}

const revocationBody = z.object({
  revokedAt: z.int().check(z.minimum(0)),
  root: z.optional(z.string()),
});

export function revocationFromMessage({ id, body }: OutboxMessage): RevocationItem | null {
  const parsed = revocationBody.safeParse(JSON.parse(body));
  if (!parsed.success) return null;
  const { revokedAt, root } = parsed.data;
  return { keyHash: id, revokedAt, ...(root !== undefined && { root }) };
}

export async function deliverOutcome(
  item: OutcomeItem,
  wallet: WalletSettlementMethods,
): Promise<DeliveryResult> {
  const { holdId } = item;
  try {
    const stub = wallet(item.orgId);
    const answer =
      item.kind === "settle"
        ? await stub.settle(settlementOf(item))
        : await stub.void(holdId, item.generation);
    return toDeliveryResult(answer);
  } catch (error) {
    return { kind: "failed", reason: errorMessageOf(error) };
  }
}

function settlementOf(item: Extract<OutcomeItem, { kind: "settle" }>): Settlement {
  const { holdId: id, cost, generation, isCapped } = item;
  return { id, cost, generation, ...(isCapped === true && { isCapped }) };
}

function toDeliveryResult(answer: Result<unknown>): DeliveryResult {
  if (answer.ok) return { kind: "delivered" };
  const { kind } = answer.failure;
  const isTemporary = ["storage_unavailable", "overloaded", "internal", "misconfigured"].includes(
    kind,
  );
  return { kind: isTemporary ? "failed" : "refused", reason: kind };
}
