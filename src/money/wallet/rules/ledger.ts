import { assert } from "../../../shared/assert.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Failure, Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { budgetLeft } from "./key-limits.ts";
import type { Budget } from "./key-limits.ts";
import { endOf } from "../../../shared/period.ts";
import { NOTHING, NO_CAP, quotaLeft } from "./quota.ts";
import type { Period } from "../../../shared/period.ts";
import type { EndUser, PerPeriod } from "./quota.ts";
import type { RequestState } from "../../../shared/contracts/wallet.ts";

/** The stored state of an ID. `granted` is null if it was never granted. */
export type KnownHold = {
  readonly id: string;
  readonly state: RequestState;
  readonly least: Micros;
  readonly most: Micros;
  readonly externalId: string | null;
  readonly endUserId: string | null;
  readonly keyId: string;
  /** The session that spends; absent or null without one. */
  readonly session?: string | null;
  readonly admittedAt: number;
  readonly period: Period;
  readonly granted: Micros | null;
  /** Tokens of the key's token limit; null without one. */
  readonly tokens: number | null;
  readonly charged: Micros;
  readonly shortfall: Micros;
  readonly failure: Failure | null;
};

/** The fields that a retry must repeat. */
type HoldContent = Pick<KnownHold, "id" | "least" | "most" | "externalId">;

/** The result of an outcome. `late`: the hold had expired. `overHold`: it cost more than held. */
export type Posting = {
  readonly charged: Micros;
  readonly shortfall: Micros;
  readonly late: boolean;
  readonly overHold: boolean;
};

/** An earlier outcome: the charge, or that there is none. */
type Recalled = { readonly charged: Micros; readonly shortfall: Micros } | "voided" | "unknown";

function chargeOf(cost: Micros, held: Micros, free: number): Micros {
  return micros(Math.min(cost, held + Math.max(0, free)));
}

/** Returns the maximum share of the free amount for one request. */
export function shareOf(free: number, hasCap: boolean): number {
  return hasCap ? free : Math.floor(free / 2);
}

/** A request to hold. The end user is the stored or the new one; null without one. */
export type HoldRequestFacts = {
  readonly least: Micros;
  readonly most: Micros;
  /** The minimum by the prompt's upper bound. Budgets are never passed, so they don't rely on estimates. */
  readonly sure: Micros;
  /** The client set an output cap. Without one, half of the free amount stays for the next request. */
  readonly hasCap: boolean;
  readonly endUser: EndUser | null;
  /** The key's budget; null without one. */
  readonly budget: Budget | null;
  readonly session?: Budget | null;
  readonly period: Period;
};

/** An amount that a request must fit into: the rest, and the open holds on it. */
type Allowance = {
  readonly left: number;
  readonly held: Micros;
  /** A zero quota or budget also blocks free requests. */
  readonly blocksAtZero: boolean;
  readonly refuse: (onlyHolds: boolean) => Failure;
};

/** Grants between minimum and maximum, or returns the limit in the way: month, day, key budget or balance. */
export function decideHold(books: HoldTotals, ask: HoldRequestFacts): Result<Micros> {
  const { least, most, sure, hasCap } = ask;
  assert(least >= 0 && least <= sure && sure <= most, "a hold needs 0 <= least <= sure <= most");
  const needed = neededOf(ask);
  const allowances = [...userAllowances(books, ask), ...budgetAllowances(books, ask)];
  allowances.push(balanceAllowance(books, ask));
  const fits = ({ blocksAtZero }: Allowance, amount: number): boolean =>
    amount >= needed && (amount > 0 || !blocksAtZero);
  const short = allowances.find((allowance) => !fits(allowance, allowance.left - allowance.held));
  if (short !== undefined) {
    return refuse(short.refuse(allowances.every((allowance) => fits(allowance, allowance.left))));
  }
  const free = Math.min(...allowances.map((allowance) => allowance.left - allowance.held));
  return success(micros(Math.max(needed, Math.min(most, shareOf(free, hasCap)))));
}

/** Returns the amount that every limit must have room for. Budgets don't rely on an estimate. */
const neededOf = (ask: HoldRequestFacts): Micros =>
  budgetsOf(ask).length === 0 ? ask.least : ask.sure;

/** Returns the budgets that a request must fit into. */
function budgetsOf({
  budget,
  session = null,
}: Pick<HoldRequestFacts, "budget" | "session">): Budget[] {
  if (budget === null && session === null) return [];
  return [budget, session].filter((one) => one !== null).filter((one) => one.budgetMicro !== null);
}

