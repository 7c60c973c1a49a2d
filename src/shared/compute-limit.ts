/** The mean delay of timers (ms) above which an isolate has more to compute than it can. */
const DELAY_MS_MAX = 4;
/** The most that one timer adds to the mean (ms). After a stall, the mean soon falls again. */
const COUNTED_MS_MAX = 4 * DELAY_MS_MAX;
/** The weight of one timer in the mean. */
const WEIGHT = 1 / 16;
/** The time between two changes of the limit, in ms. */
const CHANGE_MS = 100;
const DECREASE = 0.8;
const INCREASE = 1.01;
/** The lowest limit. It never affects an organization with fewer open requests. */
export const COMPUTE_REQUESTS_MIN = 128;

/**
 * The limit of an organization's open requests while timers are late because the isolate has too
 * much to compute. It falls below the requests of the largest organization, and rises slowly while
 * timers are on time.
 */
export class ComputeLimit {
  #delayMs = 0;
  #changedMs = 0;
  #requestsMax = Infinity;

  get requestsMax(): number {
    return this.#requestsMax;
  }

  /** Records the delay of a timer. `largest` returns the open requests of the largest organization. */
  recordDelay(delayMs: number, nowMs: number, largest: () => number): void {
    this.#delayMs += (Math.min(delayMs, COUNTED_MS_MAX) - this.#delayMs) * WEIGHT;
    if (Math.abs(nowMs - this.#changedMs) < CHANGE_MS) return;
    this.#changedMs = nowMs;
    if (this.#delayMs > DELAY_MS_MAX) {
      const lower = Math.floor(Math.min(this.#requestsMax, largest()) * DECREASE);
      this.#requestsMax = Math.max(COMPUTE_REQUESTS_MIN, lower);
    } else this.#requestsMax = Math.ceil(this.#requestsMax * INCREASE);
  }
}
