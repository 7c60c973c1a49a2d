import * as z from "zod";
import { ROUTE_SKIP_REASONS } from "../../src/shared/generation.ts";
import { TOKEN_COUNT_FIELDS } from "../../src/shared/usage-sums.ts";
import { fillUnitRecord, UNITS } from "../../src/shared/usage.ts";
import { micros, count, dollars, time, day, record } from "./fields.ts";

/** Descriptions of token counts. */
const SAID: Readonly<Record<string, typeof count>> = {
  cached_tokens: count.describe("Prompt tokens that were read from a cache."),
};
const tokens = Object.values(TOKEN_COUNT_FIELDS).map(
  ({ shown }) => [shown, SAID[shown] ?? count] as const,
);
type TokenField = (typeof tokens)[number][0];
const amounts = {
  requests: count,
  ...(Object.fromEntries(tokens) as Record<TokenField, typeof count>),
  cost_micro: micros,
};
export const usage = record("Usage", {
  from: z.string().describe("A UTC day, or an hour."),
  to: z.string(),
  group_by: z.string(),
  source: z
    .literal("rows")
    .optional()
    .describe("Present if the response was computed from request records."),
  complete_from: time.optional().describe("Time from which the request records are complete."),
  data: z.array(
    z.strictObject({
      day: day.optional(),
      hour: z.string().optional().describe("UTC, as `2026-11-23T14`."),
      group: z.string().nullable(),
      group2: z.string().nullable().optional(),
      ...amounts,
      first_byte_ms: z
        .strictObject({ p50: z.number().nullable(), p99: z.number().nullable(), n: count })
        .optional(),
      tokens_per_s: z.number().nullable().optional(),
    }),
  ),
  total: z.strictObject(amounts),
  next_after: z.string().optional().describe("The value for `after`, if more groups follow."),
});
export const exports = record("Exports", {
  complete_through: day
    .nullable()
    .describe("The newest UTC day that no later charge can change. Null if there is none yet."),
});
/** A CSV file. */
export const focus = z.string();
const price = z
  .strictObject({
    input: count,
    cached: count,
    cache_write: count,
    output: count,
    ...fillUnitRecord(UNITS, count.optional()),
  })
  .describe("Micro-credits per million tokens when the request was admitted.");
const lines = z
  .array(
    z.strictObject({
      what: z.enum(["input", "cached", "cache_write", "cache_write_hour", "output", ...UNITS]),
      tokens: count,
      price: count,
      micro: z.number(),
    }),
  )
  .describe("Tokens or units times price. The cost of the request is the sum, rounded up.");
const failedAttempts = z
  .array(
    z.object({
      route: z.string().describe("As in `x-route`."),
      why: z.string().describe("A status or a word, such as `timeout` or `overloaded`."),
    }),
  )
  .describe("Failed attempts that aren't charged, in their order.");
export const skippedRoutes = z
  .array(z.strictObject({ route: z.string(), why: z.enum(ROUTE_SKIP_REASONS) }))
  .describe("Routes that were not called, at most 16.");
const since = z.number().nullable().describe("Milliseconds since the request arrived.");
const attempts = z
  .array(
    z.strictObject({
      route: z
        .string()
        .describe(
          "The same as `x-route`. For the attempt that served the request, only the provider.",
        ),
      outcome: z
        .enum(["served", "failed", "left", "stopped"])
        .describe("`left`: the client disconnected. `stopped`: the gateway ended the call."),
      why: z
        .string()
        .nullable()
        .describe("A word such as `timeout`; null unless the attempt failed."),
      status: z.int().nullable().describe("HTTP status of the provider's response, if any."),
      started_ms: since,
      ended_ms: since,
    }),
  )
  .describe("All calls to providers, in order.");
const clientError = z
  .strictObject({
    code: z.string().describe("A heading of the errors page, or `client_left`."),
    message: z.string().describe("The gateway's own message, without the provider's text."),
    status: z.int().describe("200 if a stream had started, 499 if the client had disconnected."),
    param: z.string().nullable(),
  })
  .nullable()
  .describe("The error that the client received; null if the request succeeded.");
