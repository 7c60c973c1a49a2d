import type { Failure, Result } from "../../shared/failure.ts";
import { refuse } from "../../shared/failure.ts";
import { CONCURRENT_PROVIDER_CALLS_MAX } from "../core/separate-prompts.ts";
import type { ProviderFailure, FailedUsage } from "../core/provider.ts";
import { failover, getFailureLogReason } from "../routing/failover.ts";
import type { AttemptedRoute, FailoverOptions, FailoverResult } from "../routing/failover.ts";
import { TIMEOUT_FAILURE_REASON } from "../routing/attempt.ts";
import { formatRouteName } from "../routing/route-health.ts";
import type {
  FailedAttempt,
  SkippedRoute,
  UnfinishedProviderCallReason,
} from "../../shared/generation.ts";
import { withClientParam } from "./bound-request.ts";
import { applyModelOption } from "./model-options.ts";
import {
  EXCEPTION_OUTCOME,
  computeCharge,
  computeChargeWithoutResponse,
  recordOpenCall,
  addChargeToFailure,
} from "./charge.ts";
import { NO_PART_RULES } from "../core/prompt-size.ts";
import type { Route } from "../catalog/model.ts";
import type {
  Charge,
  EndedResponse,
  Outcome,
  PaidRoute,
  Run,
  ServingRoute,
} from "./paid-request.ts";
import { isSlowCallKind } from "../../shared/kinds.ts";
import { logWarning } from "../../shared/log.ts";
import { computeCost } from "../../shared/cost.ts";

const SLOW_MS_PER_TOKEN = 50;
const JSON_TIMEOUT_MS_MAX = 600_000;

type PaidResult = FailoverResult<PaidRoute>;

type CallResult =
  | { readonly ok: true; readonly route: ServingRoute; readonly answer: PaidResult["answer"] }
  | { readonly ok: false; readonly ended: EndedResponse };

/** Calls routes until one responds. If none responds, ends the run. */
export async function callRoutes(run: Run, routes: readonly PaidRoute[]): Promise<CallResult> {
  if (run.timer.clientGone) {
    return {
      ok: false,
      ended: refuseAndRelease(run, { kind: "internal" }, "client left before dispatch"),
    };
  }
  const last: LastCall = { tried: null, spent: null, lost: null };
  recordOpenCall(run, {
    outcomeIfAborted: () => chargeForLastCall(run, last) ?? EXCEPTION_OUTCOME,
    close: () => Promise.resolve(),
  });
  const servedCall = await callWithFailover(run, routes, {
    onAsked: (attempted) => {
      run.progress.calledMs = run.services.now() - run.startedMs;
      last.tried = attempted === null ? null : toCalledRoute(routes, attempted);
      applyModelOption(run.request, last.tried?.option);
    },
    onSpent: (attempted, spent) => {
      last.spent = { tried: toCalledRoute(routes, attempted), spent };
    },
    onFailed: ({ candidate: { route }, attempts }, failure) => {
      const { tried } = last;
      const lost = tried === null ? null : billOfFailure(run, tried, failure);
      last.lost = lost ?? last.lost;
      reportFailedAttempt(run, { route, attempts, lost }, failure);
      // The client pays for an earlier call, so we absorb this call's bill.
      if (last.spent !== null && lost !== null) recordUnfinishedCall(run, route, lost);
    },
  });
  if (!servedCall.ok) {
    const { failure } = withClientParam(servedCall, run.request);
    return { ok: false, ended: endWithoutResponse(run, run.timer.halted ?? failure, last) };
  }
  dropBody(run);
  const { answer, dropped, skipped } = servedCall.value;
  recordSkipped(run, skipped);
  const firstByteMs = run.services.now() - run.startedMs;
  const route = { ...toCalledRoute(routes, servedCall.value), dropped, firstByteMs };
  return { ok: true, route, answer };
}

function recordSkipped({ progress }: Run, skipped: readonly PaidRoute[]): void {
  const skippedRoutes = skipped.map(({ route }): SkippedRoute => {
    return { route: formatRouteName(route), why: "cooldown" };
  });
  progress.skipped = [...progress.skipped, ...skippedRoutes];
}

/** The last called route. A client that disconnects pays for this route's call. */
type CalledRoute = Omit<ServingRoute, "firstByteMs" | "dropped">;

type SpentCall = { readonly tried: CalledRoute; readonly spent: FailedUsage };

/** The last provider call. `lost` is the provider's bill for the last failed call. */
type LastCall = { tried: CalledRoute | null; spent: SpentCall | null; lost: Charge | null };

