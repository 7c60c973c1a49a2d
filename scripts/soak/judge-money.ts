import { mintedAt } from "../../src/lib/id.ts";
import type { PairName } from "../region-names.ts";
import { isPaid, nameOf, sumOf } from "./trace.ts";
import type { Restart, Trace, Verdict } from "./trace.ts";
import { MOCK_PRICES } from "./world.ts";

export type LedgerRow = {
  readonly seq: number;
  readonly kind: string;
  readonly amount_micro: number;
  readonly balance_micro: number;
  readonly generation_id: string | null;
};
/** An organisation at rest. Money in micros. */
export type Estate = {
  readonly orgId: string;
  /** Of its wallet. */
  readonly balance: number;
  readonly openHolds: number;
  readonly held: number;
  /** All of it, in order. */
  readonly ledger: readonly LedgerRow[];
  /** What was granted, each reference once. */
  readonly credited: number;
  /** Its row in the region's D1; null without one. */
  readonly book: number | null;
  /** What POST reconcile found, in words. */
  readonly differences: readonly string[];
};
/** An outbox at rest. */
export type OutboxDepth = {
  readonly region: PairName;
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
};
const PAID = new Set(["usage", "shortfall", "rollup"]);

/** Sum of the ledger, the running balance of its rows and credits less charges: all are the balance. */
export function judgeLedgers(estates: readonly Estate[]): Verdict {
  const broken: string[] = [];
  let rows = 0;
  let off = 0;
  for (const { orgId, balance, ledger, credited } of estates) {
    rows += ledger.length;
    const sum = total(ledger);
    off += Math.abs(sum - balance);
    if (sum !== balance) broken.push(`${orgId}: ledger ${sum}, balance ${balance} micros`);
    const granted = total(ledger.filter(({ kind }) => kind === "credit"));
    if (granted !== credited) {
      broken.push(`${orgId}: ${credited} micros were granted, the ledger has ${granted}`);
    }
    const charged = 0 - total(ledger.filter(({ kind }) => PAID.has(kind)));
    if (credited - charged !== balance) {
      broken.push(`${orgId}: granted ${credited} - charged ${charged} is not ${balance} micros`);
    }
    broken.push(...brokenRows(orgId, ledger));
  }
  return {
    promise: "sum of the ledger = balance = credits - charges",
    figure: `${off} micros off, ${estates.length} organisations, ${rows} rows`,
    broken,
  };
}

/** Every row follows the one before: in number, and by its amount. */
function brokenRows(orgId: string, ledger: readonly LedgerRow[]): string[] {
  const broken: string[] = [];
  let [seq, balance] = [0, 0];
  for (const row of ledger) {
    if (row.seq <= seq) broken.push(`${orgId}: row ${row.seq} follows row ${seq}`);
    if (balance + row.amount_micro !== row.balance_micro) {
      broken.push(
        `${orgId}: row ${row.seq} says ${row.balance_micro} micros after ${balance} and ${row.amount_micro}`,
      );
    }
    if (row.balance_micro < 0) broken.push(`${orgId}: row ${row.seq} is below 0`);
    ({ seq, balance_micro: balance } = row);
  }
  return broken.slice(0, 3);
}

/** The wallet's own reconciliation finds nothing, and the book's row, read by itself, is the balance. */
export function judgeBooks(estates: readonly Estate[]): Verdict {
  const broken = estates.flatMap(({ orgId, balance, book, differences }) => [
    ...(book === balance ? [] : [`${orgId}: wallet ${balance}, book ${book} micros`]),
    ...differences.map((difference) => `${orgId}: reconciled ${difference}`),
  ]);
  const same = estates.filter(({ balance, book }) => balance === book).length;
  return {
    promise: "home = book, by reconciling and by reading",
    figure: `${same} of ${estates.length} the same`,
    broken,
  };
}

function total(rows: readonly LedgerRow[]): number {
  return sumOf(rows, ({ amount_micro }) => amount_micro);
}

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

function mayCost(trace: Trace): boolean {
  return isPaid(trace) && (trace.status === null || trace.status === 200);
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

/** Every hold ended and every message arrived. */
export function judgeRest(estates: readonly Estate[], outboxes: readonly OutboxDepth[]): Verdict {
  const broken = estates
    .filter(({ openHolds, held }) => openHolds !== 0 || held !== 0)
    .map(({ orgId, openHolds, held }) => `${orgId}: ${openHolds} holds of ${held} micros open`);
  for (const { region, waiting, dead, parked } of outboxes) {
    if (waiting + dead + parked === 0) continue;
    broken.push(`${region}: ${waiting} messages wait, ${dead} dead, ${parked} parked`);
  }
  const figure = `${estates.length} wallets, ${outboxes.length} outboxes`;
  return { promise: "no open hold, nothing in an outbox", figure, broken };
}
