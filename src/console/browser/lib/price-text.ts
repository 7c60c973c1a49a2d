import type { ListPrice, PriceRow } from "../api/types.ts";
import { isUnit, formatPricedAmount } from "../../../shared/units.ts";
import { dollarsToMicros, formatCharge } from "./money.ts";

export const formatDollarPrice = (price: number): string => formatCharge(dollarsToMicros(price));

/**
 * Returns a price as text, such as `$0.60 in, $4.00 out`. Omits token prices if only units have a
 * price.
 */
export function priceText({ price, percent }: Pick<PriceRow, "price" | "percent">): string {
  if (price === null) return `${percent ?? 0}% above cost`;
  const units = unitPriceTexts(price);
  const tokens = [`${formatDollarPrice(price.input)} in`, `${formatDollarPrice(price.output)} out`];
  const hasTokens = units.length === 0 || price.input > 0 || price.output > 0;
  return [...(hasTokens ? tokens : []), ...units].join(", ");
}

/** Returns the prices of a model's units, such as `$0.04 per image`. */
export function unitPriceTexts(price: ListPrice): readonly string[] {
  return Object.entries(price).flatMap(([unit, dollars]) =>
    isUnit(unit) ? [`${formatDollarPrice(dollars)} per ${formatPricedAmount(unit)}`] : [],
  );
}