function toCalledRoute(
  routes: readonly PaidRoute[],
  { candidate, attempts, failed }: AttemptedRoute<PaidRoute>,
): CalledRoute {
  const { route, cap, capLoweredByMoney, native, option } = candidate;
  return {
    route,
    cap,
    capLoweredByMoney,
    isNative: native !== undefined,
    attempts,
    option,
    isFallback: candidate !== routes[0] && option === routes[0]?.option,
    ...(failed.length > 0 && {
      failed: failed.map((one) => ({ route: formatRouteName(one.candidate.route), why: one.why })),
    }),
  };
}

async function callWithFailover(
  run: Run,
  routes: readonly PaidRoute[],
  events: Required<Pick<FailoverOptions<PaidRoute>, "onAsked" | "onSpent" | "onFailed">>,
): Promise<Result<PaidResult>> {
  const { core, stream, user } = run.request;
  if (routes.length === 0 || core === null) return refuse({ kind: "upstream_error" });
  const customer = { orgId: run.caller.orgId, user };
  const { health, now, numbers } = run.services;
  return failover(
    routes,
    {
      ...core,
      stream,
      customer,
      paceMs: numbers.STREAM_PACE_MS,
      room: (bytes) => (run.slot?.grow(bytes) ?? null) === null,
    },
    {
      health,
      now,
      signal: run.timer.signal,
      ...timeoutsFor(run, routes),
      after: run.timers.after,
      ...events,
      onSkipped: (skipped) => recordSkipped(run, skipped),
      refusesDrops: run.request.choice?.preferences.requiresParameters === true,
      mayRetry: () => !run.timer.clientGone,
    },
  );
}

/**
 * Returns the timeouts of provider calls. Streams of images and audio get longer timeouts, because
 * an image takes minutes and a retry would be billed again.
 */
function timeoutsFor(run: Run, routes: readonly PaidRoute[]) {
  const { core, stream, reply } = run.request;
  const { UPSTREAM_HEADERS_MS, UPSTREAM_FIRST_MS, KEEP_ALIVE_MS } = run.services.numbers;
  if (stream && core?.kind !== "chat") {
    const longMs = JSON_TIMEOUT_MS_MAX;
    const hasNoKeepAlive = reply.kind === "stream" && reply.contentType !== undefined;
    return {
      headersMs: longMs,
      firstMs: longMs,
      ...(!hasNoKeepAlive && { quietMs: KEEP_ALIVE_MS }),
    };
  }
  const headersMs = stream ? UPSTREAM_HEADERS_MS : jsonTimeoutMs(run, routes);
  return { headersMs, firstMs: UPSTREAM_FIRST_MS, quietMs: KEEP_ALIVE_MS };
}

function dropBody({ request, slot, bodyBytes }: Run): void {
  const { native } = request;
  request.core = null;
  request.native = native === null ? null : { ...native, body: {}, weights: NO_PART_RULES };
  slot?.dropBody(request.keep === null ? 0 : bodyBytes);
}

/**
 * Returns a JSON response's timeout in ms: the time to generate all tokens slowly, at most ten
 * minutes. Slow kinds such as transcription get ten minutes.
 */
function jsonTimeoutMs(run: Run, routes: readonly PaidRoute[]): number {
  const { UPSTREAM_HEADERS_MS } = run.services.numbers;
  const { core } = run.request;
  const prompts = core?.kind === "chat" && core.apart ? core.body.messages.length : 1;
  const rounds = Math.ceil(prompts / CONCURRENT_PROVIDER_CALLS_MAX);
  const tokens = Math.max(0, ...routes.map(({ cap }) => cap ?? 0)) * rounds;
  const paceMs = isSlowCallKind(core?.kind) ? Infinity : tokens * SLOW_MS_PER_TOKEN;
  return Math.max(UPSTREAM_HEADERS_MS, Math.min(JSON_TIMEOUT_MS_MAX, paceMs));
}

/**
 * Returns the outcome of a request without a response. A disconnected client pays for the input and
 * an estimate of the output. If the request caused failures, the client pays for the last failed
 * attempt. We absorb the bills of the other attempts.
 */
function endWithoutResponse(run: Run, failure: Failure, last: LastCall): EndedResponse {
  const { reason } = run.timer;
  const mustPay = last.spent !== null || reason === "drained" || reason === "halted";
  const outcome = mustPay ? chargeForLastCall(run, last) : null;
  if (outcome !== null) return endWithFailure(run, failure, outcome);
  const { lost } = last;
  if (lost === null) return refuseAndRelease(run, failure, failure.kind);
  applyModelOption(run.request, lost.route.option);
  return endWithFailure(run, failure, { kind: "void", reason: failure.kind, lost });
}

