/**
 * Whether one route may be asked, from how it did lately: `closed` (yes), `open` (not for a while),
 * `half_open` (one request may try it). A pure state machine; the time comes in as Unix ms.
 */
export type BreakerState = "closed" | "open" | "half_open";

/** The one request that may try a half-open route, until then (Unix ms) if nothing is heard of it. */
type Probe = { readonly untilMs: number };

/**
 * How a request came to ask: freely, as a probe, or by force because no route was left. Whoever was
 * let in says later what came of it, with the same pass.
 */
export type BreakerPass = "free" | "forced" | Probe;

/** Faults in a row that open it; and of those that say "overloaded" without saying for how long. */
export const FAULTS_IN_A_ROW = 5;
export const BUSY_IN_A_ROW = 3;
/** So many faults among the requests of the last 15 to 30 seconds open it if they are half of them. */
const FAULTS_IN_WINDOW = 5;
const HALF_WINDOW_MS = 15_000;
export const OPEN_MS = 15_000;
export const OPEN_MS_MAX = 300_000;
/** No attempt takes longer: a probe that was not heard of by then never will be. */
export const PROBE_MS_MAX = 600_000;

/** The requests of half a window. */
type Tally = { half: number; served: number; faults: number };

export class Breaker {
  #faultsInARow = 0;
  #busyInARow = 0;
  readonly #now: Tally = { half: 0, served: 0, faults: 0 };
  readonly #before: Tally = { half: 0, served: 0, faults: 0 };
  /** When the open time ends; null while closed. */
  #openUntilMs: number | null = null;
  /** How often it opened since it was last closed. */
  #opened = 0;
  /** The probe that is under way. */
  #probe: Probe | null = null;

  state(nowMs: number): BreakerState {
    if (this.#openUntilMs === null) return "closed";
    return nowMs < this.#openUntilMs ? "open" : "half_open";
  }

  /** When the open time ends, Unix ms; null while closed. It stays in the past while half-open. */
  get openUntilMs(): number | null {
    return this.#openUntilMs;
  }

  /** Lets a request in, or not: null. A probe must be heard of again. */
  pass(nowMs: number): Exclude<BreakerPass, "forced"> | null {
    if (this.#openUntilMs === null) return "free";
    const isAwaited = this.#probe !== null && nowMs < this.#probe.untilMs;
    if (nowMs < this.#openUntilMs || isAwaited) return null;
    this.#probe = { untilMs: nowMs + PROBE_MS_MAX };
    return this.#probe;
  }

  /** The route answered. What was asked before it opened says nothing about it now. */
  served(pass: BreakerPass, nowMs: number): void {
    if (this.#openUntilMs === null) {
      this.#turn(nowMs);
      this.#now.served++;
      this.#faultsInARow = 0;
      this.#busyInARow = 0;
    } else if (pass === "forced" || pass === this.#probe) this.#close();
  }

  /** The route failed; `busy` when it said that it was overloaded and not for how long. */
  failed(pass: BreakerPass, busy: boolean, nowMs: number): void {
    if (this.#openUntilMs !== null) {
      if (pass === this.#probe) this.#open(nowMs);
      return;
    }
    this.#turn(nowMs);
    this.#now.faults++;
    this.#faultsInARow++;
    this.#busyInARow = busy ? this.#busyInARow + 1 : 0;
    if (this.#isTooMuch()) this.#open(nowMs);
  }

  /** What came of it says nothing about the route. */
  released(pass: BreakerPass): void {
    if (pass === this.#probe) this.#probe = null;
  }

  #isTooMuch(): boolean {
    if (this.#faultsInARow >= FAULTS_IN_A_ROW || this.#busyInARow >= BUSY_IN_A_ROW) return true;
    const faults = this.#now.faults + this.#before.faults;
    const served = this.#now.served + this.#before.served;
    return faults >= FAULTS_IN_WINDOW && faults >= served;
  }

  #open(nowMs: number): void {
    this.#openUntilMs = nowMs + Math.min(OPEN_MS * 2 ** this.#opened, OPEN_MS_MAX);
    this.#opened++;
    this.#probe = null;
  }

  #close(): void {
    this.#openUntilMs = null;
    this.#probe = null;
    this.#opened = 0;
    this.#faultsInARow = 0;
    this.#busyInARow = 0;
    empty(this.#now, 0);
    empty(this.#before, 0);
  }

  /** Moves the window so that `#now` is the half that `nowMs` is in, also after a clock that stepped back. */
  #turn(nowMs: number): void {
    const half = Math.floor(nowMs / HALF_WINDOW_MS);
    if (half === this.#now.half) return;
    if (half === this.#now.half + 1) Object.assign(this.#before, this.#now);
    else empty(this.#before, half - 1);
    empty(this.#now, half);
  }
}

function empty(tally: Tally, half: number): void {
  tally.half = half;
  tally.served = 0;
  tally.faults = 0;
}
