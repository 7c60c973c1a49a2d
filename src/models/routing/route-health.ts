import { Breaker } from "./breaker.ts";
import type { BreakerState, BreakerPass } from "./breaker.ts";
import type { ProviderFailure } from "../core/provider.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";

/**
 * Why a route is left out: our key or model name is bad there (`disabled`), it asked to be left alone
 * (`overloaded`), or its breaker is open or waits for its probe (`open`). `untilMs`: Unix ms.
 */
export type CooldownReason = {
  readonly why: "disabled" | "overloaded" | "open";
  readonly untilMs: number;
};

/** A route by name: a provider's id and its name for the model. */
export function routeName(provider: string, upstreamId: string): string {
  return `${provider}:${upstreamId}`;
}

/** Whether an answer of `pass` is no. */
export function isInCooldown(pass: BreakerPass | CooldownReason): pass is CooldownReason {
  return typeof pass !== "string" && "why" in pass;
}

/** A route as operators see it, `provider:model`; those that are asked freely are not listed. */
export type RouteStatus = {
  readonly route: string;
  readonly state: "disabled" | "overloaded" | Exclude<BreakerState, "closed">;
  readonly untilMs: number;
};

type Entry = {
  readonly breaker: Breaker;
  /** Until when it asked to be left alone; 0 for never. */
  waitUntilMs: number;
  disabledUntilMs: number;
  /** How often it was disabled since it last answered. */
  disabledTimes: number;
};

const ROUTES_MAX = 1_000;
const WAIT_MS_MAX = 60_000;
const DISABLED_MS = 60_000;
const DISABLED_MS_MAX = 600_000;

/**
 * Which routes an isolate leaves out for a while. The caller makes one per isolate and says the time;
 * forgetting is harmless, so it is bounded and never shared.
 */
export class RouteHealth {
  readonly #entries = new Map<string, Entry>();

  /** How the route may be asked now, or why it is left out. A probe must be heard of again. */
  pass(route: string, nowMs: number): Exclude<BreakerPass, "forced"> | CooldownReason {
    const entry = this.#entries.get(route);
    if (entry === undefined) return "free";
    if (entry.disabledUntilMs > nowMs) return { why: "disabled", untilMs: entry.disabledUntilMs };
    if (entry.waitUntilMs > nowMs) return { why: "overloaded", untilMs: entry.waitUntilMs };
    const pass = entry.breaker.pass(nowMs);
    return pass ?? { why: "open", untilMs: entry.breaker.openUntilMs ?? nowMs };
  }

  /** The route answered. */
  served(route: string, pass: BreakerPass, nowMs: number): void {
    const entry = this.#entryOf(route);
    entry.disabledTimes = 0;
    entry.breaker.served(pass, nowMs);
  }

  /**
   * The route failed. What it says of the request or of our key there is no fault of the route's; nor
   * is "overloaded" with a time, which is waited out instead, or what may be the request's own fault.
   */
  failed(route: string, pass: BreakerPass, failure: ProviderFailure, nowMs: number): void {
    if (failure.fault === "request") return this.released(route, pass);
    const entry = this.#entryOf(route);
    const waitMs = failure.retryAfterMs ?? 0;
    if (failure.kind === "disabled") disable(entry, nowMs);
    if (failure.kind === "overloaded" && waitMs > 0) {
      entry.waitUntilMs = nowMs + Math.min(waitMs, WAIT_MS_MAX);
    } else if (failure.kind === "overloaded" || failure.kind === "retry") {
      return entry.breaker.failed(pass, failure.kind === "overloaded", nowMs);
    }
    entry.breaker.released(pass);
  }

  /** A stream that had begun broke off, or its upstream said that it failed. */
  broke(route: string, nowMs: number): void {
    this.#entryOf(route).breaker.failed("free", false, nowMs);
  }

  /** The attempt ended with its run: that says nothing about the route. */
  released(route: string, pass: BreakerPass): void {
    this.#entries.get(route)?.breaker.released(pass);
  }

  /**
   * Every route that is not asked freely now; also one that was disabled and has not answered since, its time in
   * the past.
   */
  standings(nowMs: number): readonly RouteStatus[] {
    return [...this.#entries].flatMap(([route, entry]) => standing(route, entry, nowMs) ?? []);
  }

  #entryOf(route: string): Entry {
    const known = this.#entries.get(route);
    if (known !== undefined) return known;
    evictOldest(this.#entries, ROUTES_MAX);
    const fresh = { breaker: new Breaker(), waitUntilMs: 0, disabledUntilMs: 0, disabledTimes: 0 };
    this.#entries.set(route, fresh);
    return fresh;
  }
}

function standing(route: string, entry: Entry, nowMs: number): RouteStatus | null {
  const { disabledUntilMs, waitUntilMs, breaker } = entry;
  if (disabledUntilMs > nowMs) return { route, state: "disabled", untilMs: disabledUntilMs };
  if (waitUntilMs > nowMs) return { route, state: "overloaded", untilMs: waitUntilMs };
  const state = breaker.state(nowMs);
  if (entry.disabledTimes > 0) return { route, state: "disabled", untilMs: disabledUntilMs };
  if (state === "closed") return null;
  return { route, state, untilMs: breaker.openUntilMs ?? nowMs };
}

/** A minute, twice as long each time; what fails while it is disabled was asked before, and adds nothing. */
function disable(entry: Entry, nowMs: number): void {
  if (entry.disabledUntilMs > nowMs) return;
  entry.disabledUntilMs = nowMs + Math.min(DISABLED_MS * 2 ** entry.disabledTimes, DISABLED_MS_MAX);
  entry.disabledTimes++;
}
