import { timestamp } from "../lib/clock.ts";

/** The UTC day (YYYY-MM-DD) and month (YYYY-MM) of one clock read; both sort like time. */
export type Period = { readonly day: string; readonly month: string };

export function periodOf(ms: number): Period {
  return periodOfDay(timestamp(ms).slice(0, 10));
}

export function periodOfDay(day: string): Period {
  return { day, month: day.slice(0, 7) };
}
