import { refuse, success } from "../lib/failure.ts";
import type { Failure, Refusal, Result } from "../lib/failure.ts";
import { AskingOrder } from "./asking-order.ts";
import type { FailedAttempt } from "./asking-order.ts";
import { attempt } from "./attempt.ts";
import type { AttemptOptions, AttemptRequest, Candidate } from "./attempt.ts";
import type { ProviderAnswer, ProviderFailure, Spent } from "../core/provider.ts";
import type { RouteHealth } from "./route-health.ts";

export type { Candidate } from "./attempt.ts";

/** Which candidate answered, after how many attempts in all. A stream starts with its first events. */
export type Served = {
  readonly index: number;
  readonly attempts: number;
  /** Those before it. */
  readonly failed: readonly FailedAttempt[];
  /** Fields of the request that were left out there. */
  readonly dropped: readonly string[];
  readonly answer: Exclude<ProviderAnswer, { kind: "failure" }>;
};

/** A candidate that works on the request, at which attempt, and which failed before it. */
export type Asked = Pick<Served, "index" | "attempts" | "failed">;

export type FailoverOptions = Omit<AttemptOptions, "onDispatch" | "onDropped"> & {
  /** One for each isolate. */
  readonly health: RouteHealth;
  readonly now: () => number;
  /** Told whom the request was just sent to; null before each attempt, while it is not yet sent. */
  readonly onAsked?: (asked: Asked | null) => void;
  /** Told of each attempt that failed, also one that the run's end cut short. */
  readonly onFailed?: (asked: Asked, failure: ProviderFailure) => void;
  /** Told what an attempt had used that the request itself made fail; paid for if no route serves. */
  readonly onSpent?: (asked: Asked, spent: Spent) => void;
  /** False once nobody waits for the answer any more: the attempt under way is the last. */
  readonly mayRetry?: () => boolean;
  /** The pause, in ms, before the same route is asked again; as long as it should be unless a test says otherwise. */
  readonly pauseMs?: (ms: number) => number;
};

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
  const order = new AskingOrder(candidates, options.health, options.now);
  for (;;) {
    const turn = isOver(order, options) ? null : order.next();
    const candidate = turn === null ? undefined : candidates[turn.index];
    if (turn === null || candidate === undefined) return noRouteLeft(order, options);
    options.onAsked?.(null);
    // oxlint-disable-next-line no-await-in-loop -- the pause is the point
    if (turn.pauseMs > 0 && !(await paused(turn.pauseMs, options))) {
      order.released();
      return noRouteLeft(order, options);
    }
    const asked = { index: turn.index, attempts: order.attempts, failed: order.failed };
    const onDispatch = (): void => options.onAsked?.(asked);
    let dropped: readonly string[] = [];
    const onDropped = (fields: readonly string[]): void => {
      dropped = fields;
    };
    // oxlint-disable-next-line no-await-in-loop -- a route is asked only after the one before failed
    const answer = await attempted(order, () =>
      attempt(candidate, request, { ...options, onDispatch, onDropped }),
    );
    if (answer.kind !== "failure") {
      order.served();
      return success({ ...asked, dropped, answer });
    }
    noteFailure(order, asked, answer.failure, options);
    if (answer.failure.kind === "refused") return refuse(failureOf(answer.failure));
    if (answer.failure.kind === "shed") return refuse({ kind: "overloaded" });
  }
}

function noteFailure(
  order: AskingOrder,
  asked: Asked,
  failure: ProviderFailure,
  { onFailed, onSpent, signal }: FailoverOptions,
): void {
  onFailed?.(asked, failure);
  if (failure.spent !== undefined) onSpent?.(asked, failure.spent);
  if (signal.aborted || failure.kind === "shed") order.released();
  else order.noteFailed(failure);
}

/** What an attempt throws is a bug of ours: it says nothing about the route, whose probe must be heard of. */
async function attempted(
  order: AskingOrder,
  ask: () => Promise<ProviderAnswer>,
): Promise<ProviderAnswer> {
  try {
    return await ask();
  } catch (error) {
    order.released();
    throw error;
  }
}

/** Nobody waits for another attempt. */
function isOver({ attempts }: AskingOrder, options: FailoverOptions): boolean {
  return options.signal.aborted || (attempts > 0 && options.mayRetry?.() === false);
}

/** The last failure decides; without one, what the routes that are left out said. */
function noRouteLeft({ failure, waitMs }: AskingOrder, { signal }: FailoverOptions): Refusal {
  const overloaded = failure === null || failure.kind === "overloaded";
  if (!overloaded || waitMs === null || signal.aborted) return refuse({ kind: "upstream_error" });
  return refuse(overloadedFor(waitMs));
}

function overloadedFor(waitMs: number): Failure {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return { kind: "upstream_overloaded", retryAfterSeconds: Math.min(seconds, WAIT_SECONDS_MAX) };
}

/** What a client is told of a provider's failure: of what it may mend, in the provider's cleaned words. */
export function failureOf(failure: ProviderFailure): Failure {
  if (failure.kind === "overloaded") return overloadedFor(failure.retryAfterMs ?? 0);
  if (failure.kind !== "refused") return { kind: "upstream_error" };
  return {
    kind: "invalid_request",
    message: failure.message ?? "The model provider refused this request.",
    param: failure.param ?? null,
    ...(typeof failure.code === "string" && { code: failure.code }),
    ...(failure.tooLarge === true && { isTooLarge: true }),
  };
}

/** True after the pause; false when the run ended in it, or nobody waits any more. */
async function paused(ms: number, options: FailoverOptions): Promise<boolean> {
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
