import * as z from "zod/mini";
import type { HoldAction, PlacedHold } from "../../shared/contracts/holds.ts";
import { peerFailureSchema, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { micros } from "../../shared/money.ts";
import { HOLD_PAYMENTS } from "../../shared/placed-hold.ts";

/** A merchant's action on a hold, sent between regions. */
export type MerchantRequest = {
  readonly merchant: string;
  readonly orgId: string;
  readonly id: string;
  readonly action: Exclude<HoldAction, { kind: "extend" }> | null;
};

const textSchema = z.string().check(z.minLength(1), z.maxLength(256));
const nonNegativeInt = z.int().check(z.minimum(0));
const microsSchema = z.pipe(nonNegativeInt, z.transform(micros));
const requestSchema = z.object({
  merchant: textSchema,
  org_id: textSchema,
  id: textSchema,
  action: z.nullable(
    z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("capture"), amountMicro: z.nullable(microsSchema) }),
      z.object({ kind: z.literal("release") }),
    ]),
  ),
});

export function merchantRequestToJson({ orgId, ...rest }: MerchantRequest): object {
  return { ...rest, org_id: orgId };
}

export function parseMerchantRequest(body: unknown): MerchantRequest | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { org_id: orgId, ...rest } = parsed.data;
  return { ...rest, orgId };
}

const holdSchema: z.ZodMiniType<PlacedHold> = z.object({
  id: textSchema,
  state: z.enum(["held", "settled", "voided", "expired", "refused"]),
  pays: z.enum(HOLD_PAYMENTS),
  merchant: z.nullable(z.string()),
  description: z.string(),
  tags: z.exactOptional(z.record(z.string(), z.string())),
  keyId: z.string(),
  sessionId: z.nullable(z.string()),
  externalId: z.nullable(z.string()),
  grantedMicro: microsSchema,
  capturedMicro: z.nullable(microsSchema),
  createdAt: nonNegativeInt,
  expiresAt: nonNegativeInt,
});
const resultSchema = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), hold: holdSchema }),
  z.object({ ok: z.literal(false), failure: peerFailureSchema }),
]);

export function merchantResultToJson(result: Result<PlacedHold>): object {
  return result.ok ? { ok: true, hold: result.value } : { ok: false, failure: result.failure };
}

export function parseMerchantResult(body: unknown): Result<PlacedHold> | null {
  const parsed = resultSchema.safeParse(body);
  if (!parsed.success) return null;
  return parsed.data.ok ? success(parsed.data.hold) : refuse(parsed.data.failure);
}
