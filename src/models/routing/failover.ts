import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import { attemptRoute } from "./attempt.ts";
import type { AttemptOptions, AttemptRequest, AttemptCandidate } from "./attempt.ts";
import { isCausedByRequest } from "../core/provider.ts";
import type { ProviderResult, ProviderFailure, FailedUsage } from "../core/provider.ts";
import type { CooldownReason, RouteHealth } from "./route-health.ts";
import type { BreakerPermit } from "./breaker.ts";
import { isCooldownReason, formatRouteName } from "./route-health.ts";

const ATTEMPTS_MAX = 3;
const RETRY_WAIT_MS_MAX = 1_000;
const WAIT_MS_DEFAULT = 5_000;

type FailedAttempt = { readonly index: number; readonly why: string };

const NO_ATTEMPTS: readonly FailedAttempt[] = [];

type NextAttempt = { readonly index: number; readonly pauseMs: number };

type Skipped = { readonly index: number; readonly cooldown: CooldownReason };

/**
 * Chooses a request's next route. Skips routes in cooldown. If no other route is left, retries the
 * last route once after a connection reset, a 408, a 5xx or an overload of at most one second.
 */
class RouteSequence {
  attempts = 0;
  /**
   * The last failure, for the error response. A gateway fault, such as an invalid provider key,
   * doesn't replace an earlier failure.
   */
  failure: ProviderFailure | null = null;
  failed: readonly FailedAttempt[] = NO_ATTEMPTS;
  readonly #candidates: readonly AttemptCandidate[];
  readonly #health: RouteHealth;
  readonly #now: () => number;
  readonly #skipped: Skipped[] = [];
  readonly #attemptsOf = new Map<string | undefined, number>();
  #next = 0;
  #route = "";
  #index = 0;
  #permit: BreakerPermit = "free";
  #last: ProviderFailure | null = null;
  #isRepeat = false;
  #waitMs = Infinity;

  constructor(candidates: readonly AttemptCandidate[], health: RouteHealth, now: () => number) {
    this.#candidates = candidates;
    this.#health = health;
    this.#now = now;
  }

  /** Returns the next attempt, or null. The caller must report the previous result first. */
  next(): NextAttempt | null {
    for (; this.#next < this.#candidates.length; this.#next++) {
      const index = this.#next;
      if (this.#hasNoAttemptsLeft(index)) continue;
      const route = this.#nameOf(index);
      const pass = this.#health.requestPermit(route, this.#now());
      if (!isCooldownReason(pass)) {
        this.#next++;
        return this.#startAttempt(index, pass, 0);
      }
      this.#skip({ index, cooldown: pass });
    }
    return this.attempts === 0 ? this.#lastResort() : this.#retryLast();
  }

  recordSuccess(): void {
    this.#health.recordSuccess(this.#route, this.#permit, this.#now());
  }

  recordFailure(failure: ProviderFailure): void {
    this.failed = [...this.failed, { index: this.#index, why: getFailureLogReason(failure) }];
    this.#health.recordFailure(this.#route, this.#permit, failure, this.#now());
    this.#last = failure;
    if (failure.kind !== "disabled" || this.failure === null) this.failure = failure;
    if (failure.kind === "overloaded") this.#noteWait(failure.retryAfterMs ?? WAIT_MS_DEFAULT);
  }

  /** Skips the model that rejected the request. Returns false if no model follows. */
  skipModel(): boolean {
    const model = this.#candidates[this.#index]?.model;
    this.#attemptsOf.set(model, ATTEMPTS_MAX);
    return this.#candidates.some((one, index) => index >= this.#next && one.model !== model);
  }

  releasePermit(): void {
    this.#health.releasePermit(this.#route, this.#permit);
  }

  skippedExcept(called: readonly number[]): readonly number[] {
    return this.#skipped.map(({ index }) => index).filter((index) => !called.includes(index));
  }

  get waitMs(): number | null {
    return this.#waitMs === Infinity ? null : this.#waitMs;
  }

  #startAttempt(index: number, pass: BreakerPermit, pauseMs: number): NextAttempt {
    this.attempts++;
    const model = this.#candidates[index]?.model;
    this.#attemptsOf.set(model, (this.#attemptsOf.get(model) ?? 0) + 1);
    this.#index = index;
    this.#route = this.#nameOf(index);
    this.#permit = pass;
    return { index, pauseMs };
  }

  #skip(skipped: Skipped): void {
    this.#skipped.push(skipped);
    const { why, untilMs } = skipped.cooldown;
    if (why !== "disabled") this.#noteWait(Math.max(0, untilMs - this.#now()));
  }

  /**
   * Returns the route in cooldown with the breaker that closes first. If no breaker is open,
   * returns the only route that isn't disabled.
   */
  #lastResort(): NextAttempt | null {
    const usable = this.#skipped.filter(({ cooldown }) => cooldown.why !== "disabled");
    const guessed = usable.filter(({ cooldown }) => cooldown.why === "open");
    const [first] = guessed.toSorted((a, b) => a.cooldown.untilMs - b.cooldown.untilMs);
    const only = usable.length === 1 ? usable[0] : undefined;
    const chosen = first ?? only;
    return chosen === undefined ? null : this.#startAttempt(chosen.index, "forced", 0);
  }

