import type { Context, Next } from "hono";
import { routePath } from "hono/route";
import type { AppEnv } from "../../shared/http/context.ts";
import { errorDocsAnchorOf, errorResponseOf } from "../../shared/http/failure-mapping.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import type { Config } from "../../shared/config/config.ts";
import { HOUR_MS, elapsedMs, now } from "../../shared/clock.ts";
import {
  COUNTS_PER_FAILURE_BATCH_MAX,
  REQUESTS_PER_FAILURE_BATCH_MAX,
  ERROR_MESSAGE_CHARACTERS_MAX,
  REPORTED_ATTEMPTS_MAX,
} from "../../shared/failed-request.ts";
import type {
  FailureBatch,
  FailedRequest,
  HourlyFailureCount,
  ReportedError,
} from "../../shared/failed-request.ts";
import type { Failure } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { withTimeout } from "../../shared/timers.ts";
import { callPeer } from "../../regions/peer-call.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import type { Run } from "./paid-request.ts";
import { listSkippedRoutes } from "./model-options.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import type { Region } from "../../shared/regions.ts";

type ReportTarget = { readonly orgId: string; readonly home: Region };
type SendReport = (to: ReportTarget, batch: FailureBatch) => Promise<unknown>;

const ORGANIZATIONS_MAX = 500;
const REPORT_TIMEOUT_MS = 5000;
const WAIT_UNTIL_MS_MAX = 30_000;

type UnsentReport = {
  readonly to: ReportTarget;
  readonly requests: FailedRequest[];
  readonly counts: Map<string, HourlyFailureCount>;
};

/**
 * This isolate's unreported failed requests. Stores the newest requests in full, and a limited
 * number of hourly counts. Reports them per organization, after `delayMs` or before a client reads
 * its requests or errors.
 */
class FailedRequests {
  readonly #delayMs: number;
  readonly #reports = new Map<string, UnsentReport>();
  #scheduledMs = -Infinity;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  record(to: ReportTarget, request: FailedRequest): void {
    const known = this.#reports.get(to.orgId);
    if (known === undefined && this.#reports.size >= ORGANIZATIONS_MAX) return;
    const report: UnsentReport = known ?? { to, requests: [], counts: new Map() };
    this.#reports.set(to.orgId, report);
    report.requests.push(request);
    if (report.requests.length > REQUESTS_PER_FAILURE_BATCH_MAX) report.requests.shift();
    const { id: lastId, at: lastAt, keyId, error } = request;
    const hour = lastAt - (lastAt % HOUR_MS);
    const name = `${hour} ${keyId} ${error.code} ${error.status}`;
    const before = report.counts.get(name)?.count ?? 0;
    if (before === 0 && report.counts.size >= COUNTS_PER_FAILURE_BATCH_MAX) return;
    const { code, status } = error;
    report.counts.set(name, { hour, keyId, code, status, count: before + 1, lastAt, lastId });
  }