const purposeFields = {
  pays: z.enum(["balance", "quota"]),
  merchant: z.string().nullable().describe("The merchant that captures the hold."),
  description: z.string(),
};
const purpose = z.strictObject(purposeFields);
/** A request in any state. */
export const generation = record("Generation", {
  id: z.string(),
  request_id: z.string(),
  created_at: time,
  status: z.enum(["held", "settled", "voided", "expired", "refused"]),
  key_id: z.string().nullable(),
  held_micro: micros.nullable().describe("Amount held for the request."),
  cost_micro: micros.describe("Amount charged."),
  absorbed_micro: micros.describe("Part of the cost that the operator pays."),
  lines,
  price_from: time
    .nullable()
    .describe("The start of its price; null if the price has no start or the start is unknown."),
  price_list: z.string().nullable().describe("The price list of its price; null for the catalog."),
  purpose: purpose.nullable().describe("The purpose of a captured hold; null for a model call."),
  quota_micro: micros.describe("The amount that only budgets and quotas count."),
  failed_attempts: failedAttempts,
  skipped: skippedRoutes,
  model: z.string().nullable(),
  provider: z.string().nullable(),
  region: z.string().nullable(),
  streamed: z.boolean().nullable(),
  prompt_tokens: count.nullable(),
  cached_tokens: count.nullable(),
  cache_write_tokens: count.nullable(),
  completion_tokens: count.nullable(),
  reasoning_tokens: count.nullable(),
  price: price.nullable(),
  duration_ms: z.int().nullable(),
  estimated: z.boolean().nullable(),
  cache_write_hour_tokens: count.optional(),
  first_byte_ms: z.int().nullable(),
  finish_reason: z.string().nullable(),
  tags: z
    .record(z.string(), z.string())
    .describe("The request's tags. Only charged ones have any."),
  external_id: z.string().nullable(),
  asked_model: z.string().nullable().describe("Model name of a failed request; null for others."),
  door: z.string().nullable().describe("The path of a failed request; null for others."),
  client_left_ms: z
    .number()
    .nullable()
    .describe("Time of the client's disconnect, since the request arrived."),
  error: clientError,
  attempts,
});
export const errors = record("Errors", {
  from: day,
  to: day,
  group_by: z.enum(["code", "key", "hour", "hour,code", "model", "provider", "user"]),
  data: z.array(
    z.strictObject({
      hour: time.optional(),
      group: z
        .string()
        .nullable()
        .optional()
        .describe(
          "The group by `group_by`; null for requests without a model, provider or end user.",
        ),
      status: z.int().optional(),
      count,
      last_at: time,
      last_id: z.string().describe("The newest request of the group."),
    }),
  ),
  total: count,
  complete_from: time
    .optional()
    .describe("By model, provider or end user: time from which the counts are complete."),
});
const next_after = z.string().optional().describe("The value for `after`, if more can follow.");
export const generations = record("Generations", {
  generations: z.array(generation),
  next_after,
});
const hold = record("Hold", {
  id: z.string(),
  since: time,
  granted_micro: micros,
  key_id: z.string(),
  external_id: z.string().nullable(),
  hold_id: z.string().nullable().describe("The ID of a hold that a client placed."),
  purpose: purpose.nullable(),
  expires_at: time.nullable(),
});
export const placedHold = record("PlacedHold", {
  id: z.string(),
  request_id: z.string(),
  status: z.enum(["held", "captured", "released", "expired", "refused"]),
  ...purposeFields,
  amount_dollars: dollars.describe("The held amount."),
  captured_dollars: dollars.nullable(),
  end_user: z.string().nullable(),
  tags: z.record(z.string(), z.string()),
  key_id: z.string(),
  created_at: time,
  expires_at: time,
});
export const holds = record("Holds", { holds: z.array(hold), next_after });
