import { METRICS } from "./series.ts";
import type { MetricDefinition } from "./series.ts";
import type { MetricValues } from "../../shared/contracts/metrics.ts";

type Bucket = { readonly le: string; readonly labels: string; readonly count: number };

/**
 * Returns metrics in Prometheus' text format 0.0.4. Omits series that this release doesn't define.
 */
export function formatPrometheusText(series: MetricValues): string {
  const names = Object.keys(series).toSorted();
  return Object.values(METRICS)
    .map((metric) => metricText(metric, names, series))
    .filter((text) => text !== "")
    .join("");
}

function metricText(
  metric: MetricDefinition,
  names: readonly string[],
  series: MetricValues,
): string {
  const lines =
    metric.type === "histogram"
      ? histogramLines(metric, names, series)
      : names
          .filter((name) => isSeriesOf(name, metric.name))
          .map((name) => `${name} ${series[name] ?? 0}`);
  if (lines.length === 0) return "";
  const head = [`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`];
  return `${[...head, ...lines].join("\n")}\n`;
}

function histogramLines(
  metric: MetricDefinition,
  names: readonly string[],
  series: MetricValues,
): string[] {
  const bucket = `${metric.name}_bucket`;
  const counted = names
    .filter((name) => isSeriesOf(name, bucket))
    .map((name) => readBucket(name, series));
  const bounds = [...(metric.buckets ?? []).map(String), "+Inf"];
  const lines: string[] = [];
  for (const labels of new Set(counted.map((one) => one.labels))) {
    const bucketsOfLabels = counted.filter((one) => one.labels === labels);
    const countByBound = new Map(bucketsOfLabels.map((one) => [one.le, one.count]));
    let total = 0;
    for (const le of bounds) {
      total += countByBound.get(le) ?? 0;
      lines.push(`${bucket}{${labels === "" ? "" : `${labels},`}le="${le}"} ${total}`);
    }
    const labelText = labels === "" ? "" : `{${labels}}`;
    lines.push(`${metric.name}_sum${labelText} ${series[`${metric.name}_sum${labelText}`] ?? 0}`);
    lines.push(`${metric.name}_count${labelText} ${total}`);
  }
  return lines;
}

function readBucket(name: string, series: MetricValues): Bucket {
  const labelsText = name.slice(name.indexOf("{") + 1, -1);
  const boundIndex = labelsText.lastIndexOf('le="');
  const labels = labelsText.slice(0, Math.max(0, boundIndex - 1));
  return { le: labelsText.slice(boundIndex + 'le="'.length, -1), labels, count: series[name] ?? 0 };
}

function isSeriesOf(series: string, name: string): boolean {
  return series === name || series.startsWith(`${name}{`);
}
