import { timestamp } from "../lib/clock.ts";

/** The UTC day (YYYY-MM-DD) and month (YYYY-MM) of one clock read; both sort like time. */
export type Period = { readonly day: string; readonly month: string };

const DAY_MS = 86_400_000;
/** The days asked for last: a wallet asks for today several times in each turn. */
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
  return { day, month: day.slice(0, 7) };
}
