import * as z from "zod/mini";
import type { PriceRecord } from "../models/catalog/prices.store.ts";
import type { View } from "../shared/http/endpoint.ts";
import { moment } from "../shared/http/parse-body.ts";
import { timestamp } from "../shared/clock.ts";
import { dollarsOf, micros, microsOfDollars } from "../shared/money.ts";
import { KINDS } from "../shared/kinds.ts";
import type { Kind } from "../shared/kinds.ts";
import { UNITS } from "../shared/usage.ts";
import type { Price, Unit } from "../shared/usage.ts";

/** The name of a price list. */
export const listName = z
  .string()
  .check(z.regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lowercase letters, digits and hyphens"));

const ROWS_MAX = 500;
const DOLLARS_MAX = 1000;
const PERCENT_MAX = 1000;

const dollars = z.pipe(
  z.number().check(
    z.refine((value) => value > 0, "must be above 0: nothing is sold for nothing"),
    z.maximum(DOLLARS_MAX),
    z.refine((value) => microsOfDollars(value) !== null, "must have at most 6 decimals"),
  ),
  z.transform((value) => microsOfDollars(value) ?? micros(0)),
);
/** Dollars per million tokens or characters, per image, second and request. */
export const priceFields = z.object({
  input: dollars,
  cached: z.optional(dollars),
  cache_write: z.optional(dollars),
  output: z.optional(dollars),
  image: z.optional(dollars),
  character: z.optional(dollars),
  second: z.optional(dollars),
  request: z.optional(dollars),
});
type PriceFields = z.infer<typeof priceFields>;

const row = z.object({
  list: z._default(listName, "default"),
  item: z.string().check(z.minLength(1), z.maxLength(256)),
  from: moment,
  price: z.optional(priceFields),
  percent: z.optional(z.int().check(z.minimum(0), z.maximum(PERCENT_MAX))),
});
export type PostedRow = z.infer<typeof row>;

/** The body of `POST /prices`. */
export const newPrices = z.object({
  rows: z.array(row).check(z.minLength(1), z.maxLength(ROWS_MAX)),
});

/** Units priced per piece, in micro-credits per million pieces. */
const PIECES: ReadonlySet<string> = new Set(["image", "second", "request"]);
const MILLION = 1_000_000;

/** Returns a price for charging. A missing cache price is the input's. */
export function priceOf(fields: PriceFields): Price {
  const { input, cached = input, cache_write: cacheWrite = input, output = 0 } = fields;
  const units = UNITS.flatMap((unit) => {
    const price = fields[unit];
    if (price === undefined) return [];
    return [[unit, PIECES.has(unit) ? price * MILLION : price] as const];
  });
  const tokens = { input, cached, cacheWrite, output };
  return units.length === 0 ? tokens : { ...tokens, units: Object.fromEntries(units) };
}

/** Returns a priced unit that a kind's usage doesn't count, or null. */
export function uncountedUnit(fields: PriceFields, kind: Kind): Unit | null {
  const counted: readonly Unit[] = KINDS[kind].units;
  return UNITS.find((unit) => fields[unit] !== undefined && !counted.includes(unit)) ?? null;
}

/** Returns the same in dollars. */
export function priceView({ input, cached, cacheWrite, output, units = {} }: Price): View {
  const pieces = UNITS.flatMap((unit) => {
    const price = units[unit];
    if (price === undefined) return [];
    return [[unit, dollarsOf(micros(PIECES.has(unit) ? price / MILLION : price))] as const];
  });
  return {
    input: dollarsOf(micros(input)),
    cached: dollarsOf(micros(cached)),
    cache_write: dollarsOf(micros(cacheWrite)),
    output: dollarsOf(micros(output)),
    ...Object.fromEntries(pieces),
  };
}

/** Returns a row for operators. */
export function rowView({ id, list, item, from, says, postedBy, createdAt }: PriceRecord): View {
  return {
    id,
    list,
    item,
    from: timestamp(from),
    price: says.price === undefined ? null : priceView(says.price),
    percent: says.percent ?? null,
    posted_by: postedBy,
    created_at: timestamp(createdAt),
  };
}
