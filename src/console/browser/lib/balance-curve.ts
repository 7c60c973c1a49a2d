import { DAY, utcDay } from "./time.ts";

/** What moved a balance: micros of one UTC day, what was spent with a minus. */
export type BalanceMovement = { readonly day: string; readonly micros: number };

/** What was left at the end of each day, counted back from what is left now. */
export function balanceCurve(
  nowMicros: number,
  moved: readonly BalanceMovement[],
  days: readonly string[],
): readonly number[] {
  const later = (day: string): number =>
    moved.reduce((sum, one) => (one.day > day ? sum + one.micros : sum), 0);
  return days.map((day) => nowMicros - later(day));
}

/** What was credited on each day; null where nothing was. */
export function creditedBy(
  credits: readonly BalanceMovement[],
  days: readonly string[],
): readonly (number | null)[] {
  return days.map((day) => {
    const ofDay = credits.filter((one) => one.day === day);
    return ofDay.length === 0 ? null : ofDay.reduce((sum, { micros }) => sum + micros, 0);
  });
}

/** Until which day it lasts when each day costs so much; null: nothing is spent, or longer than ten years. */
export function lastsUntil(micros: number, perDay: number, now: number): string | null {
  if (perDay <= 0) return null;
  const days = Math.floor(Math.max(0, micros) / perDay);
  return days > 3650 ? null : utcDay(now + days * DAY);
}
