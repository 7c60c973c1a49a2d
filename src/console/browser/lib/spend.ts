import { formatSpent } from "./money.ts";
import { DAY, dayName, daysBetween, monthStart, utcDay } from "./time.ts";

const METRICS = [
  "requests",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "cost_micro",
] as const;
/** An amount that Activity shows per day. */
export type Metric = (typeof METRICS)[number];
type Amounts = Readonly<Record<Metric, number>>;
export type DayRow = Amounts & {
  readonly day: string;
  readonly group: string | null;
  readonly group2?: string | null;
  readonly first_byte_ms?: { readonly p50: number | null; readonly p99: number | null };
  readonly tokens_per_s?: number | null;
};
export function requestSums(requests: number): Amounts {
  const sums = Object.fromEntries(METRICS.map((name) => [name, 0]));
  return { ...sums, requests } as Amounts;
}
type Series = { readonly name: string | null; readonly values: readonly number[] };

export function sumOf(rows: readonly DayRow[], metric: Metric): number {
  return rows.reduce((sum, row) => sum + row[metric], 0);
}

export type GroupSum = Amounts & { readonly group: string | null };

export function sumByGroup(
  rows: readonly DayRow[],
  metric: Metric = "cost_micro",
): readonly GroupSum[] {
  const sums = new Map<string | null, Record<Metric, number> & { group: string | null }>();
  for (const { day: _day, ...row } of rows) {
    const sum = sums.get(row.group);
    if (sum === undefined) sums.set(row.group, row);
    else for (const name of METRICS) sum[name] += row[name];
  }
  return [...sums.values()].toSorted(
    (a, b) => b[metric] - a[metric] || (a.group ?? "").localeCompare(b.group ?? ""),
  );
}

/**
 * Returns one series per group, largest first. Combines groups after the first `most` into "other".
 */
export function stackGroups(
  rows: readonly DayRow[],
  days: readonly string[],
  { metric, most = 8 }: { readonly metric: Metric; readonly most?: number },
): readonly Series[] {
  const indexByDay = new Map(days.map((day, index) => [day, index]));
  const order = sumByGroup(rows, metric).map(({ group }) => group);
  const shown = new Set(order.slice(0, order.length > most + 1 ? most : most + 1));
  const series = new Map<string | null, number[]>();
  for (const name of order) {
    const key = shown.has(name) ? name : "other";
    if (!series.has(key)) {
      series.set(
        key,
        days.map(() => 0),
      );
    }
  }
  for (const row of rows) {
    const values = series.get(shown.has(row.group) ? row.group : "other");
    const index = indexByDay.get(row.day);
    if (values !== undefined && index !== undefined) {
      values[index] = (values[index] ?? 0) + row[metric];
    }
  }
  return [...series].map(([name, values]) => ({ name, values }));
}

/** Returns each day's share of input tokens that came from a cache, or null without input. */
export function cacheShares(
  rows: readonly DayRow[],
  days: readonly string[],
): readonly (number | null)[] {
  return days.map((day) => {
    const rowsOfDay = rows.filter((row) => row.day === day);
    const prompts = sumOf(rowsOfDay, "prompt_tokens");
    return prompts === 0 ? null : sumOf(rowsOfDay, "cached_tokens") / prompts;
  });
}

type Totals = {
  readonly today: number;
  readonly month: number;
  readonly lastMonthToDate: number;
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
  };
}

/**
 * Returns the last day that the balance covers at the average spend of the last 7 complete days, or
 * since a later first spend.
 */
export function runway(
  availableMicro: number,
  rows: readonly Pick<DayRow, "day" | "cost_micro">[],
  now: number,
): string {
  const today = utcDay(now);
  const weekStart = utcDay(now - 7 * DAY);
  const first = rows.reduce((least, { day }) => (day < least ? day : least), today);
  const isNew = first > weekStart;
  const days = isNew ? daysBetween(first, today).length : 7;
  const spent = rows.reduce(
    (sum, { day, cost_micro }) =>
      day >= weekStart && (isNew || day < today) ? sum + cost_micro : sum,
    0,
  );
  if (spent <= 0) return rows.length === 0 ? "No spending yet" : "No spending in the last 7 days";
  if (availableMicro <= 0) return "Nothing is left";
  const daysLeft = Math.floor((availableMicro / spent) * days);
  const end =
    daysLeft > 365 ? "for more than a year" : `until ${dayName(utcDay(now + daysLeft * DAY))}`;
  const perDay = formatSpent(Math.ceil(spent / days));
  return `Lasts ${end} if you spend as ${days === 1 ? "today" : `in the last ${days} days`} (${perDay} a day)`;
}
