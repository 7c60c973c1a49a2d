import { refuse } from "../../shared/failure.ts";
import type { Refusal } from "../../shared/failure.ts";
import type { RateState } from "../../shared/key-terms.ts";
import { CLOCK_LAG_MAX_MS, RateWindow } from "../../shared/rate-window.ts";
import type { PacedSession } from "../../shared/contracts/register.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";

const SESSIONS_MAX = 500;

/**
 * Requests of sessions in the last minute, in memory, outside the home region. They reject a
 * session above its own limit before it uses up its key's limit.
 */
export class SessionRateWindows {
  readonly #windows = new Map<string, RateWindow>();

  refuse(session: PacedSession | undefined, clockMs: number): Refusal | null {
    const limit = session?.rpmLimit ?? null;
    if (session === undefined || limit === null) return null;
    const window = this.#windows.get(session.id);
    if (window === undefined) return null;
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) window.clamp(clockMs);
    const decision = window.decide(limit, clockMs);
    if (decision.admitted) return null;
    const { retryAfterMs } = decision;
    return refuse({ kind: "rate_limited", scope: "session", limit, retryAfterMs });
  }

  take(session: PacedSession | undefined, clockMs: number): RateState | null {
    const limit = session?.rpmLimit ?? null;
    if (session === undefined || limit === null) return null;
    const window = this.#windowOf(session.id);
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) return null;
    window.append(decision.entry);
    const { remaining, resetMs } = decision;
    return { limit, remaining, resetMs };
  }

  #windowOf(id: string): RateWindow {
    const known = this.#windows.get(id);
    if (known !== undefined) return known;
    evictOldest(this.#windows, SESSIONS_MAX);
    const window = new RateWindow();
    this.#windows.set(id, window);
    return window;
  }
}
