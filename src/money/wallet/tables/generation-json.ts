import { definedFields } from "../../../shared/defined-fields.ts";
import type { FailedAttempt, Generation } from "../../../shared/generation.ts";
import { COUNTED_UNITS, UNITS } from "../../../shared/usage.ts";
import { MICROS_PER_DOLLAR } from "../../../shared/money.ts";
import type { StoredHoldPurpose } from "../../../shared/placed-hold.ts";
import type { Tags } from "../../../shared/tags.ts";
import type { UnitCounts, Price } from "../../../shared/usage.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";

type SharedChargeFields = Pick<
  Generation,
  "model" | "provider" | "region" | "price" | "origin" | "bought"
>;
type OptionalFields = Pick<Generation, "trace" | "skipped" | "kind" | "sessionTags">;
/** The fields of a generation that the column `detail` stores as a list. */
type DetailList = readonly [
  streamed: 0 | 1,
  cacheRead: number,
  cacheWrite: number,
  reasoning: number,
  firstByteMs: number | null,
  durationMs: number,
  estimated: 0 | 1,
  finishReason: string | null,
  cacheWriteHour?: number,
  failed?: Generation["failed"] | null,
  /**
   * Counts of units other than tokens, and newer fields, because earlier releases ignore unknown
   * fields here.
   */
  counted?: (UnitCounts & OptionalFields) | null,
  tags?: Tags,
  purpose?: StoredHoldPurpose | undefined,
];

export const REQUEST_TAGS_SQL = "detail -> '$[11]'";

export const FAILED_PROVIDER_CALLS_SQL = "(detail -> '$[9]')";
/** SQL expression for a captured hold's purpose. */
export const CAPTURED_HOLD_PURPOSE_SQL = "(detail -> '$[12]')";

/** SQL expression for a placed hold's purpose, or null for a model call. */
export const HOLD_PURPOSE_SQL = `CASE WHEN state = 'settled' THEN detail ->> '$[12]' WHEN state = 'refused' THEN NULL
  WHEN json_type(detail) = 'object' THEN detail END`;

/** SQL expression for the charge that counts only against quotas, not in the ledger. */
export const QUOTA_CHARGE_SQL = "coalesce(detail ->> '$[12].charged', 0)";

/**
 * Returns the model, route and price of a generation as JSON. The table `names` stores this text
 * once for many requests.
 */
export function sharedChargeFieldsJson({
  model,
  provider,
  region,
  price,
  origin,
  bought,
}: Generation): string {
  const sold: SharedChargeFields = {
    model,
    provider,
    region,
    price: orderedPrice(price),
    ...(origin !== undefined && { origin: { from: origin.from, list: origin.list } }),
    ...(bought !== undefined && { bought: orderedPrice(bought) }),
  };
  return JSON.stringify(sold);
}

export function parseSharedChargeFields({
  sold,
}: {
  readonly sold: string | null;
}): SharedChargeFields {
  return parseStoredJson<SharedChargeFields>(sold ?? "");
}

function orderedPrice({ input, cached, cacheWrite, output, units }: Price): Price {
  const tokens = { input, cached, cacheWrite, output };
  if (units === undefined) return tokens;
  const known = UNITS.filter((unit) => units[unit] !== undefined);
  return { ...tokens, units: Object.fromEntries(known.map((unit) => [unit, units[unit]])) };
}

export function parseFailedAttempts(detail: string | null): readonly FailedAttempt[] {
  return detail === null ? [] : (parseStoredJson<DetailList>(detail)[9] ?? []);
}

/** Returns the JSON that a settled request stores. */
export function generationDetailJson(generation: Generation): string {
  const { usage, failed, tags, purpose } = generation;
  const hour = usage.cacheWriteHour ?? 0;
  const usual = [
    generation.streamed ? 1 : 0,
    usage.cacheRead,
    usage.cacheWrite,
    usage.reasoning,
    generation.firstByteMs,
    generation.durationMs,
    generation.estimated ? 1 : 0,
    generation.finishReason,
  ] as const;
  const counted = extraFieldsOf(generation);
  const all = [...usual, hour, failed ?? null, counted, tags ?? {}, purpose] satisfies DetailList;
  const given = [hour === 0 ? undefined : hour, failed, counted ?? undefined, tags, purpose];
  const last = given.findLastIndex((one) => one !== undefined);
  return JSON.stringify(all.slice(0, usual.length + last + 1));
}

function extraFieldsOf(generation: Generation): NonNullable<DetailList[10]> | null {
  const { usage, trace, skipped, kind, sessionTags } = generation;
  const counted = COUNTED_UNITS.filter((unit) => (usage[unit] ?? 0) > 0);
  const extra = {
    ...Object.fromEntries(counted.map((unit) => [unit, usage[unit]])),
    ...definedFields({ trace, skipped, kind, sessionTags }),
  };
  return Object.keys(extra).length === 0 ? null : extra;
}

function splitExtra(extra: DetailList[10]) {
  const { trace, skipped, kind, sessionTags, ...counted } = { ...extra };
  return { counted, besides: definedFields({ trace, skipped, kind, sessionTags }) };
}

/** Returns a price whose request fee is the complete charge, so that a receipt's lines add up. */
function priceOfCharge(price: Price, charged: number): Price {
  return { ...price, units: { request: charged * MICROS_PER_DOLLAR } };
}

export function parseGeneration(row: {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly charged: number;
  readonly detail: string | null;
  readonly sold: string | null;
}): Omit<Generation, "keyId"> {
  const rest = parseStoredJson<DetailList>(row.detail ?? "");
  const [streamed, cacheRead, cacheWrite, reasoning, firstByteMs, durationMs, ...more] = rest;
  const [estimated, finishReason, cacheWriteHour = 0, failed = null, extra, tags, purpose] = more;
  const { counted, besides } = splitExtra(extra);
  const hasTags = Object.keys(tags ?? {}).length > 0;
  const input = row.prompt_tokens - cacheRead - cacheWrite;
  const output = row.completion_tokens;
  const usage = { input, cacheRead, cacheWrite, output, reasoning, ...counted };
  const sold = parseSharedChargeFields(row);
  return {
    ...sold,
    ...(purpose !== undefined && { price: priceOfCharge(sold.price, row.charged) }),
    usage: cacheWriteHour > 0 ? { ...usage, cacheWriteHour } : usage,
    streamed: streamed === 1,
    firstByteMs,
    durationMs,
    estimated: estimated === 1,
    finishReason,
    ...(failed !== null && { failed }),
    ...(hasTags && { tags }),
    ...besides,
    ...(purpose !== undefined && { purpose }),
  };
}
