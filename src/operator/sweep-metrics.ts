import * as z from "zod/mini";
import { logAlert } from "../shared/log.ts";
import { METRICS, metricSeriesName } from "../events/metrics/series.ts";
import type { MetricName } from "../events/metrics/series.ts";
import type { MetricValues } from "../shared/contracts/metrics.ts";
import type { OutboxState } from "../shared/contracts/outbox.ts";
import type { WalletHealth } from "../shared/contracts/wallet.ts";

/** Cloudflare's size limit of a D1 database and of a Durable Object. Alerts start at 70 %. */
export const STORAGE_BYTES_MAX = 10_000_000_000;
const ALERT_AT = 0.7;

const total = z._default(z.number(), 0);
export const sweepTotalsSchema = z.object({
  openHolds: total,
  oldestHoldMs: total,
  unpublished: total,
  conflicts: total,
  unavailable: total,
  walletBytes: total,
  bookBytes: total,
});
export type SweepTotals = Readonly<z.infer<typeof sweepTotalsSchema>>;

/** Totals of the wallets that a sweep has visited. */
export class SweepMetrics {
  #totals: SweepTotals;

  constructor(totals: SweepTotals = z.parse(sweepTotalsSchema, {})) {
    this.#totals = totals;
  }

  found(): SweepTotals {
    return this.#totals;
  }

  addWallet(orgId: string, vitals: WalletHealth): void {
    const found = this.#totals;
    this.#totals = {
      ...found,
      openHolds: found.openHolds + vitals.openHolds,
      oldestHoldMs: Math.max(found.oldestHoldMs, vitals.oldestHoldMs ?? 0),
      unpublished: found.unpublished + (vitals.isUnpublished ? 1 : 0),
      conflicts: found.conflicts + (vitals.isInConflict ? 1 : 0),
      walletBytes: Math.max(found.walletBytes, vitals.bytes),
    };
    if (isLarge(vitals.bytes)) logAlert("wallet_large", { org_id: orgId, bytes: vitals.bytes });
  }

  countUnavailable(): void {
    this.#totals = { ...this.#totals, unavailable: this.#totals.unavailable + 1 };
  }

  setDatabaseBytes(bytes: number): void {
    if (isLarge(bytes) && !isLarge(this.#totals.bookBytes)) logAlert("book_large", { bytes });
    this.#totals = { ...this.#totals, bookBytes: Math.max(this.#totals.bookBytes, bytes) };
  }

  series(): MetricValues {
    const found = this.#totals;
    return {
      ...gauge("holdsOpen", found.openHolds),
      ...gauge("holdOldest", found.oldestHoldMs / 1000),
      ...gauge("unpublished", found.unpublished),
      ...gauge("conflicts", found.conflicts),
      ...gauge("unavailable", found.unavailable),
      ...gauge("walletBytes", found.walletBytes),
      ...gauge("bookBytes", found.bookBytes),
    };
  }
}

/** An outbox's message counts. Null if it didn't respond. */
type OutboxDepth = { readonly name: string; readonly depth: OutboxState | null };

/** Returns the outboxes' gauges by receiver, such as `own`, `us` or `us/revocations`. */
export function outboxGauges(outboxes: readonly OutboxDepth[]): MetricValues {
  const silent = outboxes.filter(({ depth }) => depth === null).length;
  const series: Record<string, number> = { ...gauge("outboxesSilent", silent) };
  for (const { name, depth } of outboxes) {
    if (depth === null) continue;
    const receiver = name.replace(/\/\d+$/, "");
    const { waiting, dead, parked, oldestMs } = depth;
    for (const [state, count] of Object.entries({ waiting, dead, parked })) {
      const key = metricSeriesName(METRICS.outboxMessages.name, { receiver, state });
      series[key] = (series[key] ?? 0) + count;
    }
    const key = metricSeriesName(METRICS.outboxOldest.name, { receiver });
    series[key] = Math.max(series[key] ?? 0, (oldestMs ?? 0) / 1000);
  }
  return series;
}

function gauge(metric: MetricName, value: number): MetricValues {
  return { [METRICS[metric].name]: value };
}

function isLarge(bytes: number): boolean {
  return bytes >= STORAGE_BYTES_MAX * ALERT_AT;
}
