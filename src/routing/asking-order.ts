import type { Candidate } from "./attempt.ts";
import type { Pass } from "./breaker.ts";
import type { ProviderFailure } from "../core/provider.ts";
import { isLeftOut, routeName } from "./route-health.ts";
import type { LeftOut, RouteHealth } from "./route-health.ts";

export const ATTEMPTS_MAX = 3;
/** The longest that a request waits for a route that said how long it is overloaded. */
export const SHORT_WAIT_MS = 1_000;
const WAIT_MS_DEFAULT = 5_000;

/** An attempt that failed: of which candidate, and why in a word of ours. */
export type FailedAttempt = { readonly index: number; readonly why: string };

const NONE: readonly FailedAttempt[] = [];

/** Which candidate is asked now, after how many ms. */
export type Turn = { readonly index: number; readonly pauseMs: number };

type Skipped = { readonly index: number; readonly out: LeftOut };

/**
 * Whom one request asks, in the catalogue's order, and what its failures come to. Routes that are left
 * out are skipped. The last one asked is asked once more when that may well help: after a reset, a
 * 408 or a 5xx, or when it is overloaded for at most a second.
 */
export class AskingOrder {
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
  #pass: Pass = "free";
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
      if (!isLeftOut(pass)) {
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
    this.failed = [...this.failed, { index: this.#index, why: whyFailed(failure) }];
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

  #take(index: number, pass: Pass, pauseMs: number): Turn {
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
export function whyFailed({ kind, reason }: ProviderFailure): string {
  if (kind === "disabled") return "unavailable";
  return kind === "overloaded" ? kind : reason;
}
