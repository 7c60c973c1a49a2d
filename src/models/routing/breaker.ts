/**
 * The state of a route's circuit breaker. In `half_open`, one request (the probe) tries the route.
 */
export type BreakerState = "closed" | "open" | "half_open";

type Probe = { readonly untilMs: number };

/** The permission for a request. `forced` means that no other route was left. */
export type BreakerPermit = "free" | "forced" | Probe;

/** Consecutive faults that open the breaker. */
const CONSECUTIVE_FAULTS_MAX = 5;
/** Consecutive overloads without a `retry-after` that open the breaker. */
const CONSECUTIVE_OVERLOADS_MAX = 3;
/**
 * Faults within the last 15 to 30 seconds that open the breaker if at least half of the requests
 * failed.
 */
const WINDOW_FAULTS_MAX = 5;
const HALF_WINDOW_MS = 15_000;
/** Duration of the first open state. Doubles each time the breaker opens. */
export const BREAKER_OPEN_MS = 15_000;
export const BREAKER_OPEN_MS_MAX = 300_000;
/** Time in ms after which a probe without a result counts as lost. */
export const PROBE_TIMEOUT_MS = 600_000;

type WindowHalf = { half: number; successes: number; faults: number };

export class CircuitBreaker {
  #consecutiveFaults = 0;
  #consecutiveOverloads = 0;
  readonly #currentHalf: WindowHalf = { half: 0, successes: 0, faults: 0 };
  readonly #previousHalf: WindowHalf = { half: 0, successes: 0, faults: 0 };
  /**
   * The end of the open state (Unix ms). While the breaker is half-open, this time is in the past.
   */
  openUntilMs: number | null = null;
  #timesOpened = 0;
  #probe: Probe | null = null;

  state(nowMs: number): BreakerState {
    if (this.openUntilMs === null) return "closed";
    return nowMs < this.openUntilMs ? "open" : "half_open";
  }

  /**
   * Returns a permit, or null to reject the request. For a probe, the caller must report the result.
   */
  requestPermit(nowMs: number): Exclude<BreakerPermit, "forced"> | null {
    if (this.openUntilMs === null) return "free";
    const isAwaited = this.#probe !== null && nowMs < this.#probe.untilMs;
    if (nowMs < this.openUntilMs || isAwaited) return null;
    this.#probe = { untilMs: nowMs + PROBE_TIMEOUT_MS };
    return this.#probe;
  }

  recordSuccess(pass: BreakerPermit, nowMs: number): void {
    if (this.openUntilMs === null) {
      this.#moveWindow(nowMs);
      this.#currentHalf.successes++;
      this.#consecutiveFaults = 0;
      this.#consecutiveOverloads = 0;
    } else if (pass === "forced" || pass === this.#probe) this.#close();
  }

  recordFault(pass: BreakerPermit, busy: boolean, nowMs: number): void {
    if (this.openUntilMs !== null) {
      if (pass === this.#probe) this.#open(nowMs);
      return;
    }
    this.#moveWindow(nowMs);
    this.#currentHalf.faults++;
    this.#consecutiveFaults++;
    this.#consecutiveOverloads = busy ? this.#consecutiveOverloads + 1 : 0;
    if (this.#mustOpen()) this.#open(nowMs);
  }

  releasePermit(pass: BreakerPermit): void {
    if (pass === this.#probe) this.#probe = null;
  }

  #mustOpen(): boolean {
    if (
      this.#consecutiveFaults >= CONSECUTIVE_FAULTS_MAX ||
      this.#consecutiveOverloads >= CONSECUTIVE_OVERLOADS_MAX
    ) {
      return true;
    }
    const faults = this.#currentHalf.faults + this.#previousHalf.faults;
    const served = this.#currentHalf.successes + this.#previousHalf.successes;
    return faults >= WINDOW_FAULTS_MAX && faults >= served;
  }

  #open(nowMs: number): void {
    this.openUntilMs =
      nowMs + Math.min(BREAKER_OPEN_MS * 2 ** this.#timesOpened, BREAKER_OPEN_MS_MAX);
    this.#timesOpened++;
    this.#probe = null;
  }

  #close(): void {
    this.openUntilMs = null;
    this.#probe = null;
    this.#timesOpened = 0;
    this.#consecutiveFaults = 0;
    this.#consecutiveOverloads = 0;
    resetHalf(this.#currentHalf, 0);
    resetHalf(this.#previousHalf, 0);
  }

  /** Starts the window's next half, if it is due. Also works if the clock was set back. */
  #moveWindow(nowMs: number): void {
    const half = Math.floor(nowMs / HALF_WINDOW_MS);
    if (half === this.#currentHalf.half) return;
    if (half === this.#currentHalf.half + 1) Object.assign(this.#previousHalf, this.#currentHalf);
    else resetHalf(this.#previousHalf, half - 1);
    resetHalf(this.#currentHalf, half);
  }
}

function resetHalf(tally: WindowHalf, half: number): void {
  tally.half = half;
  tally.successes = 0;
  tally.faults = 0;
}
