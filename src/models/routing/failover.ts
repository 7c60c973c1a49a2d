import { refuse, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import { attempt } from "./attempt.ts";
import type { AttemptOptions, AttemptRequest, Candidate } from "./attempt.ts";
import type { ProviderResult, ProviderFailure, FailedUsage } from "../core/provider.ts";
import type { CooldownReason, RouteHealth } from "./route-health.ts";
import type { BreakerPass } from "./breaker.ts";
import { isInCooldown, routeName } from "./route-health.ts";

const ATTEMPTS_MAX = 3;
/** The longest that a request waits for a route that said how long it is overloaded. */
const SHORT_WAIT_MS = 1_000;
const WAIT_MS_DEFAULT = 5_000;

/** An attempt that failed: of which candidate, and why in a word of ours. */
type FailedAttempt = { readonly index: number; readonly why: string };

const NONE: readonly FailedAttempt[] = [];

/** Which candidate is asked now, after how many ms. */
type Turn = { readonly index: number; readonly pauseMs: number };

type Skipped = { readonly index: number; readonly out: CooldownReason };

/**
 * Whom one request asks, in the catalog's order, and what its failures come to. Routes that are left
 * out are skipped. The last one asked is asked once more when that may well help: after a reset, a
 * 408 or a 5xx, or when it is overloaded for at most a second.
 */
class AskingOrder {
  attempts = 0;
  /** The last failure that is not our own, such as a bad key: it says what the client is told. */
  failure: ProviderFailure | null = null;
  /** Those that were heard of, in their order. */
  failed: readonly FailedAttempt[] = NONE;
  readonly #candidates: readonly Candidate[];
  readonly #health: RouteHealth;
  readonly #now: () => number;
  readonly #skipped: Skipped[] = [];
  #next = 0;
  #route = "";
  #index = 0;
  #pass: BreakerPass = "free";
  #last: ProviderFailure | null = null;
  #isRepeat = false;
  #waitMs = Infinity;

  constructor(candidates: readonly Candidate[], health: RouteHealth, now: () => number) {
    this.#candidates = candidates;
    this.#health = health;
    this.#now = now;
  }

  /** The next candidate, or null when no route is left. What came of it is said before the next one. */
  next(): Turn | null {
    if (this.attempts === ATTEMPTS_MAX) return null;
    for (; this.#next < this.#candidates.length; this.#next++) {
      const index = this.#next;
      const route = this.#nameOf(index);
      const pass = this.#health.pass(route, this.#now());
      if (!isInCooldown(pass)) {
        this.#next++;
        return this.#take(index, pass, 0);
      }
      this.#skip({ index, out: pass });
    }
    return this.attempts === 0 ? this.#lastResort() : this.#repeat();
  }

  /** The route that was asked last answered. */
  served(): void {
    this.#health.served(this.#route, this.#pass, this.#now());
  }

  /** It failed, so that the next one may be asked. */
  noteFailed(failure: ProviderFailure): void {
    this.failed = [...this.failed, { index: this.#index, why: failureReason(failure) }];
    this.#health.failed(this.#route, this.#pass, failure, this.#now());
    this.#last = failure;
    if (failure.kind !== "disabled" || this.failure === null) this.failure = failure;
    if (failure.kind === "overloaded") this.#wait(failure.retryAfterMs ?? WAIT_MS_DEFAULT);
  }

  /** The run ended under it, or before it was asked: that says nothing about the route. */
  released(): void {
    this.#health.released(this.#route, this.#pass);
  }

  /** The least time, in ms, after which a route may be asked that was overloaded or left out; null without one. */
  get waitMs(): number | null {
    return this.#waitMs === Infinity ? null : this.#waitMs;
  }

  #take(index: number, pass: BreakerPass, pauseMs: number): Turn {
    this.attempts++;
    this.#index = index;
    this.#route = this.#nameOf(index);
    this.#pass = pass;
    return { index, pauseMs };
  }

  #skip(skipped: Skipped): void {
    this.#skipped.push(skipped);
    const { why, untilMs } = skipped.out;
    if (why !== "disabled") this.#wait(Math.max(0, untilMs - this.#now()));
  }

  /**
   * No route may be asked. An open breaker is our own guess and gives way: the one whose time ends first is
   * asked rather than nobody. "Overloaded" is the upstream's word and is kept, except by the only
   * route there is: what was too much of one customer may not take the model from everybody.
   */
  #lastResort(): Turn | null {
    const usable = this.#skipped.filter(({ out }) => out.why !== "disabled");
    const guessed = usable.filter(({ out }) => out.why === "open");
    const [first] = guessed.toSorted((a, b) => a.out.untilMs - b.out.untilMs);
    const only = usable.length === 1 ? usable[0] : undefined;
    const chosen = first ?? only;
    return chosen === undefined ? null : this.#take(chosen.index, "forced", 0);
  }

  #repeat(): Turn | null {
    const last = this.#last;
    if (this.#isRepeat || last === null) return null;
    this.#isRepeat = true;
    const waitMs = last.retryAfterMs ?? Infinity;
    if (last.kind === "overloaded" && waitMs <= SHORT_WAIT_MS) {
      return this.#take(this.#index, "forced", waitMs);
    }
    // Its breaker may have opened just now; then it is left alone.
    if (last.again !== true) return null;
    if (this.#health.pass(this.#route, this.#now()) !== "free") return null;
    return this.#take(this.#index, "free", 100 + Math.random() * 200);
  }

  #wait(ms: number): void {
    this.#waitMs = Math.min(this.#waitMs, ms);
  }

  #nameOf(index: number): string {
    const candidate = this.#candidates[index];
    return candidate === undefined ? "" : routeName(candidate.provider.id, candidate.upstreamId);
  }
}

/** What a customer is told: what is our own affair with a provider is "unavailable". */
export function failureReason({ kind, reason }: ProviderFailure): string {
  if (kind === "disabled") return "unavailable";
  return kind === "overloaded" ? kind : reason;
}

/** Which candidate answered, after how many attempts in all. A stream starts with its first events. */
export type FailoverResult = {
  readonly index: number;
  readonly attempts: number;
  /** Those before it. */
  readonly failed: readonly FailedAttempt[];
  /** Fields of the request that were left out there. */
  readonly dropped: readonly string[];
  readonly answer: Exclude<ProviderResult, { kind: "failure" }>;
};

/** A candidate that works on the request, at which attempt, and which failed before it. */
export type ActiveRoute = Pick<FailoverResult, "index" | "attempts" | "failed">;

export type FailoverOptions = Omit<AttemptOptions, "onDispatch" | "onDropped"> & {
  /** One for each isolate. */
  readonly health: RouteHealth;
  readonly now: () => number;
  /** Told whom the request was just sent to; null before each attempt, while it is not yet sent. */
  readonly onAsked?: (asked: ActiveRoute | null) => void;
  /** Told of each attempt that failed, also one that the run's end cut short. */
  readonly onFailed?: (asked: ActiveRoute, failure: ProviderFailure) => void;
  /** Told what an attempt had used that the request itself made fail; paid for if no route serves. */
  readonly onSpent?: (asked: ActiveRoute, spent: FailedUsage) => void;
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
): Promise<Result<FailoverResult>> {
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
  asked: ActiveRoute,
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
  ask: () => Promise<ProviderResult>,
): Promise<ProviderResult> {
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
