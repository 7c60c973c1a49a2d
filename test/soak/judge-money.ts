import { creationTimeOfId } from "../../src/shared/id.ts";
import { isPaid, killsIn, nameOf, sumOf, when } from "./trace.ts";
import type { Estate, Evidence, FaultWindow, Judged, LedgerRow, Trace } from "./trace.ts";
import { DRAIN_MS, MOCK_PRICES } from "./regions.ts";

const CHARGES = new Set(["usage", "shortfall", "rollup"]);

/**
 * Checks that the balance equals the ledger's sum, its last row's balance, and credits minus
 * charges.
 */
export function judgeLedgers({ estates }: Evidence): Judged {
  const off = sumOf(estates, ({ ledger, balance }) => Math.abs(total(ledger) - balance));
  const rows = sumOf(estates, ({ ledger }) => ledger.length);
  return {
    figure: `${off} micros off, ${estates.length} organizations, ${rows} rows`,
    broken: estates.flatMap(({ orgId, balance, ledger, credited }) => {
      const granted = total(ledger.filter(({ kind }) => kind === "credit"));
      const charged = 0 - total(ledger.filter(({ kind }) => CHARGES.has(kind)));
      return [
        ...when(total(ledger) !== balance, `ledger ${total(ledger)}, balance ${balance} micros`),
        ...when(granted !== credited, `${credited} micros were granted, the ledger has ${granted}`),
        ...when(
          credited - charged !== balance,
          `granted ${credited} - charged ${charged} is not ${balance} micros`,
        ),
        ...brokenRows(ledger),
      ].map((fault) => `${orgId}: ${fault}`);
    }),
  };
}

/** Returns rows whose number or balance doesn't follow the row before. */
function brokenRows(ledger: readonly LedgerRow[]): string[] {
  const faults = ledger.flatMap(({ seq, amount_micro: amount, balance_micro: now }, i) => {
    const { seq: last, balance_micro: before } = ledger[i - 1] ?? { seq: 0, balance_micro: 0 };
    const isOff = before + amount !== now;
    return [
      ...when(seq <= last, `row ${seq} follows row ${last}`),
      ...when(isOff, `row ${seq} says ${now} micros after ${before} and ${amount}`),
      ...when(now < 0, `row ${seq} is below 0`),
    ];
  });
  return faults.slice(0, 3);
}

function total(rows: readonly LedgerRow[]): number {
  return sumOf(rows, ({ amount_micro }) => amount_micro);
}

/** Checks that the wallet's reconciliation finds nothing, and that the database has the balance. */
export function judgeDatabases({ estates }: Evidence): Judged {
  const same = estates.filter(({ balance, book }) => balance === book).length;
  return {
    figure: `${same} of ${estates.length} the same`,
    broken: estates.flatMap(({ orgId, balance, book, differences }) => [
      ...when(book !== balance, `${orgId}: wallet ${balance}, book ${book} micros`),
      ...differences.map((difference) => `${orgId}: reconciled ${difference}`),
    ]),
  };
}

/** Checks that every hold ended and every message arrived. */
export function judgeRest({ estates, outboxes }: Evidence): Judged {
  const holds = estates.flatMap(({ orgId, openHolds, held }) =>
    when(openHolds !== 0 || held !== 0, `${orgId}: ${openHolds} holds of ${held} micros open`),
  );
  const messages = outboxes.flatMap(({ region, waiting, dead, parked }) =>
    when(
      waiting + dead + parked !== 0,
      `${region}: ${waiting} messages wait, ${dead} dead, ${parked} parked`,
    ),
  );
  const figure = `${estates.length} wallets, ${outboxes.length} outboxes`;
  return { figure, broken: [...holds, ...messages] };
}

/**
 * Prices in micro-credits per million tokens. The sandbox's prices are those of its documentation.
 */
