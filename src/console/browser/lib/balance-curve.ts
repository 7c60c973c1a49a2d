import { DAY, utcDay } from "./time.ts";

/** A change of the balance on a UTC day, in micro-credits. Spend is negative. */
export type BalanceMovement = { readonly day: string; readonly micros: number };

export function balanceCurve(
  nowMicros: number,
  movements: readonly BalanceMovement[],
  days: readonly string[],
): readonly number[] {
  const sumAfter = (day: string): number =>
    movements.reduce((sum, one) => (one.day > day ? sum + one.micros : sum), 0);
  return days.map((day) => nowMicros - sumAfter(day));
}

/**
 * Returns the last day that the balance covers at a daily cost, or null without cost or beyond ten
 * years.
 */
export function findLastCoveredDay(micros: number, perDay: number, now: number): string | null {
  if (perDay <= 0) return null;
  const days = Math.floor(Math.max(0, micros) / perDay);
  return days > 3650 ? null : utcDay(now + days * DAY);
}
