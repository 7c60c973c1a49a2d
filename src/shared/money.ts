import { assert } from "./assert.ts";

/** An amount in micro-credits (millionths of a dollar), always a safe integer. */
export type Micros = number & { readonly unit: "micros" };

export const DOLLARS_MAX = 1_000_000_000;
export const MICROS_PER_DOLLAR = 1_000_000;

/** Asserts that an amount is a safe integer. */
export function micros(value: number): Micros {
  assert(Number.isSafeInteger(value), `micros must be a safe integer, got ${value}`);
  return value as Micros;
}

export function dollarsOf(amount: Micros): number {
  return amount / MICROS_PER_DOLLAR;
}

export function costFields(costMicro: number) {
  return { cost: costMicro / MICROS_PER_DOLLAR, cost_micro: costMicro };
}

/**
 * Converts dollars from a request. Returns null for an invalid number, more than 6 decimals, or
 * more than DOLLARS_MAX. Never truncates: 8.2 * 1e6 is 8199999.999999999.
 */
export function microsOfDollars(dollars: number): Micros | null {
  if (!Number.isFinite(dollars) || dollars < 0 || dollars > DOLLARS_MAX) return null;
  const exactMicros = dollars * MICROS_PER_DOLLAR;
  const rounded = Math.round(exactMicros);
  // Dividing restores the dollars only if they have at most 6 decimals.
  return rounded / MICROS_PER_DOLLAR === dollars ? micros(rounded) : null;
}
