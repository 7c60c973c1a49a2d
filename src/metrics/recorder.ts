import { logWarning, reasonOf } from "../lib/log.ts";
import { within } from "../lib/within.ts";
import type { Series } from "./series.ts";
import { Tally } from "./tally.ts";

/** How long a handing over may take, in the time after the answer. */
const ADD_TIMEOUT_MS = 5000;

/** What one isolate knows at the moment; `isolate` is any name that no other has. */
export type View = { readonly isolate: string; readonly series: Series };
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
  #isDue = false;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Whether there is something to hand over and nobody does it yet. */
  get isWaiting(): boolean {
    return !this.#isDue && !this.tally.isEmpty;
  }

  /** Hands over what is counted, in a while; `waitUntil` keeps the isolate for it. */
  handOver(waitUntil: (work: Promise<unknown>) => void, add: Add): void {
    if (!this.isWaiting) return;
    this.#isDue = true;
    waitUntil(this.#handOver(add));
  }

  async #handOver(add: Add): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#isDue = false;
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
