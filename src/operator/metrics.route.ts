import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { fail } from "../http/context.ts";
import { now } from "../lib/clock.ts";
import { objectsOf } from "../contracts/objects.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { storageFailure } from "../lib/storage-failure.ts";
import { prometheusText } from "../metrics/prometheus.ts";
import type { Counted } from "../contracts/metrics.ts";
import { METRICS } from "../metrics/series.ts";
import { isolateGauges } from "../metrics/views.ts";

/**
 * `GET /admin/v1/metrics`: the region's counters and, with their age, what the last sweep found and what
 * its isolates see, as Prometheus reads them. Counts arrive up to METRICS_DELAY_MS after their answers.
 */
export async function metricsRoute(c: Context<AppEnv>): Promise<Response> {
  let counted: Counted;
  try {
    counted = await objectsOf(c.env).metrics().read();
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
