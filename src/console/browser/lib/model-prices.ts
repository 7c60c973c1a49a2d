import type { Model } from "../api/types.ts";
import { formatCharge } from "./money.ts";

/** Prices as texts, in dollars per token or unit. */
type Pricing = Model["pricing"];

function perMillion(dollars: string): string {
  return formatCharge(Math.round(Number(dollars) * 1e12));
}

const NOT_UNITS = /^(?:prompt|completion|input_cache|from)/;

function unitPrices(pricing: Pricing): readonly string[] {
  const units = Object.entries(pricing).filter(([name]) => !NOT_UNITS.test(name));
  return units.map(([name, dollars]) => {
    const unit = name.replaceAll("_", " ");
    return /token|character/.test(name)
      ? `${perMillion(dollars)} per million ${unit}s`
      : `${formatCharge(Number(dollars) * 1e6)} per ${unit}`;
  });
}

/** Returns a token price per million. Returns "" for a price of 0 if the model has unit prices. */
export function tokenPrice(pricing: Pricing, dollars: string, label = ""): string {
  return Number(dollars) > 0 || unitPrices(pricing).length === 0 ? perMillion(dollars) + label : "";
}

/** Returns the prices of output tokens and of all units as text. */
export function outputAndUnitPrices(pricing: Pricing, label?: string): string {
  const tokens = tokenPrice(pricing, pricing.completion, label);
  return [tokens, ...unitPrices(pricing)].filter(Boolean).join(", ");
}

/** Returns a model's next price and its date as text, or "". */
export function nextPrice({ next_price: next }: Model): string {
  if (next === null) return "";
  const input = tokenPrice(next, next.prompt, " in, ");
  return `${next.from.slice(0, 10)}: ${input}${outputAndUnitPrices(next, " out")}`;
}

/** Returns a model's prices in one line. For an alias, adds its model. */
export function describeModelPrices({
  alias_of,
  pricing,
}: Pick<Model, "alias_of" | "pricing">): string {
  const output = tokenPrice(pricing, pricing.completion, " out");
  const tokens = [tokenPrice(pricing, pricing.prompt, " in"), output].filter(Boolean).join(", ");
  const price = [tokens && `${tokens} per million tokens`, ...unitPrices(pricing)];
  return `${alias_of === undefined ? "" : `now ${alias_of}: `}${price.filter(Boolean).join(", ")}`;
}
