import { urlOf } from "../api/client.ts";
import type { Outcome } from "../api/client.ts";
import { quantile } from "../lib/spend.ts";
import { readOnce, useLoaded } from "./reads.ts";
import type { Read } from "./reads.ts";
import type { Range } from "./spend.ts";

/** First bytes of the newest charged requests of a range. */
export type Latency = {
  readonly requests: number;
  /** By UTC day, ms; null for a day without any. */
  readonly p50: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
};

const PAGES_MAX = 10;
const CALL = "GET /v1/generations";

/** p50 and p99 of each day's first bytes, of the newest 1,000 requests; null reads nothing. */
export function useLatency(range: Range | null, days: readonly string[]): Read<Latency> {
  const query = {
    from: range?.from ?? "",
    to: range?.to ?? "",
    status: "settled",
    limit: 100,
  } as const;
  const url = range === null ? null : `${urlOf(CALL, { query })}&first_byte`;
  return useLoaded(url, () => readLatency(query, days));
}

async function readLatency(
  query: Range & { readonly status: "settled"; readonly limit: number },
  days: readonly string[],
): Promise<Outcome<Latency>> {
  const byDay = new Map<string, number[]>(days.map((day) => [day, []]));
  let requests = 0;
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    // oxlint-disable-next-line no-await-in-loop -- a page says where the next begins
    const outcome = await readOnce(CALL, { query: { ...query, ...(after && { after }) } });
    if (!outcome.ok) return outcome;
    for (const { created_at, first_byte_ms } of outcome.value.generations) {
      if (first_byte_ms === null) continue;
      requests += 1;
      byDay.get(created_at.slice(0, 10))?.push(first_byte_ms);
    }
    after = outcome.value.next_after;
    if (after === undefined) break;
  }
  const at = (share: number) => days.map((day) => quantile(byDay.get(day) ?? [], share));
  return { ok: true, value: { requests, p50: at(0.5), p99: at(0.99) } };
}
