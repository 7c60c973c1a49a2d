import type { Context } from "hono";
import { routePath } from "hono/route";
import { now } from "../lib/clock.ts";
import type { AppEnv } from "../http/context.ts";
import { handOver, recorderOf } from "../metrics/count-requests.route.ts";
import { countRun, dataPointOf, logRun, routeGauges } from "./observe.ts";
import type { Run } from "./paid-request.ts";

/** After a run's end: its counts, and its line in the log. */
export function observe(c: Context<AppEnv>, run: Run, status: number): void {
  const config = c.get("config");
  const recorder = recorderOf(config);
  const { env } = c; // not c: what the isolate keeps must not keep its last request
  const { health } = run.services;
  recorder.view = () => routeGauges(health, now(env));
  countRun(run, recorder.tally);
  const point = env.ANALYTICS === undefined ? null : dataPointOf(run);
  if (point !== null) env.ANALYTICS?.writeDataPoint(point);
  if (status !== 401) handOver(c); // as in countRequests: a dead key costs no object call more
  const failure = c.get("failure") ?? null;
  const isTold = status >= 400 || failure !== null || config.logRequests === "all";
  if (isTold) logRun(run, { route: routePath(c), status, failure });
}