function balanceAllowance({ balance, held }: HoldTotals, ask: HoldRequestFacts): Allowance {
  const failure = { kind: "balance_too_low", balanceMicro: balance, heldMicro: held } as const;
  return {
    left: balance,
    held,
    blocksAtZero: false,
    refuse: (onlyHolds) => ({ ...failure, requiredMicro: neededOf(ask), onlyHolds }),
  };
}

function userAllowances(books: HoldTotals, ask: HoldRequestFacts): Allowance[] {
  const { endUser, period } = ask;
  if (endUser === null) return [];
  const left = quotaLeft(endUser, period, NOTHING);
  const held = heldBy(books, endUser.id, period);
  const quotas = [
    ["month", endUser.monthlyQuota, left.monthly, held.monthly],
    ["day", endUser.dailyQuota, left.daily, held.daily],
  ] as const;
  return quotas.flatMap(([which, quotaMicro, leftOf, heldMicro]) => {
    if (quotaMicro === null) return [];
    return {
      left: leftOf,
      held: heldMicro,
      blocksAtZero: true,
      refuse: (onlyHolds) => ({
        kind: "quota_exceeded",
        period: which,
        quotaMicro,
        leftMicro: notBelowZero(leftOf),
        heldMicro,
        requiredMicro: neededOf(ask),
        resetsAt: endOf(period, which),
        onlyHolds,
      }),
    };
  });
}

function budgetAllowances(books: HoldTotals, ask: HoldRequestFacts): Allowance[] {
  const { period } = ask;
  return budgetsOf(ask).map((budget) => {
    const { budgetMicro, budgetPeriod, isSession } = budget;
    const left = budgetLeft(budget, period, micros(0));
    const held = heldOfKey(books, budget, period);
    return {
      left,
      held,
      blocksAtZero: true,
      refuse: (onlyHolds) => ({
        kind: "key_budget_exceeded",
        period: budgetPeriod,
        budgetMicro: budgetMicro ?? micros(0),
        leftMicro: notBelowZero(left),
        heldMicro: held,
        requiredMicro: neededOf(ask),
        resetsAt: budgetPeriod === null ? null : endOf(period, budgetPeriod),
        onlyHolds,
        ...(isSession === true && { session: true }),
      }),
    };
  });
}

function notBelowZero(amount: number): Micros {
  return micros(Math.max(0, Number.isFinite(amount) ? amount : 0));
}

/** Returns the first response to an ID. Different content is a bug. */
export function recallHold(known: KnownHold, content: HoldContent): Result<Micros> | null {
  if (known.granted === null && known.state === "voided") return refuse({ kind: "overloaded" });
  const same =
    known.least === content.least &&
    known.most === content.most &&
    known.externalId === content.externalId;
  assert(same, `hold ${content.id} came again with other content`);
  if (known.failure !== null) return refuse(known.failure);
  const stands = known.state === "held" || known.state === "settled";
  return stands && known.granted !== null ? success(known.granted) : refuse({ kind: "overloaded" });
}

/**
 * Charges at most the hold plus the free amount, and never above the key's budget. An expired hold holds
 * nothing, and is also bound by its end user's day and month of admission.
 */
export function decideSettle(
  books: HoldTotals,
  settled: {
    readonly known: KnownHold | OpenHold;
    readonly cost: Micros;
    readonly endUser: EndUser | null;
    readonly budget: Budget | null;
    readonly session?: Budget | null;
  },
): Posting {
  const { known, cost, endUser } = settled;
  assert(cost >= 0, "a cost is never negative");
  const { period } = known;
  const ofBudget = budgetsOf(settled).reduce((least, budget) => {
    const held = heldOfKey(books, budget, period);
    return Math.min(least, budgetLeft(budget, period, held));
  }, Infinity);
  const open = books.holds.get(known.id);
  if (open !== undefined) {
    const charged = chargeOf(cost, open.granted, Math.min(freeOf(books), ofBudget));
    const overHold = cost > open.granted;
    return { charged, shortfall: micros(Math.max(0, cost - charged)), late: false, overHold };
  }
  const left =
    endUser === null ? NO_CAP : quotaLeft(endUser, period, heldBy(books, endUser.id, period));
  const free = Math.min(freeOf(books), left.daily, left.monthly, ofBudget);
  const charged = chargeOf(cost, micros(0), free);
  return { charged, shortfall: micros(Math.max(0, cost - charged)), late: true, overHold: false };
}

/** Returns the earlier outcome of an ID, or null if it isn't decided. */
export function recallSettle(known: KnownHold): Recalled | null {
  switch (known.state) {
    case "settled":
      return { charged: known.charged, shortfall: known.shortfall };
    case "voided":
      return "voided";
    case "refused":
      return "unknown";
    case "held":
    case "expired":
      return null;
  }
}

