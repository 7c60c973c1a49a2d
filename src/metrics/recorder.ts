import { elapsedMs } from "../lib/clock.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { within } from "../lib/within.ts";
import type { Series } from "../contracts/metrics.ts";
import type { View } from "../contracts/metrics.ts";
import { Tally } from "./tally.ts";

/** How long a handing over may take, in the time after the answer. */
const ADD_TIMEOUT_MS = 5000;
/** The platform ends a waitUntil at 30 s, and whoever waits in it. */
const LOST_AFTER_MS = 30_000;

type Add = (series: Series, view: View) => Promise<unknown>;

/**
 * One isolate's counts on their way to the region's: the first count after a handing over starts the
 * next one, `delayMs` later, so that an isolate hands over at most once in that time, however busy,
 * and an idle one keeps nothing back.
 */
export class Recorder {
  readonly tally = new Tally();
  readonly #isolate = crypto.randomUUID();
  /** What this isolate alone knows at the moment, as gauges; handed over with the counts. */
  view: () => Series = () => ({});
  readonly #delayMs: number;
  /** When the last handing over began, Unix ms, until its counts are taken; then never. */
  #begunMs = -Infinity;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Whether there is something to hand over and nobody does it yet, or who did was ended by the platform. */
  get isWaiting(): boolean {
    if (this.tally.isEmpty) return false;
    return Math.abs(elapsedMs() - this.#begunMs) > this.#delayMs + LOST_AFTER_MS;
  }

  /** Hands over what is counted, in a while; `waitUntil` keeps the isolate for it. */
  handOver(waitUntil: (work: Promise<unknown>) => void, add: Add): void {
    if (!this.isWaiting) return;
    this.#begunMs = elapsedMs();
    waitUntil(this.#handOver(add));
  }

  async #handOver(add: Add): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#begunMs = -Infinity;
    const series = this.tally.take();
    try {
      await within(add(series, { isolate: this.#isolate, series: this.view() }), ADD_TIMEOUT_MS);
    } catch (error) {
      // Not counted again: the lost call may have arrived, and a count must never be twice the truth.
      const lost = Object.keys(series).length;
      logWarning("metrics_not_taken", { series: lost, reason: reasonOf(error) });
    }
  }
}
