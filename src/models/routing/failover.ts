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

type FailedAttempt<C> = { readonly candidate: C; readonly why: string };

/** An attempt that may start. Its result must be reported with its permit. */
type NextAttempt<C> = {
  readonly candidate: C;
  readonly route: string;
  readonly permit: BreakerPermit;
  readonly pauseMs: number;
};

type Skipped<C> = { readonly candidate: C; readonly cooldown: CooldownReason };

/**
 * Chooses a request's next route. Skips routes in cooldown. If no other route is left, retries the
 * last route once after a connection reset, a 408, a 5xx or an overload of at most one second.
 */
class RouteSequence<C extends AttemptCandidate> {
  attempts = 0;
  /**
   * The last failure, for the error response. A gateway fault, such as an invalid provider key,
   * doesn't replace an earlier failure.
   */
  failure: ProviderFailure | null = null;
  failed: readonly FailedAttempt<C>[] = [];
  readonly #candidates: readonly C[];
  readonly #health: RouteHealth;
  readonly #now: () => number;
  readonly #skipped: Skipped<C>[] = [];
  readonly #attemptsOf = new Map<string | undefined, number>();
  #next = 0;
  #last: { readonly candidate: C; readonly failure: ProviderFailure } | null = null;
  #isRepeat = false;
  #waitMs = Infinity;

  constructor(candidates: readonly C[], health: RouteHealth, now: () => number) {
    this.#candidates = candidates;
    this.#health = health;
    this.#now = now;
  }

  /** Returns the next attempt, or null. The caller must report the previous result first. */
  next(): NextAttempt<C> | null {
    for (const candidate of this.#candidates.slice(this.#next)) {
      this.#next++;
      if (this.#hasNoAttemptsLeft(candidate)) continue;
      const permit = this.#health.requestPermit(nameOf(candidate), this.#now());
      if (!isCooldownReason(permit)) return this.#startAttempt(candidate, permit, 0);
      this.#skip({ candidate, cooldown: permit });
    }
    return this.attempts === 0 ? this.#lastResort() : this.#retryLast();
  }

  recordSuccess({ route, permit }: NextAttempt<C>): void {
    this.#health.recordSuccess(route, permit, this.#now());
  }

  recordFailure({ candidate, route, permit }: NextAttempt<C>, failure: ProviderFailure): void {
    this.failed = [...this.failed, { candidate, why: getFailureLogReason(failure) }];
    this.#health.recordFailure(route, permit, failure, this.#now());
    this.#last = { candidate, failure };
    if (failure.kind !== "disabled" || this.failure === null) this.failure = failure;
    if (failure.kind === "overloaded") this.#noteWait(failure.retryAfterMs ?? WAIT_MS_DEFAULT);
  }

  /** Skips the model that rejected the request. Returns false if no model follows. */
  skipModel({ candidate: { model } }: NextAttempt<C>): boolean {
    this.#attemptsOf.set(model, ATTEMPTS_MAX);
    return this.#candidates.slice(this.#next).some((one) => one.model !== model);
  }

  releasePermit({ route, permit }: NextAttempt<C>): void {
    this.#health.releasePermit(route, permit);
  }

  skippedExcept(called: readonly C[]): readonly C[] {
    return this.#skipped.map(({ candidate }) => candidate).filter((one) => !called.includes(one));
  }

  get waitMs(): number | null {
    return this.#waitMs === Infinity ? null : this.#waitMs;
  }

  #startAttempt(candidate: C, permit: BreakerPermit, pauseMs: number): NextAttempt<C> {
    this.attempts++;
    const { model } = candidate;
    this.#attemptsOf.set(model, (this.#attemptsOf.get(model) ?? 0) + 1);
    return { candidate, route: nameOf(candidate), permit, pauseMs };
  }

  #skip(skipped: Skipped<C>): void {
    this.#skipped.push(skipped);
    const { why, untilMs } = skipped.cooldown;
    if (why !== "disabled") this.#noteWait(Math.max(0, untilMs - this.#now()));
  }

  /**
   * Returns the route in cooldown with the breaker that closes first. If no breaker is open,
   * returns the only route that isn't disabled.
   */
  #lastResort(): NextAttempt<C> | null {
    const usable = this.#skipped.filter(({ cooldown }) => cooldown.why !== "disabled");
    const guessed = usable.filter(({ cooldown }) => cooldown.why === "open");
    const [first] = guessed.toSorted((a, b) => a.cooldown.untilMs - b.cooldown.untilMs);
    const only = usable.length === 1 ? usable[0] : undefined;
    const chosen = first ?? only;
    return chosen === undefined ? null : this.#startAttempt(chosen.candidate, "forced", 0);
  }

  #retryLast(): NextAttempt<C> | null {
    if (this.#isRepeat || this.#last === null) return null;
    const { candidate, failure } = this.#last;
    if (this.#hasNoAttemptsLeft(candidate)) return null;
    this.#isRepeat = true;
    const waitMs = failure.retryAfterMs ?? Infinity;
    if (failure.kind === "overloaded" && waitMs <= RETRY_WAIT_MS_MAX) {
      return this.#startAttempt(candidate, "forced", waitMs);
    }
    // If the failure has opened the breaker, the route isn't retried.
    if (failure.again !== true) return null;
    if (this.#health.requestPermit(nameOf(candidate), this.#now()) !== "free") return null;
    return this.#startAttempt(candidate, "free", 100 + Math.random() * 200);
  }

  #hasNoAttemptsLeft({ model }: C): boolean {
    return (this.#attemptsOf.get(model) ?? 0) >= ATTEMPTS_MAX;
  }

  #noteWait(ms: number): void {
    this.#waitMs = Math.min(this.#waitMs, ms);
  }
}

