import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { fail } from "../http/context.ts";
import { now } from "../lib/clock.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { storageFailure } from "../lib/storage-failure.ts";
import { prometheusText } from "../metrics/prometheus.ts";
import type { Counted } from "../metrics/views.ts";
import { METRICS, REGION_METRICS } from "../metrics/series.ts";
import { isolateGauges } from "../metrics/views.ts";

/**
 * `GET /admin/v1/metrics`: the region's counters and, with their age, what the last sweep found and what
 * its isolates see, as Prometheus reads them. Counts arrive up to METRICS_DELAY_MS after their answers.
 */
export async function metricsRoute(c: Context<AppEnv>): Promise<Response> {
  const objects = inJurisdiction(c.env.REGION_METRICS, c.var.config.jurisdiction);
  let counted: Counted;
  try {
    counted = await objects.getByName(REGION_METRICS).read();
  } catch (error) {
    logWarning("operator_storage_failed", { path: "/metrics", reason: reasonOf(error) });
    return fail(c, storageFailure(error));
  }
  const { counters, gauges } = counted;
  const nowMs = now(c.env);
  const age = gauges === null ? {} : { [METRICS.depthsAge.name]: (nowMs - gauges.atMs) / 1000 };
  const isolates = isolateGauges(counted, nowMs);
  const text = prometheusText({ ...counters, ...gauges?.series, ...age, ...isolates });
  return c.body(text, 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
}
