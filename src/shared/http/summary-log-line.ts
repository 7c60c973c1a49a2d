import { logWarning } from "../log.ts";
import type { LogFields } from "../log.ts";

const LINE_INTERVAL_MS = 1000;

export class SummaryLogLine {
  readonly #event: string;
  #lastLineMs = -Infinity;
  #counts: Record<string, number> = {};

  constructor(event: string) {
    this.#event = event;
  }

  add(name: string, nowMs: number, last: LogFields): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
    if (Math.abs(nowMs - this.#lastLineMs) < LINE_INTERVAL_MS) return; // absolute, because the clock may step back
    logWarning(this.#event, { ...this.#counts, ...last });
    this.#lastLineMs = nowMs;
    this.#counts = {};
  }
}