/** A hold that isn't settled, voided or expired. Times are Unix ms. */
export type OpenHold = {
  readonly id: string;
  readonly granted: Micros;
  readonly externalId: string | null;
  /** The end user it counts against; null without one. */
  readonly endUserId: string | null;
  readonly keyId: string;
  /** The session that spends; absent or null without one. */
  readonly session?: string | null;
  readonly admittedAt: number;
  /** The day and month of admission, in which its spend counts. */
  readonly period: Period;
  readonly expiresAt: number;
};

/** The totals that decide. They are derived from the tables and changed only by the functions below. */
export type HoldTotals = {
  seq: number;
  balance: Micros;
  held: Micros;
  readonly holds: Map<string, OpenHold>;
  readonly holdsByPayer: Map<string, Set<OpenHold>>;
  /** Lower bound for the next expiry; Infinity without holds. */
  nextExpiry: number;
};

export function emptyTotals(): HoldTotals {
  return {
    seq: 0,
    balance: micros(0),
    held: micros(0),
    holds: new Map(),
    holdsByPayer: new Map(),
    nextExpiry: Infinity,
  };
}

/** Returns the balance without open holds. */
export function freeOf(books: HoldTotals): Micros {
  return micros(books.balance - books.held);
}

function heldBy(books: HoldTotals, endUserId: string, period: Period): PerPeriod {
  let daily = 0;
  let monthly = 0;
  for (const hold of books.holdsByPayer.get(endUserId) ?? []) {
    if (hold.period.day === period.day) daily += hold.granted;
    if (hold.period.month === period.month) monthly += hold.granted;
  }
  return { daily: micros(daily), monthly: micros(monthly) };
}

/** Returns a key's open holds in a budget period of admission. */
export function heldOfKey(
  books: HoldTotals,
  { keyId, budgetPeriod }: Pick<Budget, "keyId" | "budgetPeriod">,
  period: Period,
): Micros {
  let held = 0;
  for (const hold of books.holdsByPayer.get(keyId) ?? []) {
    if (budgetPeriod === null || hold.period[budgetPeriod] === period[budgetPeriod]) {
      held += hold.granted;
    }
  }
  return micros(held);
}

function payersOf({ endUserId, keyId, session = null }: OpenHold): readonly string[] {
  const payers = endUserId === null ? [keyId] : [keyId, endUserId];
  return session === null ? payers : [...payers, session];
}

export function openHold(books: HoldTotals, hold: OpenHold): void {
  assert(!books.holds.has(hold.id), "a hold opens once");
  books.holds.set(hold.id, hold);
  books.held = micros(books.held + hold.granted);
  assert(books.held <= books.balance, "holds never exceed the balance");
  books.nextExpiry = Math.min(books.nextExpiry, hold.expiresAt);
  for (const payer of payersOf(hold)) {
    const others = books.holdsByPayer.get(payer) ?? new Set();
    books.holdsByPayer.set(payer, others.add(hold));
  }
}

/** Moves open holds from one end user to another. */
export function moveHolds(books: HoldTotals, fromId: string, toId: string): void {
  for (const hold of books.holdsByPayer.get(fromId) ?? []) {
    const moved = { ...hold, endUserId: toId };
    books.holds.set(hold.id, moved); // keeps its position
    for (const payer of payersOf(hold)) books.holdsByPayer.get(payer)?.delete(hold);
    for (const payer of payersOf(moved)) {
      const others = books.holdsByPayer.get(payer) ?? new Set();
      books.holdsByPayer.set(payer, others.add(moved));
    }
  }
  books.holdsByPayer.delete(fromId);
}

/** Removes an ended hold. Unknown IDs are ignored. */
export function closeHold(books: HoldTotals, id: string): void {
  const hold = books.holds.get(id);
  if (hold === undefined) return;
  books.holds.delete(id);
  books.held = micros(books.held - hold.granted);
  for (const payer of payersOf(hold)) {
    const others = books.holdsByPayer.get(payer);
    others?.delete(hold);
    if (others?.size === 0) books.holdsByPayer.delete(payer);
  }
}

/** Returns the holds that expire by `nowMs`, in order of admission. */
export function dueHolds(books: HoldTotals, nowMs: number): OpenHold[] {
  if (nowMs < books.nextExpiry) return [];
  const due = [...books.holds.values()].filter((hold) => hold.expiresAt <= nowMs);
  books.nextExpiry = [...books.holds.values()]
    .filter((hold) => hold.expiresAt > nowMs)
    .reduce((least, hold) => Math.min(least, hold.expiresAt), Infinity);
  return due;
}
