import type { Errors } from "../api/types.ts";

const METRICS = [
  "requests",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "cost_micro",
] as const;
export type UsageMetric = (typeof METRICS)[number];
type Amounts = Readonly<Record<UsageMetric, number>>;
export type DayRow = Amounts & {
  readonly day: string;
  readonly group: string | null;
  readonly group2?: string | null;
  readonly first_byte_ms?: { readonly p50: number | null; readonly p99: number | null };
  readonly tokens_per_s?: number | null;
};
export function usageWithOnlyRequests(requests: number): Amounts {
  const sums = Object.fromEntries(METRICS.map((name) => [name, 0]));
  return { ...sums, requests } as Amounts;
}
type Series = { readonly name: string | null; readonly values: readonly number[] };

export function sumMetric(rows: readonly DayRow[], metric: UsageMetric): number {
  return rows.reduce((sum, row) => sum + row[metric], 0);
}

export type UsageGroupSum = Amounts & { readonly group: string | null };

export function sumUsageByGroup(
  rows: readonly DayRow[],
  metric: UsageMetric = "cost_micro",
): readonly UsageGroupSum[] {
  const sums = new Map<string | null, Record<UsageMetric, number> & { group: string | null }>();
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
  { metric, most = 8 }: { readonly metric: UsageMetric; readonly most?: number },
): readonly Series[] {
  const indexByDay = new Map(days.map((day, index) => [day, index]));
  const order = sumUsageByGroup(rows, metric).map(({ group }) => group);
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
    const prompts = sumMetric(rowsOfDay, "prompt_tokens");
    return prompts === 0 ? null : sumMetric(rowsOfDay, "cached_tokens") / prompts;
  });
}

/** The error code of requests that the client stopped, which don't count as errors. */
export const STOPPED_CODE = "client_left";

/**
 * Reports whether a group's requests failed or were rejected, rather than stopped by the client.
 */
export function isError({ group }: Errors["data"][number]): boolean {
  return group !== STOPPED_CODE;
}

export function countErrors(data: Errors["data"]): number {
  return data.filter(isError).reduce((sum, { count }) => sum + count, 0);
}
