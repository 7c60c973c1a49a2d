import { formatCharge } from "./money.ts";
import type { DayRow } from "./spend.ts";
import { DAY_MS, dayName, daysBetween, utcDay } from "./time.ts";

/** The change in the balance on a UTC day, in micro-credits. Spend is negative. */
type BalanceMovement = { readonly day: string; readonly micros: number };

/** Returns the balance at the end of each day. */
export function balanceCurve(
  nowMicros: number,
  movements: readonly BalanceMovement[],
  days: readonly string[],
): readonly number[] {
  const sumAfter = (day: string): number =>
    movements.reduce((sum, one) => (one.day > day ? sum + one.micros : sum), 0);
  return days.map((day) => nowMicros - sumAfter(day));
}

/** Number of days of spend that `runway` needs. All pages read at least this many. */
const RUNWAY_DAYS = 28;

/**
 * Returns how long the balance lasts, as text. Uses the average spend of the last 7 complete days,
 * or of the days since a more recent first spend.
 */
export function runway(
  availableMicro: number,
  all: readonly Pick<DayRow, "day" | "cost_micro">[],
  now: number,
): string {
  const today = utcDay(now);
  const weekStart = utcDay(now - 7 * DAY_MS);
  const rows = all.filter(({ day }) => day >= utcDay(now - RUNWAY_DAYS * DAY_MS));
  const first = rows.reduce((least, { day }) => (day < least ? day : least), today);
  const isNew = first > weekStart;
  const days = isNew ? daysBetween(first, today).length : 7;
  const spent = rows.reduce(
    (sum, { day, cost_micro }) =>
      day >= weekStart && (isNew || day < today) ? sum + cost_micro : sum,
    0,
  );
  if (spent <= 0) return "No spending in the last 7 days";
  if (availableMicro <= 0) return "No credits left";
  const daysLeft = Math.floor((availableMicro / spent) * days);
  const end =
    daysLeft > 365 ? "for more than a year" : `until ${dayName(utcDay(now + daysLeft * DAY_MS))}`;
  const perDay = formatCharge(Math.ceil(spent / days));
  return `Lasts ${end} if you spend as ${days === 1 ? "today" : `in the last ${days} days`} (${perDay} a day)`;
}
