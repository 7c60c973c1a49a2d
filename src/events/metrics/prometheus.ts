import { METRICS } from "./series.ts";
import type { Metric } from "./series.ts";
import type { Series } from "../../shared/contracts/metrics.ts";

type Bucket = { readonly le: string; readonly labels: string; readonly count: number };

/** Returns Prometheus' text format, version 0.0.4. Omits metrics of other releases. */
export function prometheusText(series: Series): string {
  const names = Object.keys(series).toSorted();
  return Object.values(METRICS)
    .map((metric) => textOf(metric, names, series))
    .filter((text) => text !== "")
    .join("");
}

function textOf(metric: Metric, names: readonly string[], series: Series): string {
  const lines =
    metric.type === "histogram"
      ? histogramLines(metric, names, series)
      : names
          .filter((name) => isOf(name, metric.name))
          .map((name) => `${name} ${series[name] ?? 0}`);
  if (lines.length === 0) return "";
  const head = [`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`];
  return `${[...head, ...lines].join("\n")}\n`;
}

function histogramLines(metric: Metric, names: readonly string[], series: Series): string[] {
  const bucket = `${metric.name}_bucket`;
  const counted = names.filter((name) => isOf(name, bucket)).map((name) => read(name, series));
  const bounds = [...(metric.buckets ?? []).map(String), "+Inf"];
  const lines: string[] = [];
  for (const labels of new Set(counted.map((one) => one.labels))) {
    const mine = counted.filter((one) => one.labels === labels);
    const counts = new Map(mine.map((one) => [one.le, one.count]));
    let total = 0;
    for (const le of bounds) {
      total += counts.get(le) ?? 0;
      lines.push(`${bucket}{${labels === "" ? "" : `${labels},`}le="${le}"} ${total}`);
    }
    const around = labels === "" ? "" : `{${labels}}`;
    lines.push(`${metric.name}_sum${around} ${series[`${metric.name}_sum${around}`] ?? 0}`);
    lines.push(`${metric.name}_count${around} ${total}`);
  }
  return lines;
}

function read(name: string, series: Series): Bucket {
  const inside = name.slice(name.indexOf("{") + 1, -1);
  const at = inside.lastIndexOf('le="');
  const labels = inside.slice(0, Math.max(0, at - 1));
  return { le: inside.slice(at + 'le="'.length, -1), labels, count: series[name] ?? 0 };
}

function isOf(series: string, name: string): boolean {
  return series === name || series.startsWith(`${name}{`);
}
