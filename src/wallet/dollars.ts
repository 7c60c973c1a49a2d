import * as z from "zod/mini";
import { assert } from "../lib/assert.ts";
import { DOLLARS_MAX, dollarsOf, microsOfDollars } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";

const AMOUNT = `must be null, or from 0 to ${DOLLARS_MAX} with at most 6 decimals`;

const dollars = z.pipe(
  z.number(AMOUNT).check(z.refine((amount) => microsOfDollars(amount) !== null, AMOUNT)),
  z.transform((amount): Micros => {
    const exact = microsOfDollars(amount);
    assert(exact !== null, "the amount was checked");
    return exact;
  }),
);

/** A quota or a money threshold in a body: dollars, exact to the micro, as micros; null: none. */
export const dollarsOrNull = z.nullable(dollars);

/** An alert threshold in a body: a fraction from 0 to 1. */
export const fraction = z.number().check(z.minimum(0), z.maximum(1));

/** A quota or a money threshold as the interface shows it; null: none. */
export function shownDollars(amount: Micros | null): number | null {
  return amount === null ? null : dollarsOf(amount);
}
