import { logAlert } from "../shared/log.ts";
import { METRICS, seriesOf } from "../events/metrics/series.ts";
import type { Labels, MetricName } from "../events/metrics/series.ts";
import type { Series } from "../shared/contracts/metrics.ts";
import type { Depth } from "../shared/contracts/outbox.ts";
import type { Vitals } from "../shared/contracts/wallet.ts";

/** D1 and an object's storage may hold 10 GB each (Cloudflare, limits); at 70 % somebody must know. */
export const BYTES_MAX = 10_000_000_000;
const ALERT_AT = 0.7;

/** Adds up what a sweep finds; its gauges are one moment's picture of the region. */
export class Depths {
  #openHolds = 0;
  #oldestHoldMs = 0;
  #unpublished = 0;
  #conflicts = 0;
  #unavailable = 0;
  #walletBytes = 0;
  #bookBytes = 0;
  readonly #outboxes: (readonly [string, Depth])[] = [];

  wallet(orgId: string, vitals: Vitals): void {
    this.#openHolds += vitals.openHolds;
    this.#oldestHoldMs = Math.max(this.#oldestHoldMs, vitals.oldestHoldMs ?? 0);
    this.#unpublished += vitals.isUnpublished ? 1 : 0;
    this.#conflicts += vitals.isInConflict ? 1 : 0;
    this.#walletBytes = Math.max(this.#walletBytes, vitals.bytes);
    if (isLarge(vitals.bytes)) logAlert("wallet_large", { org_id: orgId, bytes: vitals.bytes });
  }

  /** A wallet that did not open, or not in time. */
  unavailable(): void {
    this.#unavailable += 1;
  }

  outbox(name: string, depth: Depth): void {
    this.#outboxes.push([name, depth]);
  }

  book(bytes: number): void {
    this.#bookBytes = Math.max(this.#bookBytes, bytes);
    if (isLarge(bytes)) logAlert("book_large", { bytes });
  }

  series(): Series {
    return {
      ...one("holdsOpen", this.#openHolds),
      ...one("holdOldest", this.#oldestHoldMs / 1000),
      ...one("unpublished", this.#unpublished),
      ...one("conflicts", this.#conflicts),
      ...one("unavailable", this.#unavailable),
      ...one("walletBytes", this.#walletBytes),
      ...one("bookBytes", this.#bookBytes),
      ...this.#outboxSeries(),
    };
  }

  /** The shards of a receiver together: `own`, `us`, `us/revocations`. */
  #outboxSeries(): Series {
    const series: Record<string, number> = {};
    for (const [name, { waiting, dead, parked, oldestMs }] of this.#outboxes) {
      const receiver = name.replace(/\/\d+$/, "");
      for (const [state, count] of Object.entries({ waiting, dead, parked })) {
        const key = seriesOf(METRICS.outboxMessages.name, { receiver, state });
        series[key] = (series[key] ?? 0) + count;
      }
      const key = seriesOf(METRICS.outboxOldest.name, { receiver });
      series[key] = Math.max(series[key] ?? 0, (oldestMs ?? 0) / 1000);
    }
    return series;
  }
}

function one(metric: MetricName, value: number, labels: Labels = {}): Series {
  return { [seriesOf(METRICS[metric].name, labels)]: value };
}

function isLarge(bytes: number): boolean {
  return bytes >= BYTES_MAX * ALERT_AT;
}
