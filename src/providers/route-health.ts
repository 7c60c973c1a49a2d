/** Why and until when (Unix ms) a route is left out. */
export type LeftOut = { readonly untilMs: number; readonly why: "disabled" | "overloaded" };

const ROUTES_MAX = 1_000;
const WAIT_MS_MAX = 60_000;
export const DISABLED_MS = 60_000;

/**
 * Which routes an isolate leaves out for a while. The caller makes one per isolate and says the time;
 * forgetting is harmless, so it is bounded and never shared.
 */
export class RouteHealth {
  readonly #out = new Map<string, LeftOut>();

  /** Why the route is left out now, or null when it may be asked. */
  leftOut(route: string, nowMs: number): LeftOut | null {
    const entry = this.#out.get(route);
    if (entry === undefined) return null;
    if (entry.untilMs > nowMs) return entry;
    this.#out.delete(route);
    return null;
  }

  /** Leaves the route out for `waitMs`, at most a minute. */
  leaveOut(route: string, why: LeftOut["why"], waitMs: number, nowMs: number): void {
    if (waitMs <= 0) return;
    this.#out.delete(route); // the newest is last, so the first is the oldest
    this.#out.set(route, { untilMs: nowMs + Math.min(waitMs, WAIT_MS_MAX), why });
    const [oldest] = this.#out.keys();
    if (this.#out.size > ROUTES_MAX && oldest !== undefined) this.#out.delete(oldest);
  }
}
