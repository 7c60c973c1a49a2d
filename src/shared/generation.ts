import * as z from "zod/mini";
import { REGIONS } from "./regions.ts";
import { creationTimeOfId } from "./id.ts";
import { tagsSchema } from "./tags.ts";
import type { Tags } from "./tags.ts";
import { holdPurposeSchema, parseHoldName } from "./placed-hold.ts";
import type { StoredHoldPurpose } from "./placed-hold.ts";
import { priceSchema, consistentUsageSchema, usageSchema } from "./usage.ts";
import type { Price, Usage } from "./usage.ts";

/**
 * The bill (micro-credits, paid by the operator) of a call that timed out or failed with reported
 * usage. Null if the provider's price is unknown.
 */
type LostCall = { readonly model: string; readonly cost: number | null };

/**
 * Values of `why` for calls without a failure: the client disconnected, or the gateway ended the
 * call.
 */
const UNFINISHED_REASONS = ["left", "stopped"] as const;
export type UnfinishedProviderCallReason = (typeof UNFINISHED_REASONS)[number];

export function isUnfinishedProviderCallReason(why: string): why is UnfinishedProviderCallReason {
  return UNFINISHED_REASONS.some((reason) => reason === why);
}

/** A provider's failed or unfinished call. Times are ms since the request arrived. */
export type FailedAttempt = {
  readonly route: string;
  readonly why: string;
  readonly status?: number;
  readonly startedMs?: number;
  readonly endedMs?: number;
  readonly lost?: LostCall;
};

/** The stored record of a paid request, without prompt and output. */
export type Generation = {
  readonly model: string;
  readonly provider: string;
  readonly region: string;
  readonly keyId: string;
  readonly streamed: boolean;
  readonly usage: Usage;
  readonly price: Price;
  /**
   * The price's start time (Unix ms; null for configured prices) and its price list. Absent in
   * older records.
   */
  readonly origin?: { readonly from: number | null; readonly list: string | null };
  /** The provider's price, which customers never see. */
  readonly bought?: Price;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly estimated: boolean;
  readonly finishReason: string | null;
  readonly failed?: readonly FailedAttempt[];
  readonly skipped?: readonly SkippedRoute[];
  readonly tags?: Tags;
  /** The tag keys that the session sets. Absent without a session. */
  readonly sessionTags?: readonly string[];
  readonly trace?: string;
  /** The kind of call. Absent for chat. */
  readonly kind?: string;
  /** Set if a fallback route served the request. */
  readonly warm?: WarmRoute;
  readonly purpose?: StoredHoldPurpose;
};

export const ROUTE_SKIP_REASONS = [
  "preference",
  "max_price",
  "parameter",
  "policy",
  "limit",
  "cooldown",
] as const;
/** Maximum skipped routes in a receipt. */
export const SKIPPED_ROUTES_MAX = 16;
export type SkippedRoute = {
  readonly route: string;
  readonly why: (typeof ROUTE_SKIP_REASONS)[number];
};

export const skippedRouteSchema = z.object({ route: z.string(), why: z.enum(ROUTE_SKIP_REASONS) });
export const failedProviderAttemptSchema: z.ZodMiniType<FailedAttempt> = z.object({
  route: z.string(),
  why: z.string(),
  status: z.exactOptional(z.int()),
  startedMs: z.exactOptional(z.number()),
  endedMs: z.exactOptional(z.number()),
  lost: z.exactOptional(
    z.object({ model: z.string(), cost: z.nullable(z.int().check(z.minimum(0))) }),
  ),
});
/**
 * The route that took over a conversation and has its prompt cached. `affinity` is the
 * conversation's hash, and `seconds` the cache's lifetime.
 */
export type WarmRoute = {
  readonly affinity: string;
  readonly route: string;
  readonly seconds: number;
};

const warmRouteSchema: z.ZodMiniType<WarmRoute> = z.object({
  affinity: z.string().check(z.maxLength(64)),
  route: z.string().check(z.maxLength(512)),
  seconds: z.int().check(z.minimum(0), z.maximum(86_400)),
});

const generationFields = {
  model: z.string(),
  provider: z.string(),
  keyId: z.string(),
  streamed: z.boolean(),
  usage: usageSchema,
  price: priceSchema,
  origin: z.exactOptional(z.object({ from: z.nullable(z.int()), list: z.nullable(z.string()) })),
  bought: z.exactOptional(priceSchema),
  firstByteMs: z.nullable(z.number()),
  durationMs: z.number(),
  estimated: z.boolean(),
  finishReason: z.nullable(z.string()),
  failed: z.exactOptional(z.array(failedProviderAttemptSchema)),
  skipped: z.exactOptional(z.array(skippedRouteSchema)),
  tags: z.exactOptional(z.record(z.string(), z.string())),
  sessionTags: z.exactOptional(z.array(z.string())),
  trace: z.exactOptional(z.string()),
  kind: z.exactOptional(z.string()),
  warm: z.exactOptional(warmRouteSchema),
  purpose: z.exactOptional(holdPurposeSchema),
};
/** The schema of another region's generation. It restricts only the fields that affect money. */
export const peerGenerationSchema: z.ZodMiniType<Omit<Generation, "region">> =
  z.object(generationFields);

const shortText = z.string().check(z.minLength(1), z.maxLength(256));
export const generationSchema: z.ZodMiniType<Generation> = z.object({
  ...generationFields,
  model: shortText,
  provider: shortText,
  region: z.enum(REGIONS),
  keyId: z
    .string()
    .check(z.refine((id) => creationTimeOfId(id, "key_") !== null, "must be a key's id")),
  usage: consistentUsageSchema,
  // Durations can be negative, because the clock may step back. The gateway must still charge the
  // request.
  firstByteMs: z.nullable(z.int()),
  durationMs: z.int(),
  finishReason: z.nullable(shortText),
  tags: z.exactOptional(tagsSchema),
  trace: z.exactOptional(z.string().check(z.maxLength(49))),
  kind: z.exactOptional(shortText),
});

const REQUEST_ID = "req_";
const RESPONSE_ID_PREFIX = /^[a-z]{3,10}[-_]/;

/**
 * Extracts the request ID from the ID of a request, response or hold. Returns null for other text.
 */
export function parseRequestId(idOrHoldName: string): string | null {
  const holdName = parseHoldName(idOrHoldName);
  if (holdName !== null) return holdName.id;
  const id = idOrHoldName.replace(RESPONSE_ID_PREFIX, REQUEST_ID);
  return creationTimeOfId(id, REQUEST_ID) === null ? null : id;
}