function nameOf({ provider, upstreamId }: AttemptCandidate): string {
  return formatRouteName({ provider: provider.id, upstreamId });
}

/**
 * Returns the reason for the log. `unavailable` means that the provider rejects our key or model
 * name.
 */
export function getFailureLogReason({ kind, reason }: ProviderFailure): string {
  if (kind === "disabled") return "unavailable";
  return kind === "overloaded" ? kind : reason;
}

export type FailoverResult<C> = {
  readonly candidate: C;
  readonly attempts: number;
  readonly failed: readonly FailedAttempt<C>[];
  readonly skipped: readonly C[];
  readonly dropped: readonly string[];
  readonly answer: Exclude<ProviderResult, { kind: "failure" }>;
};

export type AttemptedRoute<C> = Pick<FailoverResult<C>, "candidate" | "attempts" | "failed">;

export type FailoverOptions<C> = Omit<AttemptOptions, "onDispatch" | "onDropped"> & {
  readonly health: RouteHealth;
  readonly now: () => number;
  /**
   * Called with null before each attempt. Called with the route once its provider has received the
   * request.
   */
  readonly onAsked?: (attempted: AttemptedRoute<C> | null) => void;
  readonly onFailed?: (attempted: AttemptedRoute<C>, failure: ProviderFailure) => void;
  /**
   * Called after an attempt that failed because of the request. If no route succeeds, the client
   * pays for this attempt's usage.
   */
  readonly onSpent?: (attempted: AttemptedRoute<C>, spent: FailedUsage) => void;
  readonly onSkipped?: (skipped: readonly C[]) => void;
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
export async function failover<C extends AttemptCandidate>(
  candidates: readonly C[],
  request: AttemptRequest,
  options: FailoverOptions<C>,
): Promise<Result<FailoverResult<C>>> {
  const order = new RouteSequence(candidates, options.health, options.now);
  const result = await callInOrder(order, request, options);
  if (!result.ok) {
    options.onSkipped?.(order.skippedExcept(order.failed.map(({ candidate }) => candidate)));
  }
  return result;
}

async function callInOrder<C extends AttemptCandidate>(
  order: RouteSequence<C>,
  request: AttemptRequest,
  options: FailoverOptions<C>,
): Promise<Result<FailoverResult<C>>> {
  for (;;) {
    const attempt = mustStop(order, options) ? null : order.next();
    if (attempt === null) return noRouteLeft(order, options);
    const { candidate, pauseMs } = attempt;
    options.onAsked?.(null);
    if (pauseMs > 0 && !(await pauseBeforeAttempt(pauseMs, options))) {
      order.releasePermit(attempt);
      return noRouteLeft(order, options);
    }
    const requested = { candidate, attempts: order.attempts, failed: order.failed };
    let dropped: readonly string[] = [];
    const onDispatch = (): void => {
      if (options.refusesDrops === true && dropped.length > 0) throw new UnsupportedFields();
      options.onAsked?.(requested);
    };
    const onDropped = (fields: readonly string[]): void => {
      dropped = fields;
    };
    const call = attemptRoute(candidate, request, { ...options, onDispatch, onDropped });
    const answer = await waitForAnswer(call, () => order.releasePermit(attempt));
    if (answer.kind !== "failure") {
      order.recordSuccess(attempt);
      return success({ ...requested, skipped: order.skippedExcept([candidate]), dropped, answer });
    }
    const { failure } = answer;
    reportFailure(requested, failure, options);
    if (options.signal.aborted || failure.kind === "shed") order.releasePermit(attempt);
    else order.recordFailure(attempt, failure);
    const final = finalFailure(order, attempt, failure);
    if (final !== null) return refuse(final);
  }
}

function finalFailure<C extends AttemptCandidate>(
  order: RouteSequence<C>,
  attempt: NextAttempt<C>,
  failure: ProviderFailure,
): Failure | null {
  if (failure.kind === "shed") return { kind: "overloaded" };
  return failure.kind === "refused" && !order.skipModel(attempt) ? toClientFailure(failure) : null;
}

function reportFailure<C>(
  attempted: AttemptedRoute<C>,
  failure: ProviderFailure,
  { onFailed, onSpent }: FailoverOptions<C>,
): void {
  onFailed?.(attempted, failure);
  const { spent } = failure;
  if (spent !== undefined && isCausedByRequest(failure)) onSpent?.(attempted, spent);
}

/**
 * Waits for an attempt's result. An exception is our bug, so `onBug` releases a probe, and the
 * exception doesn't count against the route.
 */
async function waitForAnswer(
  call: Promise<ProviderResult>,
  onBug: () => void,
): Promise<ProviderResult> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof UnsupportedFields) return { kind: "failure", failure: UNSUPPORTED_FIELDS };
    onBug();
    throw error;
  }
}

class UnsupportedFields extends Error {}

const UNSUPPORTED_FIELDS: ProviderFailure = {
  kind: "retry",
  reason: "unsupported_parameters",
  fault: "request",
};

type RetryOptions = Pick<FailoverOptions<never>, "signal" | "mayRetry" | "pauseMs">;

function mustStop(order: { readonly attempts: number }, options: RetryOptions): boolean {
  return options.signal.aborted || (order.attempts > 0 && options.mayRetry?.() === false);
}

function noRouteLeft(
  { failure, waitMs }: Pick<RouteSequence<AttemptCandidate>, "failure" | "waitMs">,
  { signal }: RetryOptions,
): Refusal {
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

async function pauseBeforeAttempt(ms: number, options: RetryOptions): Promise<boolean> {
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