const PRICES: readonly (readonly [models: RegExp, price: { input: number; output?: number }])[] = [
  [/^sandbox\//, { input: 1_000_000, output: 2_000_000 }],
  [/^mock\/embed/, MOCK_PRICES.embeddings],
  [/^mock\//, MOCK_PRICES.chat],
];
/** Maximum time after a disconnect in which a busy region can still read the request. */
const READ_LATE_MS = 30_000;

type Charge = { readonly orgId: string; readonly id: string; readonly micros: number };

/**
 * Checks charges. Every request has at most one charge. A complete response has exactly one, equal
 * to its reported cost and usage. A disconnect has one unless a region was killed. A rejection has
 * none, and no charge lacks a request.
 */
export function judgeCharges(evidence: Evidence): Judged {
  const { traces, estates, runMaxMs } = evidence;
  const kills = killsIn(evidence);
  const charges = estates.flatMap(chargesOf);
  const byId = Map.groupBy(charges, ({ id }) => id);
  const twice = [...byId.values()].flatMap((same) =>
    when(same.length > 1, `${same[0]?.id} of ${same[0]?.orgId} was charged ${same.length} times`),
  );
  const answered = traces.filter(({ id }) => id !== null);
  const disconnected = new Set(
    answered.filter((trace) => isDisconnected(trace, kills, DRAIN_MS + runMaxMs)),
  );
  const wrong = answered.flatMap((trace) => {
    const fault = faultOf(trace, byId.get(trace.id ?? "")?.[0], disconnected.has(trace));
    return when(fault !== null, `${nameOf(trace)}: ${fault}`);
  });
  const known = new Set(answered.map(({ id }) => id));
  const unknown = charges.filter(({ id }) => !known.has(id));
  const reported = answered.filter(({ cost, fate }) => cost !== null && fate === "whole");
  const priced = reported.filter(({ usage }) => usage !== null);
  return {
    figure:
      `${charges.length} charges, ${reported.length} told to the micro, ${priced.length} of them recomputed; ` +
      `${disconnected.size} of clients that left an answer, ${unknown.length} of clients that left unanswered`,
    broken: [...twice, ...wrong, ...unsent(unknown, traces)],
  };
}

function chargesOf({ orgId, ledger }: Estate): Charge[] {
  return ledger
    .filter(({ kind }) => kind === "usage")
    .map((row) => ({ orgId, id: row.generation_id ?? "none", micros: 0 - row.amount_micro }));
}

function faultOf(
  trace: Trace,
  charge: Charge | undefined,
  hasDisconnected: boolean,
): string | null {
  const { fate, status, orgId } = trace;
  if (charge !== undefined && charge.orgId !== orgId) return `charged to ${charge.orgId}`;
  const mustNot = !mayCost(trace);
  if (charge === undefined) {
    return mustNot || !(fate === "whole" || hasDisconnected)
      ? null
      : `${fate}, answered, never charged`;
  }
  if (mustNot) return `answered ${status}, charged ${charge.micros} micros`;
  return fate === "whole" || hasDisconnected ? wrongIn(trace, charge) : null; // else at most one charge
}

function wrongIn(trace: Trace, { micros }: Charge): string | null {
  const { cost } = trace;
  const price = priceOf(trace);
  if (cost !== null && cost !== micros) return `told ${cost}, charged ${micros} micros`;
  if (cost !== null && price !== null && cost !== price) {
    return `told ${cost} micros, its usage costs ${price}`;
  }
  return micros > 0 ? null : `charged ${micros} micros`;
}

/** Returns the price of the usage in micro-credits, rounded up once, or null without usage. */
function priceOf({ shape, usage }: Trace): number | null {
  const [, price] = PRICES.find(([models]) => models.test(shape)) ?? [];
  if (usage === null || price === undefined) return null;
  return Math.ceil((usage.input * price.input + usage.output * (price.output ?? 0)) / 1e6);
}

/**
 * Reports whether the client disconnected from a working provider's response, and no region was
 * killed until `afterMs` later.
 */
function isDisconnected(trace: Trace, kills: readonly FaultWindow[], afterMs: number): boolean {
  const { fate, status, firstByteMs, forced, sentMs, endedMs } = trace;
  if (fate !== "left" || status !== 200 || firstByteMs === null) return false;
  if (forced !== "nothing" || !mayCost(trace)) return false;
  return !kills.some(({ fromMs, untilMs }) => fromMs <= endedMs + afterMs && untilMs >= sentMs);
}

function mayCost(trace: Trace): boolean {
  return isPaid(trace) && (trace.status === null || trace.status === 200);
}

/**
 * Returns charges that fit no request. A charge whose ID no client has seen must belong to a
 * request that ended before its headers. It must be of the same organization and sent before the ID
 * was created. Each charge takes the matching request that ended first, so that none is wasted.
 */
function unsent(charges: readonly Charge[], traces: readonly Trace[]): string[] {
  const open = traces.filter((trace) => trace.id === null && mayCost(trace));
  const unmatched = open.toSorted((a, b) => a.endedMs - b.endedMs);
  const minted = charges.map((charge) => ({
    charge,
    at: creationTimeOfId(charge.id, "req_") ?? NaN,
  }));
  return minted
    .toSorted((a, b) => a.at - b.at)
    .flatMap(({ charge: { id, orgId, micros }, at }) => {
      const isIts = (one: Trace): boolean =>
        one.orgId === orgId && Math.floor(one.sentMs) <= at && at <= one.endedMs + READ_LATE_MS;
      const found = unmatched.findIndex(isIts);
      if (found !== -1) unmatched.splice(found, 1);
      return when(found === -1, `request ${id} of ${orgId}: charged ${micros}, sent by nobody`);
    });
}
