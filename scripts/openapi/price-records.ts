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
