import { countsModel } from "../../../shared/budgets.ts";
import type { Budget, BudgetOwner, BudgetUnit } from "../../../shared/budgets.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../../shared/failure.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import { BUDGET_PERIODS } from "../../../shared/key-terms.ts";
import type { BudgetPeriod } from "../../../shared/key-terms.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { periodEndMs } from "../../../shared/period.ts";
import { computeHoldableShare } from "./ledger.ts";
import type { HoldLimit } from "./ledger.ts";
import {
  addToBucket,
  bucketAt,
  hasLaterPeriod,
  findTimeWithCapacity,
  sumInWindow,
} from "../../../shared/budget-meter.ts";
import type { BudgetTime, BucketSums } from "../../../shared/budget-meter.ts";
import type { OpenHold } from "./open-holds.ts";

/** A limit and the amount counted up to the newest ledger row. */
export type CountedLimit = BudgetOwner & {
  readonly budget: Budget;
  /** Counting starts after this ledger row, at `sinceMs` (Unix ms). */
  readonly sinceSeq: number;
  readonly sinceMs: number;
  readonly tally: BucketSums;
};

/** A limit with its settled amounts and the amounts of open holds. */
export type Meter = CountedLimit & {
  /** Amounts of open holds by period. Rolling windows and `total` have one entry. */
  readonly held: Map<number, number>;
};

/**
 * Returns a limit for an end user's quota, or for `budget_dollars` of a key or session. An `amount`
 * of null counts spend without limiting it.
 */
export function dollarFieldLimit(
  owner: BudgetOwner,
  window: string,
  { amount, tally }: { readonly amount: Micros | null; readonly tally: BucketSums },
): CountedLimit {
  const rest = { models: null, onExceeded: "reject", alertAt: null } as const;
  const budget = {
    id: window,
    unit: "dollars",
    amount: amount ?? Infinity,
    window,
    ...rest,
  } as const;
  return { ...owner, budget, sinceSeq: 0, sinceMs: 0, tally };
}

/**
 * Reports whether a limit is an end user's quota. It must cover only a hold's estimated cost, not
 * its maximum, so a charge can exceed it.
 */
export const isQuotaLimit = (meter: Pick<CountedLimit, "budget" | "scope">): boolean =>
  meter.scope === "end_user" && isDollarFieldLimit(meter);

/**
 * Reports whether a limit is a quota or `budget_dollars`. These have no budget ID, so `budget.id`
 * is the window.
 */
export const isDollarFieldLimit = ({ budget }: Pick<CountedLimit, "budget">): boolean =>
  budget.id === budget.window;

export const createMeterWithoutHolds = (limit: CountedLimit): Meter => ({
  ...limit,
  held: new Map(),
});

/** Returns the meter with the budget of `other`, but its own count. */
export const withBudget = (meter: Meter, other: CountedLimit | undefined): Meter => ({
  ...meter,
  budget: other?.budget ?? meter.budget,
});

export function isAnyModelCounted(budget: Budget, models: readonly string[] | null): boolean {
  return models === null || models.some((model) => countsModel(budget, model));
}

/** Adds a hold's amount to the meter (`sign` 1) or subtracts it (-1). */
export function adjustMeterHolds({ budget, held }: Meter, hold: OpenHold, sign: 1 | -1): void {
  if (!isAnyModelCounted(budget, hold.models ?? null)) return;
  const amounts = { dollars: hold.granted, tokens: hold.tokens ?? 0, requests: 1 };
  const bucket = heldBucket(budget.window, hold);
  const sum = (held.get(bucket) ?? 0) + sign * amounts[budget.unit];
  if (sum === 0) held.delete(bucket);
  else held.set(bucket, sum);
}

/**
 * Returns the number of the calendar period for which `Meter.held` counts a hold, or 0 for other
 * windows.
 */
function heldBucket(window: string, { period }: Pick<BudgetTime, "period">): number {
  const isCalendar = window === "day" || window === "week" || window === "month";
  return isCalendar ? bucketAt(window, { period, nowMs: 0 }) : 0;
}

/** The parts of a settled request that budgets count. */
export type CountedRow = {
  readonly seq: number;
  readonly period: BudgetTime["period"];
  readonly atMs: number;
  readonly models: readonly string[] | null;
  readonly amounts: Readonly<Record<BudgetUnit, number>>;
};

/** A meter before and after a charge. */
export type MeterChange = {
  readonly meter: Meter;
  readonly before: number;
  readonly after: number;
  readonly updated: Meter;
};

/** Returns a meter's change, or null if its budget doesn't count the request. */
export function changeMeter(meter: Meter, row: CountedRow): MeterChange | null {
  const { budget, sinceSeq, tally } = meter;
  const { period, atMs: nowMs } = row;
  const at = { period, nowMs };
  const amount = row.amounts[budget.unit];
  if (amount === 0 || row.seq <= sinceSeq || !isAnyModelCounted(budget, row.models)) return null;
  const counted = { ...meter, tally: addToBucket(budget.window, tally, { at, amount }) };
  const before = sumInWindow(budget.window, tally, at);
  return { meter, before, after: sumInWindow(budget.window, counted.tally, at), updated: counted };
}

