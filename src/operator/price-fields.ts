import * as z from "zod/mini";
import type { PriceRecord } from "../models/catalog/prices.store.ts";
import { timeParameter } from "../shared/http/parse-body.ts";
import { timestamp } from "../shared/clock.ts";
import { micros, microsOfDollars } from "../shared/money.ts";
import { KINDS } from "../shared/kinds.ts";
import type { Kind } from "../shared/kinds.ts";
import { priceInDollars } from "../shared/price-in-dollars.ts";
import { recordOfUnits, UNITS } from "../shared/usage.ts";
import type { Unit } from "../shared/usage.ts";

export const priceListNameSchema = z
  .string()
  .check(z.regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lowercase letters, digits and hyphens"));

const ROWS_MAX = 500;
const DOLLARS_MAX = 1000;
const PERCENT_MAX = 1000;

const dollarsSchema = z.pipe(
  z.number().check(
    z.refine((value) => value > 0, "must be above 0"),
    z.maximum(DOLLARS_MAX),
    z.refine((value) => microsOfDollars(value) !== null, "must have at most 6 decimals"),
  ),
  z.transform((value) => microsOfDollars(value) ?? micros(0)),
);
export const priceFieldsSchema = z.object({
  input: z.optional(dollarsSchema),
  cached: z.optional(dollarsSchema),
  cache_write: z.optional(dollarsSchema),
  output: z.optional(dollarsSchema),
  ...recordOfUnits(UNITS, z.optional(dollarsSchema)),
});
type PriceFields = z.infer<typeof priceFieldsSchema>;

const rowSchema = z.object({
  list: z._default(priceListNameSchema, "default"),
  item: z.string().check(z.minLength(1), z.maxLength(256)),
  from: timeParameter,
  price: z.optional(priceFieldsSchema),
  percent: z.optional(z.int().check(z.minimum(0), z.maximum(PERCENT_MAX))),
});
export type PostedRow = z.infer<typeof rowSchema>;

export const newPricesSchema = z.object({
  rows: z.array(rowSchema).check(z.minLength(1), z.maxLength(ROWS_MAX)),
});

export function hasInputPrice(fields: PriceFields, kind: Kind): boolean {
  if (fields.input !== undefined) return true;
  return !KINDS[kind].hasOutput && UNITS.some((unit) => fields[unit] !== undefined);
}

export function findUncountedUnit(fields: PriceFields, kind: Kind): Unit | "input" | null {
  const counted: readonly Unit[] = KINDS[kind].units;
  if (!KINDS[kind].hasInput && fields.input !== undefined) return "input";
  return UNITS.find((unit) => fields[unit] !== undefined && !counted.includes(unit)) ?? null;
}

export function priceRowView({ id, list, item, from, says, postedBy, createdAt }: PriceRecord) {
  return {
    id,
    list,
    item,
    from: timestamp(from),
    price: says.price === undefined ? null : priceInDollars(says.price),
    percent: says.percent ?? null,
    posted_by: postedBy,
    created_at: timestamp(createdAt),
  };
}
