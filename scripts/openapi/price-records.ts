import * as z from "zod";
import { record, time } from "./fields.ts";

const dollars = z.number().min(0);
/** Dollars for a million tokens, or for one of what is counted beside them; of characters for a million. */
export const listPrice = record("ListPrice", {
  input: dollars,
  cached: dollars,
  cache_write: dollars,
  output: dollars,
  image: dollars.optional(),
  character: dollars.optional(),
  second: dollars.optional(),
  request: dollars.optional(),
});
export const priceRow = record("PriceRow", {
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
  next_after: z.string().optional(),
});
export const postedPrices = record("PostedPrices", { prices: z.array(priceRow) });

const sums = {
  day: z.string(),
  group: z.string(),
  requests: z.int(),
  charged_micro: z.int(),
  bought_micro: z.int().describe("What providers bill by their lists."),
  margin_micro: z.int(),
  unknown_requests: z.int().describe("Of them those whose provider's price is not known."),
  billed_micro: z.int().nullable().describe("By the bill that was imported."),
  difference_micro: z.int().nullable(),
};
export const margin = record("Margin", {
  from: z.string(),
  to: z.string(),
  by: z.enum(["provider", "model", "organization"]),
  data: z.array(z.strictObject(sums)),
  complete_from: time.describe("What was admitted before it is not in the sums."),
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
