import type { PriceRow } from "../api/types.ts";
import { microsOf, formatSpent } from "./money.ts";

/** Returns a price as text: `$0.60 in, $4.00 out`. */
export function priceText({ price, percent }: Pick<PriceRow, "price" | "percent">): string {
  return price === null
    ? `${percent ?? 0}% above cost`
    : `${formatSpent(microsOf(price.input))} in, ${formatSpent(microsOf(price.output))} out`;
}
