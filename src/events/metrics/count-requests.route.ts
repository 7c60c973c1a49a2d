import type { Next } from "hono";
import { routePath } from "hono/route";
import { readOptionalVariable } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import { now } from "../../shared/clock.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import type { Config } from "../../shared/config/config.ts";
import { MetricRecorder, counterSeriesName, histogramSeriesNames } from "./tally.ts";
import type { HistogramSeriesNames } from "./tally.ts";

export function metricRecorderOf(config: Config): MetricRecorder {
  return Isolate.of(config).get(createRecorder);
}

const createRecorder = ({ numbers }: Config): MetricRecorder =>
  new MetricRecorder(numbers.METRICS_DELAY_MS);

/**
 * Counts each response. Counts of 401s aren't sent, so forged keys can't cause calls to Durable
 * Objects.
 */
export async function countRequests(c: AppContext, next: Next): Promise<void> {
  await next();
  const config = readOptionalVariable(c, "config");
  if (config === undefined) return; // the Worker is misconfigured and serves no requests
  const { tally } = metricRecorderOf(config);
  const { status } = c.res;
  const series = routeSeries(routePath(c));
  tally.add(series.requestSeries(status));
  tally.observe(series.headers, (now(c.env) - c.get("startedMs")) / 1000);
  if (status !== 401) flushMetricCounts(c);
}

type RouteSeries = {
  readonly requestSeries: (status: number) => string;
  readonly headers: HistogramSeriesNames;
};
const seriesByRoute = new Map<string, RouteSeries>();

function routeSeries(route: string): RouteSeries {
  const known = seriesByRoute.get(route);
  if (known !== undefined) return known;
  const nameByStatus = new Map<number, string>();
  const newSeries = {
    requestSeries: (status: number) => {
      const counted = nameByStatus.get(status);
      if (counted !== undefined) return counted;
      const series = counterSeriesName("requests", { route, status: String(status) });
      nameByStatus.set(status, series);
      return series;
    },
    headers: histogramSeriesNames("headers", { route }),
  };
  seriesByRoute.set(route, newSeries);
  return newSeries;
}

export function flushMetricCounts(c: AppContext): void {
  const config = c.get("config");
  const recorder = metricRecorderOf(config);
  if (!recorder.isWaiting) return;
  recorder.scheduleFlush(
    (work) => c.executionCtx.waitUntil(work),
    (series, view) => objectsOf(c.env).metrics().add(series, view),
  );
}