function chargeForLastCall(run: Run, { tried, spent }: LastCall): Outcome | null {
  if (spent === null) return tried === null ? null : computeChargeWithoutResponse(run, tried);
  applyModelOption(run.request, spent.tried.option);
  return spentCharge(run, spent);
}

/** Returns the provider's bill for a failed call that timed out or reported usage, else null. */
function billOfFailure(
  run: Run,
  tried: CalledRoute,
  { reason, spent }: ProviderFailure,
): Charge | null {
  if (reason === TIMEOUT_FAILURE_REASON) return computeChargeWithoutResponse(run, tried);
  const outcome = spent === undefined ? null : spentCharge(run, { tried, spent });
  return outcome?.kind === "settle" ? outcome : null;
}

function spentCharge(run: Run, { tried, spent }: SpentCall): Outcome {
  const route = { ...tried, dropped: [], firstByteMs: run.services.now() - run.startedMs };
  const output = { ...spent, finishReason: null };
  return computeCharge(run, route, output, { ending: "provoked", hasClientStoppedReading: false });
}

/** Voids the hold before sending the error, so that an immediate retry can use the credits. */
function refuseAndRelease(run: Run, failure: Failure, reason: string): EndedResponse {
  return endWithFailure(run, failure, { kind: "void", reason });
}

function endWithFailure(run: Run, failure: Failure, outcome: Outcome): EndedResponse {
  return {
    outcome,
    sendRest: () => {
      run.respond(addChargeToFailure(run, failure, outcome));
      return Promise.resolve(outcome.kind === "settle");
    },
  };
}

const LOGGED_STATUSES: ReadonlySet<string> = new Set(
  "400 401 402 403 404 408 409 413 415 422 424 429 498 499 500 501 502 503 504 520 521 522 523 524 525 526 529 530".split(
    " ",
  ),
);

/**
 * Logs and counts a failed attempt. Ignores failures after a disconnect. A lack of memory counts as
 * load shedding.
 */
export function reportFailedAttempt(
  run: Run,
  {
    route,
    attempts,
    lost = null,
  }: Pick<ServingRoute, "route" | "attempts"> & { readonly lost?: Charge | null },
  failure: ProviderFailure,
): void {
  if (failure.kind === "shed") return run.services.sheds.count("bytes", run.id, run.startedMs);
  if (unfinishedReason(run) !== null) return;
  const { provider, upstreamId } = route;
  const { status, reason } = logFieldsOf(failure);
  const hasStatus = failure.kind !== "disabled" && /^\d+$/.test(status);
  const attempt = { route: formatRouteName(route), why: getFailureLogReason(failure) };
  addAttempt(run, { ...attempt, ...(hasStatus && { status: Number(status) }) }, lost);
  run.services.tally.count("failedAttempts", { provider, status, reason });
  logWarning("attempt_failed", {
    request_id: run.id,
    provider,
    upstream_id: upstreamId,
    attempt: attempts,
    kind: failure.kind,
    status,
    reason,
  });
}

function recordUnfinishedCall(run: Run, route: Route, lost: Charge): void {
  const why = unfinishedReason(run);
  if (why !== null) addAttempt(run, { route: formatRouteName(route), why }, lost);
}

function unfinishedReason({ timer }: Run): UnfinishedProviderCallReason | null {
  if (timer.clientGone) return "left";
  return timer.halted === null ? null : "stopped";
}

function purchaseCost({ bought, usage }: Charge): number | null {
  return bought === undefined ? null : computeCost(bought, usage);
}

function addAttempt(
  { progress, request, services, startedMs }: Run,
  attempt: Pick<FailedAttempt, "route" | "why" | "status">,
  lost: Charge | null,
): void {
  const timedAttempt = {
    ...attempt,
    startedMs: progress.calledMs,
    endedMs: services.now() - startedMs,
    ...(lost !== null && { lost: { model: request.model.id, cost: purchaseCost(lost) } }),
  };
  progress.attempts = [...progress.attempts, timedAttempt];
}

function logFieldsOf({ kind, reason }: Pick<ProviderFailure, "kind" | "reason">): {
  readonly status: string;
  readonly reason: string;
} {
  const [, word = "", status = ""] = /^([a-z_]{0,40}?)_?(\d{3})?$/.exec(reason) ?? [];
  return { status: statusLabel(status), reason: word || kind };
}

function statusLabel(status: string): string {
  if (status === "") return "none";
  return LOGGED_STATUSES.has(status) ? status : `${status.slice(0, 1)}xx`;
}
