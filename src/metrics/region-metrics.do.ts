import { DurableObject } from "cloudflare:workers";
import { now } from "../lib/clock.ts";
import type { Series } from "./series.ts";

/** The name of the one object of a region. */
export const REGION_METRICS = "region";
/** Series beyond this are left out: labels come from bounded sets, and one row holds them all. */
const SERIES_MAX = 10_000;

/** What the region has counted since `sinceMs`, and what the last sweep found. */
export type Counted = {
  readonly sinceMs: number;
  readonly counters: Series;
  /** Null before the first sweep; `atMs` says when it was. Unix ms, as all times. */
  readonly gauges: { readonly atMs: number; readonly series: Series } | null;
};

/**
 * The counters of a region: isolates hand over what they counted, in batches, after their answers. One
 * row written for each batch. Nothing depends on it: a lost batch is a few counts less.
 */
export class RegionMetrics extends DurableObject<Env> {
  #counted: Counted | null = null;

  /** Adds a batch of counts. */
  async add(series: Series): Promise<void> {
    const { sinceMs, counters, gauges } = this.#read();
    const sum: Record<string, number> = { ...counters };
    let size = Object.keys(sum).length;
    for (const [name, value] of Object.entries(series)) {
      if (sum[name] === undefined && ++size > SERIES_MAX) continue;
      sum[name] = (sum[name] ?? 0) + value;
    }
    this.#write({ sinceMs, counters: sum, gauges });
  }

  /** Takes what a sweep found, in place of what the one before did. */
  async setGauges(series: Series): Promise<void> {
    this.#write({ ...this.#read(), gauges: { atMs: now(this.env), series } });
  }

  async read(): Promise<Counted> {
    return this.#read();
  }

  #read(): Counted {
    this.#counted ??= this.ctx.storage.kv.get<Counted>("counted") ?? null;
    return this.#counted ?? { sinceMs: now(this.env), counters: {}, gauges: null };
  }

  #write(counted: Counted): void {
    this.ctx.storage.kv.put("counted", counted);
    this.#counted = counted;
  }
}
