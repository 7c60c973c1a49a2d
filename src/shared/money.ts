import { assert } from "./assert.ts";

/** Whole millionths of a credit; 1 credit = 1 US dollar. Always a safe integer, never a float. */
export type Micros = number & { readonly unit: "micros" };

/** The largest dollar amount a client may name: quotas, thresholds. */
export const DOLLARS_MAX = 1_000_000_000;
export const MICROS_PER_DOLLAR = 1_000_000;

/** Brands a number as micros; a number that is not a safe integer is a bug. */
export function micros(value: number): Micros {
  assert(Number.isSafeInteger(value), `micros must be a safe integer, got ${value}`);
  return value as Micros;
}

/** Dollars as the interface shows them: `micros / 1_000_000`. */
export function dollarsOf(amount: Micros): number {
  return amount / MICROS_PER_DOLLAR;
}

/**
 * Dollars from a client to whole micros, or null when the value is not finite, negative, over
 * DOLLARS_MAX or has more than 6 decimals. Never truncates: 8.2 * 1e6 is 8199999.999999999.
 */
export function microsOfDollars(dollars: number): Micros | null {
  if (!Number.isFinite(dollars) || dollars < 0 || dollars > DOLLARS_MAX) return null;
  const scaled = dollars * MICROS_PER_DOLLAR;
  const whole = Math.round(scaled);
  // The nearest double to a 6-decimal amount divides back to itself; a longer fraction does not.
  return whole / MICROS_PER_DOLLAR === dollars ? micros(whole) : null;
}