  scheduleReport(waitUntil: (work: Promise<unknown>) => void, send: SendReport): void {
    if (this.#reports.size === 0) return;
    if (Math.abs(elapsedMs() - this.#scheduledMs) <= this.#delayMs + WAIT_UNTIL_MS_MAX) return;
    this.#scheduledMs = elapsedMs();
    waitUntil(this.#reportAfterDelay(send));
  }

  async #reportAfterDelay(send: SendReport): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#scheduledMs = -Infinity;
    await Promise.all([...this.#reports.keys()].map((orgId) => this.reportNow(orgId, send)));
  }

  /**
   * Immediately reports an organization's failed requests. Doesn't await another request's report,
   * because a Worker can't await another request's promises.
   */
  async reportNow(orgId: string, send: SendReport): Promise<void> {
    const report = this.#reports.get(orgId);
    this.#reports.delete(orgId);
    if (report !== undefined) await sendReportOnce(report, send);
  }
}

async function sendReportOnce(
  { to, requests, counts }: UnsentReport,
  send: SendReport,
): Promise<void> {
  try {
    await withTimeout(send(to, { requests, counts: [...counts.values()] }), REPORT_TIMEOUT_MS);
  } catch (error) {
    // No retry: the wallet may have recorded the batch, and counts must never double.
    const reason = errorMessageOf(error);
    logWarning("failures_not_taken", { org_id: to.orgId, requests: requests.length, reason });
  }
}

const makeFailedRequests = ({ numbers }: Config): FailedRequests =>
  new FailedRequests(numbers.METRICS_DELAY_MS);

/** The facts to record if the request fails. */
export type RequestSummary = {
  readonly model: string | null;
  readonly externalId: string | null;
  readonly streamed: boolean;
};

type FailedRun = Pick<Run, "caller" | "progress" | "request" | "startedMs" | "timer">;

const MODEL_NAME = /^[\w.:/@-]{1,128}$/;

export function summarizeRequest({ request, user, reply }: ParsedRequest): RequestSummary {
  const { model } = request.body;
  const streamed = reply.kind === "stream";
  return { model: MODEL_NAME.test(model) ? model : null, externalId: user, streamed };
}

export function recordFailedRequest(
  c: Context<AppEnv>,
  summary: RequestSummary | null,
  run: FailedRun | null,
): void {
  const error = errorOf(c, run);
  const caller = run?.caller ?? c.get("admitted")?.caller ?? c.get("met");
  if (error === null || caller === undefined) return;
  const { config, requestId: id, startedMs: at } = c.var;
  const failedRequests = Isolate.of(config).get(makeFailedRequests);
  const { orgId, home, keyId } = caller;
  const commonFields = { id, at, keyId, door: routePath(c), durationMs: now(c.env) - at, error };
  const { model: askedModel, externalId, streamed } = summary ?? NO_SUMMARY;
  const summaryFields = { askedModel, model: askedModel, externalId, streamed, clientLeftMs: null };
  failedRequests.record(
    { orgId, home },
    { ...commonFields, attempts: [], ...summaryFields, ...runFields(run) },
  );
  failedRequests.scheduleReport((work) => c.executionCtx.waitUntil(work), makeSender(c));
}

const NO_SUMMARY = { model: null, externalId: null, streamed: null };

function runFields(run: FailedRun | null) {
  if (run === null) return {};
  const { disconnectedAtMs } = run.timer;
  return {
    model: run.request.model.id,
    attempts: run.progress.attempts.slice(-REPORTED_ATTEMPTS_MAX),
    ...listSkippedRoutes(run),
    clientLeftMs: disconnectedAtMs === null ? null : disconnectedAtMs - run.startedMs,
  };
}

function errorOf(c: Context<AppEnv>, run: FailedRun | null): ReportedError | null {
  const inStream = run?.progress.reportedFailure ?? null;
  const failure = inStream ?? c.get("failed") ?? null;
  if (run !== null && run.timer.disconnectedAtMs !== null) return CLIENT_DISCONNECTED;
  if (failure === null) return null;
  const wasProviderCalled = run !== null && run.progress.attempts.length > 0;
  return toReportedError(failure, { isStream: inStream !== null, wasProviderCalled });
}

const CLIENT_DISCONNECTED: ReportedError = {
  code: "client_left",
  message: "The client disconnected before the response was complete.",
  status: 499,
  param: null,
};

function toReportedError(
  failure: Failure,
  {
    isStream,
    wasProviderCalled,
  }: { readonly isStream: boolean; readonly wasProviderCalled: boolean },
): ReportedError {
  const {
    status,
    message,
    param = null,
  } = errorResponseOf(redactFailure(failure, wasProviderCalled));
  return {
    code: errorDocsAnchorOf(failure),
    message: message.slice(0, ERROR_MESSAGE_CHARACTERS_MAX),
    status: isStream ? 200 : status,
    param: param?.slice(0, 100) ?? null,
  };
}

const PROVIDER_REJECTION = "The model's provider rejected this request.";

function redactFailure(failure: Failure, wasProviderCalled: boolean): Failure {
  if (failure.kind === "invalid_request" && wasProviderCalled) {
    return { ...failure, message: PROVIDER_REJECTION };
  }
  const hasModelName = failure.kind === "model_not_found" || failure.kind === "model_not_allowed";
  return hasModelName && !MODEL_NAME.test(failure.model) ? { ...failure, model: "..." } : failure;
}

const FLUSH_WAIT_MS_MAX = 1000;

/** Middleware that reports failed requests before an endpoint reads them. */
export async function flushFailedRequests(c: Context<AppEnv>, next: Next): Promise<void> {
  const failedRequests = Isolate.of(c.var.config).get(makeFailedRequests);
  const report = failedRequests.reportNow(c.var.admitted.caller.orgId, makeSender(c));
  // A slow or failed report must not block the request.
  await withTimeout(report, FLUSH_WAIT_MS_MAX, c.var.timers.after).catch(() => undefined);
  await next();
}

function makeSender(c: Context<AppEnv>): SendReport {
  const { config, requestId } = c.var;
  const { env } = c; // Capturing `c` would keep the request in memory.
  return async ({ orgId, home }: ReportTarget, batch: FailureBatch) => {
    if (home === config.region) {
      return objectsOf(env).wallet(orgId).noteFailed(batch);
    }
    const peer = config.peers.find(({ region }) => region === home);
    if (peer === undefined) return null;
    const at = { requestId, now: () => now(env), attempts: 1 };
    return callPeer(peer, "failures", { org_id: orgId, batch }, at);
  };
}
