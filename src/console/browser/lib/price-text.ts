import type { PriceRow } from "../api/types.ts";
import { microsOf, spent } from "./money.ts";

/** Returns a price as text: `$0.60 in, $4.00 out`. */
export function priceText({ price, percent }: Pick<PriceRow, "price" | "percent">): string {
  return price === null
    ? `${percent ?? 0}% above cost`
    : `${spent(microsOf(price.input))} in, ${spent(microsOf(price.output))} out`;
}
