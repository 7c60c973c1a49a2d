import { timestamp } from "../lib/clock.ts";

/** The UTC day (YYYY-MM-DD) and month (YYYY-MM) of one clock read; both sort like time. */
export type Period = { readonly day: string; readonly month: string };

export function periodOf(ms: number): Period {
  const iso = timestamp(ms);
  return { day: iso.slice(0, 10), month: iso.slice(0, 7) };
}
