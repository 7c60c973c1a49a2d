import { sumMetric } from "./spend.ts";
import type { DayRow } from "./spend.ts";
import { monthStart, utcDay } from "./time.ts";

type Totals = {
  readonly today: number;
  readonly month: number;
  readonly lastMonthToDate: number;
};

export function computeSpendTotals(rows: readonly DayRow[], now: number): Totals {
  const today = utcDay(now);
  const lastStart = monthStart(today, 1);
  const sameDay = `${lastStart.slice(0, 8)}${today.slice(8)}`;
  const between = (from: string, to: string): number =>
    sumMetric(
      rows.filter(({ day }) => day >= from && day <= to),
      "cost_micro",
    );
  return {
    today: between(today, today),
    month: between(monthStart(today), today),
    lastMonthToDate: between(lastStart, sameDay),
  };
}
