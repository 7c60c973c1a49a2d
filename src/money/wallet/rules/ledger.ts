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

/** What the wallet remembers of an id. `granted` is null when it was never granted. */
export type KnownHold = {
  readonly id: string;
  readonly state: RequestState;
  readonly least: Micros;
  readonly most: Micros;
  readonly externalId: string | null;
  readonly endUserId: string | null;
  readonly keyId: string;
  /** The session that spends; left out or null without one. */
  readonly session?: string | null;
  readonly admittedAt: number;
  readonly period: Period;
  readonly granted: Micros | null;
  /** Granted of its key's token limit; null without one. */
  readonly tokens: number | null;
  readonly charged: Micros;
  readonly shortfall: Micros;
  /** Why it was refused, when it was. */
  readonly failure: Failure | null;
};

/** The part of a hold that must be the same when its id comes again. */
type HoldContent = Pick<KnownHold, "id" | "least" | "most" | "externalId">;

/** What an outcome came to. `late`: the hold had expired. `overHold`: it cost more than was held. */
export type Posting = {
  readonly charged: Micros;
  readonly shortfall: Micros;
  readonly late: boolean;
  readonly overHold: boolean;
};

/** An outcome decided before: what was charged, or that nothing can be. */
type Recalled = { readonly charged: Micros; readonly shortfall: Micros } | "voided" | "unknown";

/** What a cost comes to, of what its hold has and what is free beside it. */
function chargeOf(cost: Micros, held: Micros, free: number): Micros {
  return micros(Math.min(cost, held + Math.max(0, free)));
}

/** The most that one request may have of what is free. */
export function shareOf(free: number, hasCap: boolean): number {
  return hasCap ? free : Math.floor(free / 2);
}

/** What is asked for: the end user as it is, or as it would be made; null without one. */
export type HoldRequestFacts = {
  readonly least: Micros;
  readonly most: Micros;
  /** The least by the prompt's hard bound: a budget is never passed, so nothing is granted on an estimate. */
  readonly sure: Micros;
  /** Whether the client has bounded its output; otherwise half of what is free is left to the next request. */
  readonly hasCap: boolean;
  readonly endUser: EndUser | null;
  /** Its key's; null without one. */
  readonly budget: Budget | null;
  /** Its session's own. */
  readonly session?: Budget | null;
  readonly period: Period;
};

/** One amount that a request must fit into: what is left of it, and what open holds have of that. */
type Allowance = {
  readonly left: number;
  readonly held: Micros;
  /** A quota or budget of nothing blocks also what costs nothing. */
  readonly blocksAtZero: boolean;
  readonly refuse: (onlyHolds: boolean) => Failure;
};

/** Grants between least and most, or says what is in the way: month, day, key's budget, balance. */
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

/** What every allowance must have room for: a budget is granted nothing on an estimate. */
const neededOf = (ask: HoldRequestFacts): Micros =>
  budgetsOf(ask).length === 0 ? ask.least : ask.sure;

/** The budgets that a request must fit into. */
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

/** The answer an id got before: its grant, its refusal, or that it is over. Other content is a bug. */
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
 * Charges at most what is held plus what is free, and never over its key's budget. A hold that expired has
 * nothing held any more, and its end user's day and month of admission bound it too: losing it was our fault.
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

/** What a settled, voided or refused id answers again; null when its outcome is still to be decided. */
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

/** A hold that nobody has settled, voided or let expire. Times in Unix ms. */
export type OpenHold = {
  readonly id: string;
  readonly granted: Micros;
  readonly externalId: string | null;
  /** The end user it counts against; null without one. */
  readonly endUserId: string | null;
  readonly keyId: string;
  /** The session that spends; left out or null without one. */
  readonly session?: string | null;
  readonly admittedAt: number;
  /** The day and month of admission that its spend counts in. */
  readonly period: Period;
  readonly expiresAt: number;
};

/** The totals that decide: derived from the tables, changed only by the functions below. */
export type HoldTotals = {
  /** Sequence of the newest ledger row. */
  seq: number;
  balance: Micros;
  /** Sum of what the open holds were granted. */
  held: Micros;
  readonly holds: Map<string, OpenHold>;
  /** By whom they count against: end user and key. */
  readonly holdsByPayer: Map<string, Set<OpenHold>>;
  /** No open hold expires before this; Infinity without any. */
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

/** What no open hold has reserved. */
export function freeOf(books: HoldTotals): Micros {
  return micros(books.balance - books.held);
}

/** What an end user's open holds reserve of a day and of a month, by their period of admission. */
function heldBy(books: HoldTotals, endUserId: string, period: Period): PerPeriod {
  let daily = 0;
  let monthly = 0;
  for (const hold of books.holdsByPayer.get(endUserId) ?? []) {
    if (hold.period.day === period.day) daily += hold.granted;
    if (hold.period.month === period.month) monthly += hold.granted;
  }
  return { daily: micros(daily), monthly: micros(monthly) };
}

/** What a key's open holds reserve of its budget, by their period of admission. */
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

/** The open holds of one end user count against another from now on. */
export function moveHolds(books: HoldTotals, fromId: string, toId: string): void {
  for (const hold of books.holdsByPayer.get(fromId) ?? []) {
    const moved = { ...hold, endUserId: toId };
    books.holds.set(hold.id, moved); // keeps its place
    for (const payer of payersOf(hold)) books.holdsByPayer.get(payer)?.delete(hold);
    for (const payer of payersOf(moved)) {
      const others = books.holdsByPayer.get(payer) ?? new Set();
      books.holdsByPayer.set(payer, others.add(moved));
    }
  }
  books.holdsByPayer.delete(fromId);
}

/** Forgets a hold that has come to its end; one that is not open is left alone. */
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

/** The open holds whose time is up at `nowMs`, in the order of their admission. */
export function dueHolds(books: HoldTotals, nowMs: number): OpenHold[] {
  if (nowMs < books.nextExpiry) return [];
  const due = [...books.holds.values()].filter((hold) => hold.expiresAt <= nowMs);
  books.nextExpiry = [...books.holds.values()]
    .filter((hold) => hold.expiresAt > nowMs)
    .reduce((least, hold) => Math.min(least, hold.expiresAt), Infinity);
  return due;
}