  #retryLast(): NextAttempt | null {
    const last = this.#last;
    if (this.#isRepeat || last === null || this.#hasNoAttemptsLeft(this.#index)) return null;
    this.#isRepeat = true;
    const waitMs = last.retryAfterMs ?? Infinity;
    if (last.kind === "overloaded" && waitMs <= RETRY_WAIT_MS_MAX) {
      return this.#startAttempt(this.#index, "forced", waitMs);
    }
    // If the failure has opened the breaker, the route isn't retried.
    if (last.again !== true) return null;
    if (this.#health.requestPermit(this.#route, this.#now()) !== "free") return null;
    return this.#startAttempt(this.#index, "free", 100 + Math.random() * 200);
  }

  #hasNoAttemptsLeft(index: number): boolean {
    return (this.#attemptsOf.get(this.#candidates[index]?.model) ?? 0) >= ATTEMPTS_MAX;
  }

  #noteWait(ms: number): void {
    this.#waitMs = Math.min(this.#waitMs, ms);
  }

  #nameOf(index: number): string {
    const candidate = this.#candidates[index];
    return candidate === undefined
      ? ""
      : formatRouteName(candidate.provider.id, candidate.upstreamId);
  }
}

/**
 * Returns the reason for the log. `unavailable` means that the provider rejects our key or model
 * name.
 */
export function getFailureLogReason({ kind, reason }: ProviderFailure): string {
  if (kind === "disabled") return "unavailable";
  return kind === "overloaded" ? kind : reason;
}

export type FailoverResult = {
  readonly index: number;
  readonly attempts: number;
  readonly failed: readonly FailedAttempt[];
  readonly skipped: readonly number[];
  readonly dropped: readonly string[];
  readonly answer: Exclude<ProviderResult, { kind: "failure" }>;
};

export type AttemptedRoute = Pick<FailoverResult, "index" | "attempts" | "failed">;

export type FailoverOptions = Omit<AttemptOptions, "onDispatch" | "onDropped"> & {
  readonly health: RouteHealth;
  readonly now: () => number;
  /**
   * Called with null before each attempt. Called with the route once its provider has received the
   * request.
   */
  readonly onAsked?: (route: AttemptedRoute | null) => void;
  readonly onFailed?: (route: AttemptedRoute, failure: ProviderFailure) => void;
  /**
   * Called after an attempt that failed because of the request. If no route succeeds, the client
   * pays for this attempt's usage.
   */
  readonly onSpent?: (route: AttemptedRoute, spent: FailedUsage) => void;
  readonly onSkipped?: (skipped: FailoverResult["skipped"]) => void;
  /** Whether to skip routes that would drop fields of the request (`require_parameters`). */
  readonly refusesDrops?: boolean;
  /** Returns false once the client has disconnected. Then no further attempt starts. */
  readonly mayRetry?: () => boolean;
  readonly pauseMs?: (ms: number) => number;
};

const WAIT_SECONDS_MAX = 59;

/**
 * Calls the candidates in order until one responds, at most three times per model. After a
 * `refused` failure, tries only other models. If no route is left, the last failure decides the
 * error.
 */
export async function failover(
  candidates: readonly AttemptCandidate[],
  request: AttemptRequest,
  options: FailoverOptions,
): Promise<Result<FailoverResult>> {
  const order = new RouteSequence(candidates, options.health, options.now);
  const result = await callInOrder(order, candidates, request, options);
  if (!result.ok) options.onSkipped?.(order.skippedExcept(order.failed.map(({ index }) => index)));
  return result;
}

