import { formatSpent } from "../lib/money.ts";
import { perMillion } from "./models.ts";
import type { ListedModel, Pricing } from "./models.ts";

const NOT_UNITS = /^(?:prompt|completion|input_cache|from)/;

/** Returns the prices of a model's units, such as `$0.04 per image`. */
function unitPrices(pricing: Pricing): readonly string[] {
  const units = Object.entries(pricing).filter(([name]) => !NOT_UNITS.test(name));
  return units.map(([name, dollars]) => {
    const unit = name.replaceAll("_", " ");
    return /token|character/.test(name)
      ? `${perMillion(dollars)} per million ${unit}s`
      : `${formatSpent(Number(dollars) * 1e6)} per ${unit}`;
  });
}

/** Returns a price per million tokens, or nothing if it is 0 because the model has unit prices. */
export function tokenPrice(pricing: Pricing, dollars: string, label = ""): string {
  return Number(dollars) > 0 || unitPrices(pricing).length === 0 ? perMillion(dollars) + label : "";
}

/** Returns the prices of the output tokens and of all units. */
export function outputPrice(pricing: Pricing, label?: string): string {
  const tokens = tokenPrice(pricing, pricing.completion, label);
  return [tokens, ...unitPrices(pricing)].filter(Boolean).join(", ");
}

export function nextPrice({ next_price: next }: ListedModel): string {
  if (next === null) return "";
  const input = tokenPrice(next, next.prompt, " in, ");
  return `${next.from.slice(0, 10)}: ${input}${outputPrice(next, " out")}`;
}
