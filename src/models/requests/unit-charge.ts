import { COUNTED_UNITS, promptTokens } from "../../shared/usage.ts";
import type { CountedUnit, Price, Usage } from "../../shared/usage.ts";
import type { PromptSize } from "../core/prompt-size.ts";

type Counted = { readonly usage: Usage; readonly estimated: boolean };

/**
 * Returns the billed usage of a kind with units: the provider's counts, at most the held ones. A priced unit
 * without a count is billed as held, and priced input without a count as estimated, so that nothing is free.
 */
export function withinHold(
  { usage, estimated }: Counted,
  { units: held = {}, bound, likely }: PromptSize,
  price: Price,
): Counted {
  const isUnpriced = price.input === 0 || promptTokens(usage) > 0;
  const input = isUnpriced ? Math.min(usage.input, bound) : likely;
  const units: { [U in CountedUnit]?: number } = {};
  let isWhole = isUnpriced;
  for (const unit of COUNTED_UNITS) {
    const most = held[unit] ?? 0;
    const isPriced = price.units?.[unit] !== undefined;
    if (usage[unit] === undefined && !isPriced) continue;
    isWhole &&= usage[unit] !== undefined;
    units[unit] = Math.min(usage[unit] ?? most, most);
  }
  return { usage: { ...usage, input, ...units }, estimated: estimated || !isWhole };
}
