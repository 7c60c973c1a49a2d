import { DAY_MS, timestamp } from "./clock.ts";

/** A UTC day (YYYY-MM-DD), the Monday of its week, and its month (YYYY-MM). */
export type Period = { readonly day: string; readonly week: string; readonly month: string };

/** A cache of recent days, because each wallet transaction needs the current day several times. */
const known = new Map<number, Period>();
const KNOWN_MAX = 16;

export function periodOf(ms: number): Period {
  const day = Math.floor(ms / DAY_MS);
  const before = known.get(day);
  if (before !== undefined) return before;
  if (known.size >= KNOWN_MAX) known.clear();
  const period = periodOfDay(timestamp(ms).slice(0, 10));
  known.set(day, period);
  return period;
}

export function periodOfDay(day: string): Period {
  const ms = Date.parse(day);
  const sinceMonday = (new Date(ms).getUTCDay() + 6) % 7;
  const week = timestamp(ms - sinceMonday * DAY_MS).slice(0, 10);
  return { day, week, month: day.slice(0, 7) };
}

export function endOf(period: Period, unit: keyof Period): number {
  if (unit === "day") return Date.parse(period.day) + DAY_MS;
  if (unit === "week") return Date.parse(period.week) + 7 * DAY_MS;
  const [year, month] = period.month.split("-").map(Number);
  return Date.UTC(year ?? 0, month ?? 0); // `Date.UTC` counts months from 0, so this is the start of the next month
}
