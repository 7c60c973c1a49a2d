import { mintedAt } from "../../src/lib/id.ts";
import type { Estate } from "./judge-money.ts";
import { nameOf } from "./trace.ts";
import type { Restart, Trace, Verdict } from "./trace.ts";
import { MOCK_PRICES } from "./upstream.ts";

/** What is sold costs, in micros for a million tokens; the sandbox's prices are those of its manual. */
const PRICES: readonly (readonly [models: RegExp, price: { input: number; output?: number }])[] = [
  [/^sandbox\//, { input: 1_000_000, output: 2_000_000 }],
  [/^mock\/embed/, MOCK_PRICES.embeddings],
  [/^mock\//, MOCK_PRICES.chat],
];
/** A request may be read by a busy region so long after its client left. */
const READ_LATE_MS = 30_000;

type Charge = { readonly orgId: string; readonly id: string; readonly micros: number };

/** Kills of a region, which lose what it was doing, and how long a request may go on when its client left, in ms. */
export type Losses = { readonly kills: readonly Restart[]; readonly afterMs: number };

/**
 * Every request at most one charge; an answer read whole exactly one, of what the client was told, which is
 * its usage at its price; one whose client left in its midst exactly one too, where nothing was killed; a
 * refusal none; and no charge without a request that was sent.
 */
export function judgeCharges(
  traces: readonly Trace[],
  estates: readonly Estate[],
  losses: Losses,
): Verdict {
  const charges = estates.flatMap(chargesOf);
  const byId = Map.groupBy(charges, ({ id }) => id);
  const broken = [...byId.values()]
    .filter((same) => same.length > 1)
    .map((same) => `request ${same[0]?.id} of ${same[0]?.orgId} was charged ${same.length} times`);
  const known = new Set<string>();
  let [told, priced, left] = [0, 0, 0];
  for (const trace of traces) {
    if (trace.id === null) continue;
    known.add(trace.id);
    const charge = byId.get(trace.id)?.[0];
    const isLeft = isLeftCharged(trace, losses);
    const fault = isLeft ? leftFault(trace, charge) : faultOf(trace, charge);
    if (fault !== null) broken.push(`${nameOf(trace)}: ${fault}`);
    if (trace.cost !== null && trace.fate === "whole") told++;
    if (trace.cost !== null && trace.usage !== null) priced++;
    if (isLeft) left++;
  }
  const unknown = charges.filter(({ id }) => !known.has(id));
  broken.push(...unsent(unknown, traces));
  return {
    promise: "nothing charged twice, wrongly or for nothing",
    figure:
      `${charges.length} charges, ${told} told to the micro, ${priced} of them recomputed; ` +
      `${left} of clients that left an answer, ${unknown.length} of clients that left unanswered`,
    broken,
  };
}

function chargesOf({ orgId, ledger }: Estate): Charge[] {
  return ledger
    .filter(({ kind }) => kind === "usage")
    .map((row) => ({ orgId, id: row.generation_id ?? "none", micros: 0 - row.amount_micro }));
}

function faultOf(trace: Trace, charge: Charge | undefined): string | null {
  const { fate, status, orgId } = trace;
  if (charge !== undefined && charge.orgId !== orgId) return `charged to ${charge.orgId}`;
  if (!mayCost(trace)) {
    return charge === undefined ? null : `answered ${status}, charged ${charge.micros} micros`;
  }
  if (fate !== "whole") return null; // left, cut, broken: at most one charge
  if (charge === undefined) return "answered whole, never charged";
  return wholeFault(trace, charge);
}

function wholeFault(trace: Trace, charge: Charge): string | null {
  const { cost } = trace;
  if (cost !== null && cost !== charge.micros) {
    return `told ${cost}, charged ${charge.micros} micros`;
  }
  const price = priceOf(trace);
  if (cost !== null && price !== null && cost !== price) {
    return `told ${cost} micros, its usage costs ${price}`;
  }
  return charge.micros > 0 ? null : `charged ${charge.micros} micros`;
}

/** Usage at its price, rounded up once, in micros; null where the client was not told its usage. */
function priceOf({ shape, usage }: Trace): number | null {
  const [, price] = PRICES.find(([models]) => models.test(shape)) ?? [];
  if (usage === null || price === undefined) return null;
  const { input, output = 0 } = price;
  return Math.ceil((usage.input * input + usage.output * output) / 1e6);
}

/** Whether its client left an answer that had begun, of an upstream that goes on, and no region died meanwhile. */
function isLeftCharged(trace: Trace, { kills, afterMs }: Losses): boolean {
  const { fate, status, firstByteMs, forced, sentMs, endedMs } = trace;
  if (fate !== "left" || status !== 200 || firstByteMs === null) return false;
  if (forced !== "nothing" || !mayCost(trace)) return false;
  return !kills.some(({ fromMs, untilMs }) => fromMs <= endedMs + afterMs && untilMs >= sentMs);
}

function leftFault({ orgId }: Trace, charge: Charge | undefined): string | null {
  if (charge === undefined) return "left after its first byte, never charged";
  if (charge.orgId !== orgId) return `charged to ${charge.orgId}`;
  return charge.micros > 0 ? null : `left after its first byte, charged ${charge.micros} micros`;
}

function mayCost({ kind, status }: Trace): boolean {
  const isPaid = kind === "json" || kind === "stream" || kind === "embeddings";
  return isPaid && (status === null || status === 200);
}

/**
 * Charges of requests whose id no client has seen must each belong to one of the requests that ended
 * before their headers came: of the same organisation, sent no later than the id was minted.
 */
function unsent(charges: readonly Charge[], traces: readonly Trace[]): string[] {
  const open = traces.filter((trace) => trace.id === null && mayCost(trace));
  const byOrganization = Map.groupBy(open, ({ orgId }) => orgId);
  return [...Map.groupBy(charges, ({ orgId }) => orgId)].flatMap(([orgId, some]) =>
    unmatched(some, byOrganization.get(orgId) ?? []).map(
      ({ id, micros }) => `request ${id} of ${orgId}: charged ${micros} micros, sent by nobody`,
    ),
  );
}

/** Each charge takes, of the requests that it may belong to, the one that ends first: none is wasted. */
function unmatched(charges: readonly Charge[], requests: readonly Trace[]): Charge[] {
  const left = requests.toSorted((a, b) => a.endedMs - b.endedMs);
  const minted = charges
    .map((charge) => ({ charge, at: mintedAt(charge.id, "req_") ?? NaN }))
    .toSorted((a, b) => a.at - b.at);
  return minted.flatMap(({ charge, at }) => {
    const found = left.findIndex(
      ({ sentMs, endedMs }) => Math.floor(sentMs) <= at && at <= endedMs + READ_LATE_MS,
    );
    if (found === -1) return [charge];
    left.splice(found, 1);
    return [];
  });
}
