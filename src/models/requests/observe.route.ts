import type { Context } from "hono";
import { routePath } from "hono/route";
import type { Model } from "../catalog/model.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { countInSummaryLine, SummaryLogLine } from "../../shared/http/request-log.ts";
import { now } from "../../shared/clock.ts";
import { logEvent } from "../../shared/log.ts";
import { flushMetricCounts, metricRecorderOf } from "../../events/metrics/count-requests.route.ts";
import { METRICS, metricSeriesName } from "../../events/metrics/series.ts";
import type { MetricValues } from "../../shared/contracts/metrics.ts";
import { counterSeriesName, histogramSeriesNames } from "../../events/metrics/tally.ts";
import type { MetricCounts } from "../../events/metrics/tally.ts";
import { formatRouteName } from "../routing/route-health.ts";
import type { RouteHealth } from "../routing/route-health.ts";
import type { Charge, Run, OverloadCounters } from "./paid-request.ts";
import type { Config } from "../../shared/config/config.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import { refuse } from "../../shared/failure.ts";
import type { Refusal } from "../../shared/failure.ts";
import type { OverloadReason } from "../../shared/in-flight.ts";

/** Counts a request in the metrics, writes its log line and records the speed of its route. */
export function observeRun(c: Context<AppEnv>, run: Run, status: number): void {
  const config = c.get("config");
  const recorder = metricRecorderOf(config);
  const { env } = c; // Capturing `c` would keep the request in memory.
  const { health, times } = run.services;
  recorder.view = () => ({ series: routeGauges(health, now(env)), samples: times.takeSamples() });
  recorder.onSpeeds = (speeds) => times.setRegionSpeeds(speeds);
  countRunInMetrics(run, recorder.tally);
  recordSpeed(run);
  const dataPoint = env.ANALYTICS === undefined ? null : dataPointOf(run);
  if (dataPoint !== null) env.ANALYTICS?.writeDataPoint(dataPoint);
  if (status !== 401) flushMetricCounts(c); // Requests with revoked keys must not call Durable Objects.
  const failure = c.get("failure") ?? null;
  const isLogged = status >= 400 || failure !== null || config.logRequests === "all";
  if (!isLogged) return;
  const route = routePath(c);
  const { orgId } = run.caller;
  const isCounted = countInSummaryLine(
    config,
    { requestId: run.id, route, status, orgId, failure },
    now(env),
  );
  if (!isCounted) logRun(run, { route, status, failure });
}

export function countRunInMetrics(run: Run, tally: MetricCounts): void {
  const { outcome, charged, shortfall, isUnsaved, isBroken } = run.progress;
  if (isBroken) tally.count("bugs");
  if (outcome === null) return;
  if (outcome.kind === "void") {
    return tally.count("absorbed", { reason: toMetricLabel(outcome.reason) });
  }
  const { route, usage, estimated } = outcome;
  const { model, stream } = run.request;
  const { provider } = route.route;
  const series = cachedSeriesFor(model, provider)[stream ? "streamed" : "whole"];
  tally.observe(series.firstByte, route.firstByteMs / 1000);
  tally.observe(series.duration, (run.services.now() - run.startedMs) / 1000);
  tally.add(series.cost, charged);
  tally.add(series.attempts, route.attempts);
  tally.add(series.input, usage.input);
  tally.add(series.cacheRead, usage.cacheRead);
  tally.add(series.cacheWrite, usage.cacheWrite);
  tally.add(series.output, usage.output);
  tally.add(series.reasoning, usage.reasoning);
  if (shortfall > 0) tally.count("shortfall", {}, shortfall);
  if (estimated) tally.count("estimated", { provider });
  if (isUnsaved) tally.count("unsaved");
}

function recordSpeed({ caller, progress, request, services, startedMs }: Run): void {
  const { outcome, calledMs: askedMs } = progress;
  if (outcome?.kind !== "settle" || outcome.estimated) return;
  const { route, usage } = outcome;
  const { firstByteMs } = route;
  const streamMs = services.now() - startedMs - firstByteMs;
  const waitMs = firstByteMs - askedMs;
  const timing = request.stream
    ? { latencyMs: waitMs < 0 ? null : waitMs, streamMs }
    : { latencyMs: null, streamMs: waitMs };
  const at = { route: formatRouteName(route.route), orgId: caller.orgId };
  services.times.record(at, { ...timing, output: usage.output });
}

type RunSeries = ReturnType<typeof makeRunSeries>;
type SeriesByStreaming = { readonly streamed: RunSeries; readonly whole: RunSeries };
const seriesByModel = new WeakMap<Model, Map<string, SeriesByStreaming>>();

