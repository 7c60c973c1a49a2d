import { DAY_MS, dayAfter, parseDayOrHour, monthStart, utcDay } from "./time.ts";

/** A period: its first and last UTC day or hour. */
export type DateRange = { readonly from: string; readonly to: string };
type Query = Readonly<Record<string, string>>;

/** Returns the days of the Errors tab: by default the last seven. */
export function errorDays({ from, to }: Query, now: number): DateRange {
  return { from: from ?? to ?? utcDay(now - 6 * DAY_MS), to: to ?? utcDay(now) };
}

export function rangeLengthMs({ from, to }: DateRange): number {
  return parseDayOrHour(to) + (to.includes("T") ? DAY_MS / 24 : DAY_MS) - parseDayOrHour(from);
}

/** Reports whether the requests of a period are completely stored since `completeFrom`. */
export function isCompleteSince(
  completeFrom: string | null | undefined,
  { from }: Pick<DateRange, "from">,
): boolean {
  return !completeFrom || Date.parse(completeFrom) <= parseDayOrHour(from);
}

/** Returns the days or hours of a period that are not before `completeFrom`. */
export function partsSince(
  completeFrom: string | null,
  parts: readonly string[],
): readonly string[] {
  return parts.filter((part) => part >= (completeFrom ?? "").slice(0, part.length));
}

/** Returns a period's name in files: `2026-10` for a whole month, or its first and last day. */
export function rangeName({ from, to }: DateRange): string {
  if (from === monthStart(to) && dayAfter(to) === monthStart(to, -1)) return from.slice(0, 7);
  return from === to ? from : `${from} to ${to}`;
}

/** Returns the preceding period of the same length. */
export function rangeBefore(range: DateRange): DateRange {
  const length = rangeLengthMs(range);
  const asHours = range.from.includes("T") || range.to.includes("T");
  const at = (ms: number): string => new Date(ms).toISOString().slice(0, asHours ? 13 : 10);
  const start = parseDayOrHour(range.from);
  return { from: at(start - length), to: at(start - (asHours ? DAY_MS / 24 : DAY_MS)) };
}

export function roundRangeToDays({ from, to }: DateRange): DateRange {
  return { from: from.slice(0, 10), to: to.slice(0, 10) };
}

const A_DAY_OR_HOUR = /^\d{4}-\d\d-\d\d(?:T\d\d)?$/;

const hourOf = (at: number): string => new Date(at).toISOString().slice(0, 13);
const dayBefore = (day: string): string => utcDay(Date.parse(day) - DAY_MS);
const PRESETS: Readonly<Record<string, (now: number) => DateRange>> = {
  "24h": (now) => ({ from: hourOf(now - DAY_MS + DAY_MS / 24), to: hourOf(now) }),
  yesterday: (now) => ({ from: utcDay(now - DAY_MS), to: utcDay(now - DAY_MS) }),
  month: (now) => ({ from: monthStart(utcDay(now)), to: utcDay(now) }),
  "last-month": (now) => ({
    from: monthStart(utcDay(now), 1),
    to: dayBefore(monthStart(utcDay(now))),
  }),
};

export function readRange(query: Query, now: number): DateRange {
  const today = utcDay(now);
  const { range = "30", from = "", to = "" } = query;
  if (A_DAY_OR_HOUR.test(from) && A_DAY_OR_HOUR.test(to) && from <= to) {
    const first = utcDay(Date.parse(to.slice(0, 10)) - 365 * DAY_MS);
    return { from: from < first ? first : from, to };
  }
  const preset = PRESETS[range]?.(now);
  if (preset !== undefined) return preset;
  const count = Math.min(90, Math.max(1, Number(range) || 30));
  return { from: utcDay(now - (count - 1) * DAY_MS), to: today };
}
