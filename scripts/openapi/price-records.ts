import { CALL_KIND_NAMES } from "../../src/shared/kinds.ts";
import { fillUnitRecord, UNITS } from "../../src/shared/usage.ts";
import * as z from "zod";
import { count, record, time } from "./fields.ts";

const dollars = z.number().min(0);
/** Dollars per million tokens, characters or seconds, or per other unit. */
const listPrice = record("ListPrice", {
  input: dollars,
  cached: dollars,
  cache_write: dollars,
  output: dollars,
  ...fillUnitRecord(UNITS, dollars.optional()),
});
const priceRow = record("PriceRow", {
  id: z.string(),
  list: z.string(),
  item: z.string(),
  from: time,
  price: listPrice.nullable(),
  percent: z.int().nullable(),
  posted_by: z.string(),
  created_at: time,
});
export const priceRows = record("PriceRows", {
  prices: z.array(priceRow),
  lead_seconds: count.describe("Minimum seconds between posting a price and its start."),
  next_after: z.string().optional(),
});
const merchantFields = {
  name: z.string(),
  created_at: time,
  rotated_at: time.nullable().describe("Time of the secret's last change."),
  created_by: z.string(),
};
export const merchants = record("Merchants", {
  merchants: z.array(record("Merchant", merchantFields)),
});
export const freshMerchant = record("FreshMerchant", { ...merchantFields, secret: z.string() });
export const deletedMerchant = record("DeletedMerchant", {
  name: z.string(),
  deleted: z.literal(true),
});
function measure(what: string) {
  const value = z.number();
  return z
    .strictObject({
      p50: value,
      p75: value,
      p90: value,
      p99: value,
      requests: count.describe("Measured requests, at most 10 per organization."),
      organizations: count,
    })
    .nullable()
    .describe(`${what} Of the last 30 minutes in this region; null for fewer than 3 requests.`);
}
const catalogRoute = z.strictObject({
  provider: z.string(),
  upstream_id: z.string(),
  regions: z.array(z.string()).describe("The promises of its hosts."),
  price: listPrice.nullable().describe("Your price in this region; null if you don't sell it."),
  cost: listPrice.nullable().describe("The provider's list price; null if unknown."),
  seen_on: z.string().nullable().describe("The day on which the provider's list showed it."),
  age_days: z.int().nullable(),
  until: z.string().nullable().describe("The last day for which it is announced."),
  live: z.boolean(),
  why_not: z.enum(["not_configured", "residency", "ended"]).nullable(),
  latency_ms: measure("Time from the call to the first byte of a stream, in milliseconds."),
  tokens_per_second: measure("Output tokens per second."),
});
export const catalog = record("CatalogModels", {
  models: z.array(
    z.strictObject({
      id: z.string(),
      kind: z.enum(CALL_KIND_NAMES),
      aliases: z.array(z.string()),
      routes: z.array(catalogRoute),
    }),
  ),
});
export const postedPrices = record("PostedPrices", { prices: z.array(priceRow) });

const sums = {
  day: z.string(),
  group: z.string(),
  requests: z.int().describe("Includes calls that timed out before another provider responded."),
  charged_micro: z.int(),
  bought_micro: z.int().describe("Your cost at the providers' list prices."),
  margin_micro: z.int(),
  unknown_requests: z.int().describe("Requests whose provider's price is unknown."),
  billed_micro: z.int().nullable().describe("Amount of the imported bill."),
  difference_micro: z.int().nullable(),
};
export const margin = record("Margin", {
  from: z.string(),
  to: z.string(),
  by: z.enum(["provider", "model", "organization"]),
  data: z.array(z.strictObject(sums)),
  complete_from: time.describe("Time from which the sums are complete."),
  missing: z
    .array(z.string())
    .describe("Slugs of organizations whose wallets can't be read. The sums lack them."),
  next_after: z.string().optional(),
});
export const imported = record("ImportedCosts", { imported: z.int() });
export const rerated = record("Rerated", {
  id: z.string(),
  dry_run: z.boolean(),
  organizations: z.array(
    z.strictObject({
      organization: z.string(),
      requests: z.int(),
      credit_micro: z.int(),
      result: z.enum(["would_credit", "credited", "credited_otherwise"]),
    }),
  ),
  total_micro: z.int(),
  next_after: z.string().optional(),
});
export const providers = record("Providers", {
  complete_from: time.describe("Earlier calls may be missing."),
  data: z.array(
    z.strictObject({
      provider: z.string(),
      calls: count,
      failed: count,
      error_rate: z.number().min(0).max(1).describe("Failed calls divided by all calls."),
      reasons: z.record(z.string(), z.int()).describe("Failed calls by reason."),
      affected_organizations: count,
      most_affected: z
        .array(z.strictObject({ id: z.string(), slug: z.string(), failed: count }))
        .describe("At most 10 organizations with the most failed calls."),
    }),
  ),
  active_organizations: count.describe("Organizations in use during this time."),
  asked_organizations: count.describe("Organizations whose calls are counted, at most 200."),
  missing: z.array(z.string()).describe("Slugs of organizations whose wallets can't be read."),
});