function cachedSeriesFor(model: Model, provider: string): SeriesByStreaming {
  const byProvider = seriesByModel.get(model) ?? new Map<string, SeriesByStreaming>();
  seriesByModel.set(model, byProvider);
  const known = byProvider.get(provider);
  if (known !== undefined) return known;
  const newSeries = {
    streamed: makeRunSeries(model, provider, true),
    whole: makeRunSeries(model, provider, false),
  };
  byProvider.set(provider, newSeries);
  return newSeries;
}

function makeRunSeries({ id: model, kind }: Model, provider: string, stream: boolean) {
  const labels = { kind, stream: String(stream) };
  const tokens = (type: string): string => counterSeriesName("tokens", { model, type });
  return {
    firstByte: histogramSeriesNames("firstByte", labels),
    duration: histogramSeriesNames("duration", labels),
    cost: counterSeriesName("cost", { model, provider }),
    attempts: counterSeriesName("attempts", { provider }),
    input: tokens("input"),
    cacheRead: tokens("cache_read"),
    cacheWrite: tokens("cache_write"),
    output: tokens("output"),
    reasoning: tokens("reasoning"),
  };
}

function routeGauges(health: RouteHealth, nowMs: number): MetricValues {
  const { name } = METRICS.routesLeftOut;
  const cooldowns = health.unavailableRoutes(nowMs);
  return Object.fromEntries(
    cooldowns.map(({ route, state }) => [metricSeriesName(name, { route, state }), 1]),
  );
}

function dataPointOf(run: Run): AnalyticsEngineDataPoint | null {
  const { outcome, charged } = run.progress;
  if (outcome?.kind !== "settle") return null;
  const { route, usage, estimated } = outcome;
  const { stream, model } = run.request;
  const { input, cacheRead, cacheWrite, output, reasoning } = usage;
  const tokens = [input, cacheRead, cacheWrite, output, reasoning];
  const times = [route.firstByteMs, run.services.now() - run.startedMs];
  return {
    indexes: [run.caller.orgId],
    blobs: [run.services.region, model.id, route.route.provider, model.kind, String(stream)],
    doubles: [charged, ...tokens, ...times, route.attempts, estimated ? 1 : 0],
  };
}

function logRun(
  run: Run,
  response: { readonly route: string; readonly status: number; readonly failure: string | null },
): void {
  const { outcome, charged } = run.progress;
  logEvent("request", {
    request_id: run.id,
    method: "POST",
    route: response.route,
    status: response.status,
    duration_ms: run.services.now() - run.startedMs,
    org_id: run.caller.orgId,
    key_id: run.caller.keyId,
    failure: response.failure,
    model: run.request.model.id,
    streamed: run.request.stream,
    ...(outcome?.kind === "settle" && chargeFields(outcome, charged)),
    ...(outcome?.kind === "void" && { not_charged: outcome.reason }),
  });
}

function chargeFields({ route, usage, estimated, finishReason }: Charge, charged: number) {
  return {
    provider: route.route.provider,
    upstream_id: route.route.upstreamId,
    attempts: route.attempts,
    first_byte_ms: route.firstByteMs,
    input_tokens: usage.input,
    cache_read_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    output_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    cost_micro: charged,
    estimated,
    finish_reason: finishReason,
  };
}

function toMetricLabel(reason: string): string {
  return reason.replaceAll(/[^a-z_]+/gi, "_").slice(0, 60);
}

/** Counts shed requests in a metric, and in at most one log line per second. */
class LoggedOverloadCounters implements OverloadCounters {
  readonly #config: Config;
  readonly #line = new SummaryLogLine("requests_shed");

  constructor(config: Config) {
    this.#config = config;
  }

  count(reason: OverloadReason, requestId: string, startedMs: number): void {
    metricRecorderOf(this.#config).tally.count("shed", { reason });
    this.#line.add(reason, startedMs, { last_request_id: requestId });
  }
}

export function getOverloadCounters(config: Config): OverloadCounters {
  return Isolate.of(config).get(makeOverloadCounters);
}

const makeOverloadCounters = (config: Config): OverloadCounters =>
  new LoggedOverloadCounters(config);

/** Rejects and counts a request because of overload. */
export function rejectOverloaded(c: Context<AppEnv>, reason: OverloadReason): Refusal {
  const { config, startedMs, requestId } = c.var;
  getOverloadCounters(config).count(reason, requestId, startedMs);
  c.set("logged", config.logRequests !== "all");
  return refuse({ kind: "overloaded" });
}
