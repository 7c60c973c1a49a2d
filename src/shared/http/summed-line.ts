import { logWarning } from "../log.ts";
import type { LogFields } from "../log.ts";

const LINE_EVERY_MS = 1000;

/**
 * A line of the log for what comes in storms: the first is told at once, then one line a second tells how many
 * there were since the line before, by name, and what the last one was.
 */
export class SummedLine {
  readonly #event: string;
  #lineMs = -Infinity;
  #counts: Record<string, number> = {};

  constructor(event: string) {
    this.#event = event;
  }

  /** Counts one by its name, a word of ours. */
  add(name: string, nowMs: number, last: LogFields): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
    if (Math.abs(nowMs - this.#lineMs) < LINE_EVERY_MS) return; // also after a clock that stepped back
    logWarning(this.#event, { ...this.#counts, ...last });
    this.#lineMs = nowMs;
    this.#counts = {};
  }
}
