import { sumOf } from "./spend.ts";
import type { DayRow } from "./spend.ts";
import { DAY, daysBetween, monthStart, utcDay } from "./time.ts";

type Totals = {
  readonly today: number;
  readonly month: number;
  readonly lastMonthToDate: number;
  readonly week: number;
};

export function totalsOf(rows: readonly DayRow[], now: number): Totals {
  const today = utcDay(now);
  const lastStart = monthStart(today, 1);
  const sameDay = `${lastStart.slice(0, 8)}${today.slice(8)}`;
  const between = (from: string, to: string): number =>
    sumOf(
      rows.filter(({ day }) => day >= from && day <= to),
      "cost_micro",
    );
  return {
    today: between(today, today),
    month: between(monthStart(today), today),
    lastMonthToDate: between(lastStart, sameDay),
    week: between(utcDay(now - 7 * DAY), utcDay(now - DAY)),
  };
}

/**
 * Returns how long the balance lasts at the average spend of the last 7 complete days, or since a
 * later first spend.
 */
export function runway(availableMicro: number, rows: readonly DayRow[], now: number): string {
  const recent = rows.filter(
    ({ day, cost_micro }) => day >= utcDay(now - 7 * DAY) && cost_micro > 0,
  );
  const first = rows.reduce((least, { day }) => (day < least ? day : least), utcDay(now));
  const isNew = first > utcDay(now - 7 * DAY);
  const spent = isNew ? sumOf(recent, "cost_micro") : totalsOf(rows, now).week;
  const days = isNew ? daysBetween(first, utcDay(now)).length : 7;
  if (spent <= 0) return rows.length === 0 ? "no spending yet" : "no spending in the last 7 days";
  if (availableMicro <= 0) return "nothing is left";
  const daysLeft = Math.floor((availableMicro / spent) * days);
  const pace = isNew && days < 7 ? paceOf(days) : "in the last 7 days";
  const length = daysLeft > 730 ? "more than two years" : daysText(daysLeft);
  return `lasts ${length} if you spend as ${pace}`;
}

function paceOf(days: number): string {
  return days === 1 ? "today" : `in the last ${days} days`;
}

function daysText(days: number): string {
  if (days < 1) return "less than a day";
  return days === 1 ? "about 1 day" : `about ${days} days`;
}
