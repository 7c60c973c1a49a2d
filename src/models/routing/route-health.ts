import { CircuitBreaker } from "./breaker.ts";
import type { BreakerState, BreakerPermit } from "./breaker.ts";
import type { ProviderFailure } from "../core/provider.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";

/**
 * The reason for a cooldown. `disabled`: the provider rejects our key or model name. `overloaded`:
 * the provider requested a wait. `open`: the breaker is open, or a probe is running.
 */
export type CooldownReason = {
  readonly why: "disabled" | "overloaded" | "open";
  readonly untilMs: number;
};

export function formatRouteName({
  provider,
  upstreamId,
}: {
  readonly provider: string;
  readonly upstreamId: string;
}): string {
  return `${provider}:${upstreamId}`;
}

export function isCooldownReason(pass: BreakerPermit | CooldownReason): pass is CooldownReason {
  return typeof pass !== "string" && "why" in pass;
}

/** The status of a route in cooldown. */
export type RouteStatus = {
  readonly route: string;
  readonly state: "disabled" | "overloaded" | Exclude<BreakerState, "closed">;
  readonly untilMs: number;
};

type RouteState = {
  readonly breaker: CircuitBreaker;
  waitUntilMs: number;
  disabledUntilMs: number;
  disabledTimes: number;
};

const ROUTES_MAX = 1_000;
const WAIT_MS_MAX = 60_000;
const DISABLED_MS = 60_000;
const DISABLED_MS_MAX = 600_000;

/**
 * This isolate's routes in cooldown. Isolates don't share this state, because losing it does no
 * harm.
 */
export class RouteHealth {
  readonly #entries = new Map<string, RouteState>();

  /** Returns a permit, or the reason for the cooldown. The caller must report a probe's result. */
  requestPermit(route: string, nowMs: number): Exclude<BreakerPermit, "forced"> | CooldownReason {
    const entry = this.#entries.get(route);
    if (entry === undefined) return "free";
    if (entry.disabledUntilMs > nowMs) return { why: "disabled", untilMs: entry.disabledUntilMs };
    if (entry.waitUntilMs > nowMs) return { why: "overloaded", untilMs: entry.waitUntilMs };
    const pass = entry.breaker.requestPermit(nowMs);
    return pass ?? { why: "open", untilMs: entry.breaker.openUntilMs ?? nowMs };
  }

  recordSuccess(route: string, pass: BreakerPermit, nowMs: number): void {
    const entry = this.#entryOf(route);
    entry.disabledTimes = 0;
    entry.breaker.recordSuccess(pass, nowMs);
  }

  /**
   * Records a failure. A rejected key disables the route, and a wait time starts a cooldown. Other
   * faults of the provider count toward opening the breaker.
   */
  recordFailure(route: string, pass: BreakerPermit, failure: ProviderFailure, nowMs: number): void {
    if (failure.fault === "request") return this.releasePermit(route, pass);
    const entry = this.#entryOf(route);
    const waitMs = failure.retryAfterMs ?? 0;
    if (failure.kind === "disabled") disableRoute(entry, nowMs);
    if (failure.kind === "overloaded" && waitMs > 0) {
      entry.waitUntilMs = nowMs + Math.min(waitMs, WAIT_MS_MAX);
    } else if (failure.kind === "overloaded" || failure.kind === "retry") {
      return entry.breaker.recordFault(pass, failure.kind === "overloaded", nowMs);
    }
    entry.breaker.releasePermit(pass);
  }

  recordBrokenStream(route: string, nowMs: number): void {
    this.#entryOf(route).breaker.recordFault("free", false, nowMs);
  }

  releasePermit(route: string, pass: BreakerPermit): void {
    this.#entries.get(route)?.breaker.releasePermit(pass);
  }

  /** Returns all routes in cooldown or half-open. Includes disabled routes until they succeed. */
  unavailableRoutes(nowMs: number): readonly RouteStatus[] {
    return [...this.#entries].flatMap(([route, entry]) => statusOf(route, entry, nowMs) ?? []);
  }

  #entryOf(route: string): RouteState {
    const known = this.#entries.get(route);
    if (known !== undefined) return known;
    evictOldest(this.#entries, ROUTES_MAX);
    const fresh = {
      breaker: new CircuitBreaker(),
      waitUntilMs: 0,
      disabledUntilMs: 0,
      disabledTimes: 0,
    };
    this.#entries.set(route, fresh);
    return fresh;
  }
}

function statusOf(route: string, entry: RouteState, nowMs: number): RouteStatus | null {
  const { disabledUntilMs, waitUntilMs, breaker } = entry;
  if (disabledUntilMs > nowMs) return { route, state: "disabled", untilMs: disabledUntilMs };
  if (waitUntilMs > nowMs) return { route, state: "overloaded", untilMs: waitUntilMs };
  const state = breaker.state(nowMs);
  if (entry.disabledTimes > 0) return { route, state: "disabled", untilMs: disabledUntilMs };
  if (state === "closed") return null;
  return { route, state, untilMs: breaker.openUntilMs ?? nowMs };
}

/**
 * Disables a route for a time that doubles with each failure. Ignores failures of requests sent
 * before the route was disabled.
 */
function disableRoute(entry: RouteState, nowMs: number): void {
  if (entry.disabledUntilMs > nowMs) return;
  entry.disabledUntilMs = nowMs + Math.min(DISABLED_MS * 2 ** entry.disabledTimes, DISABLED_MS_MAX);
  entry.disabledTimes++;
}
