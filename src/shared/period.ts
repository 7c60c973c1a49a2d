import { DAY_MS, timestamp } from "./clock.ts";

/** A UTC day (YYYY-MM-DD), the Monday of its week, and its month (YYYY-MM). */
export type Period = { readonly day: string; readonly week: string; readonly month: string };

/** A cache, because a wallet transaction needs the current period several times. */
const periodByDay = new Map<number, Period>();
const CACHED_DAYS_MAX = 16;

export function periodOf(ms: number): Period {
  const day = Math.floor(ms / DAY_MS);
  const cached = periodByDay.get(day);
  if (cached !== undefined) return cached;
  if (periodByDay.size >= CACHED_DAYS_MAX) periodByDay.clear();
  const period = periodOfDay(timestamp(ms).slice(0, 10));
  periodByDay.set(day, period);
  return period;
}

export function periodOfDay(day: string): Period {
  const ms = Date.parse(day);
  const daysSinceMonday = (new Date(ms).getUTCDay() + 6) % 7;
  const week = timestamp(ms - daysSinceMonday * DAY_MS).slice(0, 10);
  return { day, week, month: day.slice(0, 7) };
}

export function periodEndMs(period: Period, unit: keyof Period): number {
  if (unit === "day") return Date.parse(period.day) + DAY_MS;
  if (unit === "week") return Date.parse(period.week) + 7 * DAY_MS;
  const [year, month] = period.month.split("-").map(Number);
  return Date.UTC(year ?? 0, month ?? 0); // `Date.UTC` counts months from 0, so this is the next month
}
