import { countsModel } from "../../../shared/budgets.ts";
import type { Budget, BudgetOwner, BudgetScope, BudgetUnit } from "../../../shared/budgets.ts";
import type { HoldTotals, OpenHold } from "../rules/open-holds.ts";
import { addTo, bucketOf, settledIn } from "../rules/meter.ts";
import type { Moment } from "../rules/meter.ts";
import {
  saveLastCountedRow,
  selectBudgets,
  selectBudgetScopes,
  selectMemberOfKey,
  updateTally,
} from "../tables/budget-rows.do.ts";
import type { BudgetRow } from "../tables/budget-rows.do.ts";

export type Meter = BudgetRow & {
  /**
   * Held amounts by period. Budgets with a rolling window and budgets for `total` have one entry.
   */
  readonly held: Map<number, number>;
};

export type BudgetMemory = {
  /** The scopes that have a budget. Requests skip the lookup of other scopes. */
  readonly scopes: Set<BudgetScope>;
  readonly meters: Map<string, readonly Meter[]>;
  /** Budgets changed since the newest checkpoint, by owner and ID. */
  readonly unsaved: Map<string, Meter>;
};

export type WithBudgets = { readonly ledger: HoldTotals; readonly budgets: BudgetMemory };

export function loadBudgets(sql: SqlStorage): BudgetMemory {
  return { scopes: new Set(selectBudgetScopes(sql)), meters: new Map(), unsaved: new Map() };
}

type Parties = Pick<OpenHold, "keyId" | "endUserId" | "session">;

const OWNERS_MAX = 2000;

function ownersOf(sql: SqlStorage, { scopes }: BudgetMemory, parties: Parties): BudgetOwner[] {
  if (scopes.size === 0) return [];
  const { endUserId, keyId, session = null } = parties;
  const memberId = scopes.has("member") ? selectMemberOfKey(sql, keyId) : null;
  const subjects = { end_user: endUserId, key: keyId, session, member: memberId, organization: "" };
  return CHECKED.flatMap((scope) => {
    const subject = subjects[scope];
    return subject === null || !scopes.has(scope) ? [] : [{ scope, subject }];
  });
}
const CHECKED = ["end_user", "key", "session", "member", "organization"] as const;

export function metersOf(sql: SqlStorage, memory: WithBudgets, parties: Parties): Meter[] {
  return ownersOf(sql, memory.budgets, parties).flatMap((owner) =>
    metersOfOwner(sql, memory, owner),
  );
}

export const nameOf = ({ scope, subject }: BudgetOwner): string => `${scope}\n${subject}`;

export function metersOfOwner(
  sql: SqlStorage,
  memory: WithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  const { meters } = memory.budgets;
  const known = meters.get(nameOf(owner));
  if (known !== undefined) return known;
  const read = selectBudgets(sql, owner).map((row) => meterOf(sql, memory, row));
  meters.set(nameOf(owner), read);
  return read;
}

export function meterOf(sql: SqlStorage, memory: WithBudgets, row: BudgetRow): Meter {
  const meter: Meter = { ...row, held: new Map() };
  for (const hold of memory.ledger.holds.values()) {
    const owners = ownersOf(sql, { ...memory.budgets, scopes: new Set([row.scope]) }, hold);
    if (owners.some(({ subject }) => subject === row.subject)) reserveIn(meter, hold, 1);
  }
  return meter;
}

/** Adds a hold (`sign` 1) or removes it (-1). */
export function reserve(sql: SqlStorage, memory: WithBudgets, hold: OpenHold, sign: 1 | -1): void {
  for (const owner of ownersOf(sql, memory.budgets, hold)) {
    for (const meter of memory.budgets.meters.get(nameOf(owner)) ?? []) {
      reserveIn(meter, hold, sign);
    }
  }
}

function reserveIn({ budget, held }: Meter, hold: OpenHold, sign: 1 | -1): void {
  if (!reservesIn(budget, hold.models ?? null)) return;
  const amounts = { dollars: hold.granted, tokens: hold.tokens ?? 0, requests: 1 };
  const bucket = heldBucket(budget.window, hold);
  const sum = (held.get(bucket) ?? 0) + sign * amounts[budget.unit];
  if (sum === 0) held.delete(bucket);
  else held.set(bucket, sum);
}

/**
 * Returns the period in which a hold counts. In a calendar window, it is the hold's own period.
 * Other windows count all open holds.
 */
function heldBucket(window: string, { period }: Pick<Moment, "period">): number {
  const isCalendar = window === "day" || window === "week" || window === "month";
  return isCalendar ? bucketOf(window, { period, nowMs: 0 }) : 0;
}

export function reservesIn(budget: Budget, models: readonly string[] | null): boolean {
  return models === null || models.some((model) => countsModel(budget, model));
}

export function heldInPeriod({ budget, held }: Meter, at: Pick<Moment, "period">): number {
  return held.get(heldBucket(budget.window, at)) ?? 0;
}

export type CountedRequest = Parties & {
  readonly seq: number;
  readonly period: Moment["period"];
  readonly atMs: number;
  readonly models: readonly string[] | null;
  readonly amounts: Readonly<Record<BudgetUnit, number>>;
};

export type Count = {
  readonly meter: Meter;
  readonly before: number;
  readonly after: number;
  readonly counted: Meter;
};

export function countsOf(sql: SqlStorage, memory: WithBudgets, request: CountedRequest): Count[] {
  const at = { period: request.period, nowMs: request.atMs };
  return metersOf(sql, memory, request).flatMap((meter) => {
    const { budget, sinceSeq, tally } = meter;
    const amount = request.amounts[budget.unit];
    if (amount === 0 || request.seq <= sinceSeq || !reservesIn(budget, request.models)) return [];
    const counted = { ...meter, tally: addTo(budget.window, tally, { at, amount }) };
    const before = settledIn(budget.window, tally, at);
    return { meter, before, after: settledIn(budget.window, counted.tally, at), counted };
  });
}

export function amountsOf(meter: Meter, at: Moment) {
  const { budget, tally } = meter;
  const settled = settledIn(budget.window, tally, at);
  const held = heldInPeriod(meter, at);
  return { settled, held, left: budget.amount - settled, free: budget.amount - settled - held };
}

export function applyCounts({ budgets }: WithBudgets, counts: readonly Count[]): void {
  for (const { meter, counted } of counts) replaceMeter(budgets, meter, counted);
}

/** Replaces a budget in memory. The next checkpoint stores it. */
export function replaceMeter({ meters, unsaved }: BudgetMemory, before: Meter, after: Meter): void {
  const name = nameOf(before);
  const list = meters.get(name) ?? [];
  meters.set(
    name,
    list.map((one) => (one.budget.id === before.budget.id ? after : one)),
  );
  unsaved.set(`${name}\n${before.budget.id}`, after);
}

export function storeCounts(
  sql: SqlStorage,
  { ledger, budgets }: WithBudgets,
  { revision, floorId }: { readonly revision: number; readonly floorId: string },
): void {
  if (budgets.scopes.size === 0) return;
  for (const meter of budgets.unsaved.values()) updateTally(sql, meter, revision);
  saveLastCountedRow(sql, { seq: ledger.seq, floorId });
}

export function countsStored({ budgets }: WithBudgets): void {
  budgets.unsaved.clear();
  if (budgets.meters.size > OWNERS_MAX) budgets.meters.clear();
}
