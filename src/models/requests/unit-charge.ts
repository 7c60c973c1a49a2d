import { COUNTED_UNITS, promptTokens } from "../../shared/usage.ts";
import type { CountedUnit, Price, Usage } from "../../shared/usage.ts";
import type { PromptSize } from "../core/prompt-size.ts";

type Counted = { readonly usage: Usage; readonly estimated: boolean };

/**
 * Returns the provider's counts, at most those of the hold. A priced unit or input without a count
 * is billed as held, so that nothing is free.
 */
export function withinHold(
  { usage, estimated }: Counted,
  { units: held = {}, bound }: PromptSize,
  price: Price,
): Counted {
  const isKnown = price.input === 0 || isCounted(usage, estimated);
  const input = isKnown ? Math.min(usage.input, bound) : bound;
  const units: { [U in CountedUnit]?: number } = {};
  let isWhole = isKnown;
  for (const unit of COUNTED_UNITS) {
    const most = held[unit] ?? 0;
    if (usage[unit] === undefined && !isDue(unit, most, price)) continue;
    isWhole &&= usage[unit] !== undefined;
    units[unit] = Math.min(usage[unit] ?? most, most);
  }
  return { usage: { ...usage, input, ...units }, estimated: estimated || !isWhole };
}

function isDue(unit: CountedUnit, held: number, { units }: Price): boolean {
  return held > 0 && units?.[unit] !== undefined;
}

function isCounted(usage: Usage, estimated: boolean): boolean {
  return !estimated && promptTokens(usage) > 0;
}
