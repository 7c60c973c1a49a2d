import { METRICS } from "./series.ts";
import type { RegionCounts, MetricValues } from "../../shared/contracts/metrics.ts";

/** Ms without a report after which an isolate counts as ended. */
export const ISOLATE_SILENCE_MAX_MS = 300_000;

export function isolateGauges({ views }: RegionCounts, nowMs: number): MetricValues {
  const activeIsolates = Object.values(views).filter(
    (one) => nowMs - one.atMs < ISOLATE_SILENCE_MAX_MS,
  );
  const sum: Record<string, number> = { [METRICS.isolates.name]: activeIsolates.length };
  for (const { atMs, series } of activeIsolates) {
    const age = METRICS.isolatesAge.name;
    sum[age] = Math.max(sum[age] ?? 0, (nowMs - atMs) / 1000);
    for (const [name, value] of Object.entries(series)) sum[name] = (sum[name] ?? 0) + value;
  }
  return sum;
}

/** Returns ages in seconds. The age of a job that never ran starts at `sinceMs`. Clocks differ, so none is negative. */
export function ageGauges({ sinceMs, gauges, jobs }: RegionCounts, nowMs: number): MetricValues {
  const age = (ran: { readonly atMs: number } | null = null): number =>
    Math.max(0, nowMs - (ran?.atMs ?? sinceMs)) / 1000;
  return {
    [METRICS.depthsAge.name]: age(gauges),
    [METRICS.outboxesAge.name]: age(jobs.outboxes),
    [METRICS.paymentsAge.name]: age(jobs.payments),
  };
}
