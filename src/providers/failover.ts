import { refuse, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { attempt } from "./attempt.ts";
import type { AttemptOptions, AttemptRequest, Candidate } from "./attempt.ts";
import type { ProviderAnswer, ProviderFailure } from "./provider.ts";
import { DISABLED_MS } from "./route-health.ts";
import type { RouteHealth } from "./route-health.ts";

export type { Candidate } from "./attempt.ts";

/** Which candidate answered, after how many attempts in all. A stream starts with its first events. */
export type Served = {
  readonly index: number;
  readonly attempts: number;
  readonly answer: Exclude<ProviderAnswer, { kind: "failure" }>;
};

export type FailoverOptions = AttemptOptions & {
  /** One for each isolate. */
  readonly health: RouteHealth;
  readonly now: () => number;
  /** Told which candidate is asked next, at which attempt. */
  readonly onAttempt?: (index: number, attempts: number) => void;
  /** False once nobody waits for the answer any more: the attempt under way is the last. */
  readonly mayRetry?: () => boolean;
  /** The pause before the same route is asked again; 100 to 300 ms unless a test says otherwise. */
  readonly pauseMs?: () => number;
};

export const ATTEMPTS_MAX = 3;
const WAIT_MS_DEFAULT = 5_000;
const WAIT_SECONDS_MAX = 59;

/**
 * Asks the candidates in their order until one answers, before the first byte only and at most three
 * times in all. A refusal of the request itself is returned at once. When no route is left:
 * `upstream_overloaded` if the last failure said so, with the least wait over the routes, else
 * `upstream_error`; so too when `signal` ends it.
 */
export async function failover(
  candidates: readonly Candidate[],
  request: AttemptRequest,
  options: FailoverOptions,
): Promise<Result<Served>> {
  const { open, waits } = openRoutes(candidates, options);
  const queue = [...open];
  let last: ProviderFailure | null = null;
  for (const [position, route] of queue.entries()) {
    if (position === ATTEMPTS_MAX || isOver(position, options)) break;
    options.onAttempt?.(route.index, position + 1);
    // oxlint-disable-next-line no-await-in-loop -- a route is asked only after the one before failed
    const answer = await attempt(route.candidate, request, options);
    if (answer.kind !== "failure") {
      return success({ index: route.index, attempts: position + 1, answer });
    }
    last = answer.failure;
    if (last.kind === "refused") return refused(last);
    const wait = remember(route.candidate, last, options);
    if (wait !== null) waits.push(wait);
    const isLastRoute = position === open.length - 1;
    if (isLastRoute && last.again === true && position + 1 < ATTEMPTS_MAX) {
      // oxlint-disable-next-line no-await-in-loop -- the pause is the point
      await pause(options);
      queue.push(route);
    }
  }
  return noRouteLeft(last, waits);
}

/** Nobody waits for another attempt. */
function isOver(attemptsMade: number, options: FailoverOptions): boolean {
  return options.signal.aborted || (attemptsMade > 0 && options.mayRetry?.() === false);
}

type OpenRoute = { readonly index: number; readonly candidate: Candidate };

/**
 * The candidates that may be asked now, and how long (ms) the overloaded rest asked to be left alone.
 * A route that is the only one is asked although it said "later"; a disabled one never is.
 */
function openRoutes(
  candidates: readonly Candidate[],
  options: FailoverOptions,
): { readonly open: readonly OpenRoute[]; readonly waits: number[] } {
  const nowMs = options.now();
  const open: OpenRoute[] = [];
  const waits: number[] = [];
  for (const [index, candidate] of candidates.entries()) {
    const out = options.health.leftOut(routeName(candidate), nowMs);
    if (out === null || (out.why === "overloaded" && candidates.length === 1)) {
      open.push({ index, candidate });
    } else if (out.why === "overloaded") waits.push(out.untilMs - nowMs);
  }
  return { open, waits };
}

/** Keeps a failing route out for the requests after this one; its wait in ms if it is overloaded. */
function remember(
  candidate: Candidate,
  failure: ProviderFailure,
  options: FailoverOptions,
): number | null {
  const route = routeName(candidate);
  if (failure.kind === "disabled") {
    options.health.leaveOut(route, "disabled", DISABLED_MS, options.now());
  }
  if (failure.kind !== "overloaded") return null;
  options.health.leaveOut(route, "overloaded", failure.retryAfterMs ?? 0, options.now());
  return failure.retryAfterMs ?? WAIT_MS_DEFAULT;
}

function noRouteLeft(last: ProviderFailure | null, waits: readonly number[]): Refusal {
  const overloaded = last === null ? waits.length > 0 : last.kind === "overloaded";
  if (!overloaded) return refuse({ kind: "upstream_error" });
  const seconds = Math.ceil(Math.min(...waits) / 1000);
  return refuse({
    kind: "upstream_overloaded",
    retryAfterSeconds: Math.min(Math.max(1, seconds), WAIT_SECONDS_MAX),
  });
}

function refused(failure: ProviderFailure): Refusal {
  return refuse({
    kind: "invalid_request",
    message: failure.message ?? "The model provider refused this request.",
    param: failure.param ?? null,
    ...(typeof failure.code === "string" && { code: failure.code }),
  });
}

function routeName(candidate: Candidate): string {
  return `${candidate.provider.id} ${candidate.upstreamId}`;
}

/** 100 to 300 ms, or until the run ends. */
async function pause(options: FailoverOptions): Promise<void> {
  const ms = options.pauseMs?.() ?? 100 + Math.random() * 200;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", done);
      resolve();
    }
    options.signal.addEventListener("abort", done);
  });
}