async function callInOrder(
  order: RouteSequence,
  candidates: readonly AttemptCandidate[],
  request: AttemptRequest,
  options: FailoverOptions,
): Promise<Result<FailoverResult>> {
  for (;;) {
    const turn = mustStop(order, options) ? null : order.next();
    const candidate = turn === null ? undefined : candidates[turn.index];
    if (turn === null || candidate === undefined) return noRouteLeft(order, options);
    options.onAsked?.(null);
    if (turn.pauseMs > 0 && !(await pauseBeforeAttempt(turn.pauseMs, options))) {
      order.releasePermit();
      return noRouteLeft(order, options);
    }
    const requested = { index: turn.index, attempts: order.attempts, failed: order.failed };
    let dropped: readonly string[] = [];
    const onDispatch = (): void => {
      if (options.refusesDrops === true && dropped.length > 0) throw new UnsupportedFields();
      options.onAsked?.(requested);
    };
    const onDropped = (fields: readonly string[]): void => {
      dropped = fields;
    };
    const answer = await runAttempt(order, () =>
      attemptRoute(candidate, request, { ...options, onDispatch, onDropped }),
    );
    if (answer.kind !== "failure") {
      order.recordSuccess();
      return success({ ...requested, skipped: order.skippedExcept([turn.index]), dropped, answer });
    }
    reportFailure(order, requested, answer.failure, options);
    const final = finalFailure(order, answer.failure);
    if (final !== null) return refuse(final);
  }
}

function finalFailure(order: RouteSequence, failure: ProviderFailure): Failure | null {
  if (failure.kind === "shed") return { kind: "overloaded" };
  return failure.kind === "refused" && !order.skipModel() ? toClientFailure(failure) : null;
}

function reportFailure(
  order: RouteSequence,
  route: AttemptedRoute,
  failure: ProviderFailure,
  { onFailed, onSpent, signal }: FailoverOptions,
): void {
  onFailed?.(route, failure);
  if (failure.spent !== undefined && isCausedByRequest(failure)) onSpent?.(route, failure.spent);
  if (signal.aborted || failure.kind === "shed") order.releasePermit();
  else order.recordFailure(failure);
}

/**
 * Runs an attempt. An exception is our bug, so it releases a probe but doesn't count against the
 * route.
 */
async function runAttempt(
  order: RouteSequence,
  call: () => Promise<ProviderResult>,
): Promise<ProviderResult> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof UnsupportedFields) return { kind: "failure", failure: UNSUPPORTED_FIELDS };
    order.releasePermit();
    throw error;
  }
}

class UnsupportedFields extends Error {}

const UNSUPPORTED_FIELDS: ProviderFailure = {
  kind: "retry",
  reason: "unsupported_parameters",
  fault: "request",
};

function mustStop({ attempts }: RouteSequence, options: FailoverOptions): boolean {
  return options.signal.aborted || (attempts > 0 && options.mayRetry?.() === false);
}

function noRouteLeft({ failure, waitMs }: RouteSequence, { signal }: FailoverOptions): Refusal {
  if (failure === UNSUPPORTED_FIELDS) {
    const message = "No provider of this model supports all parameters of this request.";
    return invalid(message, "provider.require_parameters");
  }
  if (failure?.kind === "refused") return refuse(toClientFailure(failure));
  const overloaded = failure === null || failure.kind === "overloaded";
  if (!overloaded || waitMs === null || signal.aborted) return refuse({ kind: "upstream_error" });
  return refuse(overloadedFailure(waitMs));
}

function overloadedFailure(waitMs: number): Failure {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return { kind: "upstream_overloaded", retryAfterSeconds: Math.min(seconds, WAIT_SECONDS_MAX) };
}

/**
 * Returns the failure for the client. Includes the provider's cleaned message if the client can
 * correct the request.
 */
export function toClientFailure(failure: ProviderFailure): Failure {
  if (failure.kind === "overloaded") return overloadedFailure(failure.retryAfterMs ?? 0);
  if (failure.kind !== "refused") return { kind: "upstream_error" };
  return {
    kind: "invalid_request",
    message: failure.message ?? "The model's provider rejected this request.",
    param: failure.param ?? null,
    ...(typeof failure.code === "string" && { code: failure.code }),
    ...(failure.tooLarge === true && { isTooLarge: true }),
  };
}

async function pauseBeforeAttempt(ms: number, options: FailoverOptions): Promise<boolean> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, options.pauseMs?.(ms) ?? ms);
    function done(): void {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", done);
      resolve();
    }
    options.signal.addEventListener("abort", done);
  });
  return !options.signal.aborted && options.mayRetry?.() !== false;
}