/** Returns a limit's settled and held amounts, `left` (before holds) and `free` (after holds). */
export function meterAmountsAt(meter: Meter, at: BudgetTime) {
  const { budget, tally } = meter;
  const settled = sumInWindow(budget.window, tally, at);
  const held = meter.held.get(heldBucket(budget.window, at)) ?? 0;
  return { settled, held, left: budget.amount - settled, free: budget.amount - settled - held };
}

export function collectDollarLimits(meters: readonly Meter[], at: BudgetTime): HoldLimit[] {
  return meters
    .filter(({ budget }) => budget.unit === "dollars" && budget.amount !== Infinity)
    .map((meter) => {
      const { left, held } = meterAmountsAt(meter, at);
      return {
        left,
        held,
        isStrict: !isQuotaLimit(meter),
        blocksAtZero: true,
        refuse: (short) => budgetFailure(meter, at, short),
      };
    });
}

export function checkRequestCountBudgets(meters: readonly Meter[], at: BudgetTime): Refusal | null {
  for (const meter of meters) {
    if (meter.budget.unit !== "requests") continue;
    // Running requests don't count, so waiting for them frees nothing.
    const short = { required: 1, onlyHolds: false };
    if (meterAmountsAt(meter, at).free < 1) return refuse(budgetFailure(meter, at, short));
  }
  return null;
}

/**
 * Returns the tokens to hold within the token budgets. Without a token budget, returns `granted`.
 */
export function decideTokensWithinBudgets(
  meters: readonly Meter[],
  at: BudgetTime,
  { request, granted }: { readonly request: HoldRequest; readonly granted: number | null },
): Result<number | null> {
  const { least: leastOutput, most } = request.tokens;
  if (request.placed !== undefined) return success(granted);
  const least = request.hasCap ? most : leastOutput;
  let tokens = granted;
  for (const meter of meters) {
    if (meter.budget.unit !== "tokens") continue;
    const { left, free } = meterAmountsAt(meter, at);
    if (free < Math.max(least, 1)) {
      const onlyHolds = left >= Math.max(least, 1);
      return refuse(budgetFailure(meter, at, { required: least, onlyHolds }));
    }
    const share = least + computeHoldableShare(free - least, request.hasCap);
    tokens = Math.min(tokens ?? most, share);
  }
  return success(tokens);
}

type Shortage = { readonly required: number; readonly onlyHolds: boolean };

function budgetFailure(meter: Meter, at: BudgetTime, short: Shortage): Failure {
  if (isDollarFieldLimit(meter)) return fieldLimitFailure(meter, at, short);
  const { budget, scope, tally } = meter;
  const { required, onlyHolds } = short;
  const { left, held, free } = meterAmountsAt(meter, at);
  const missing = Math.max(1, required - free);
  return {
    kind: "budget_exceeded",
    scope,
    budgetId: budget.id,
    unit: budget.unit,
    window: budget.window,
    limit: budget.amount,
    left: Math.max(0, left),
    held,
    required,
    resetsAt: findTimeWithCapacity(budget.window, tally, { at, missing }),
    onlyHolds,
  };
}

function fieldLimitFailure(
  meter: Meter,
  at: BudgetTime,
  { required, onlyHolds }: Shortage,
): Failure {
  const { left, held } = meterAmountsAt(meter, at);
  const period = fieldLimitPeriod(meter);
  const limit = micros(meter.budget.amount);
  const amounts = {
    leftMicro: micros(Math.max(0, left)),
    heldMicro: micros(held),
    requiredMicro: micros(required),
    onlyHolds,
  };
  if (meter.scope === "end_user" && (period === "day" || period === "month")) {
    const resetsAt = periodEndMs(at.period, period);
    return { kind: "quota_exceeded", period, quotaMicro: limit, ...amounts, resetsAt };
  }
  const resetsAt = period === null ? null : periodEndMs(at.period, period);
  const ofSession = meter.scope === "session" && { session: true as const };
  return {
    kind: "key_budget_exceeded",
    period,
    budgetMicro: limit,
    ...amounts,
    resetsAt,
    ...ofSession,
  };
}

/**
 * Returns the period of a limit set by a field: a quota or `budget_dollars`. Null for other
 * budgets.
 */
export function fieldLimitPeriod({ budget }: Pick<CountedLimit, "budget">): BudgetPeriod | null {
  return BUDGET_PERIODS.find((period) => period === budget.window) ?? null;
}

/**
 * Returns the lowest free amount of all dollar limits in micro-credits, or 0 if a limit's period
 * has ended.
 */
export function findFreeAmountForCharge(
  meters: readonly Meter[],
  at: BudgetTime,
  { model, isLate }: { readonly model: string; readonly isLate: boolean },
): number {
  let least = Infinity;
  for (const meter of meters) {
    const { budget, tally } = meter;
    if (budget.unit !== "dollars" || budget.amount === Infinity) continue;
    if (!isAnyModelCounted(budget, [model]) || (!isLate && isQuotaLimit(meter))) continue;
    const isOver = hasLaterPeriod(budget.window, tally, at);
    least = Math.min(least, isOver ? 0 : meterAmountsAt(meter, at).free);
  }
  return least;
}
