import { rollingMinutes } from "../../../shared/budgets.ts";
import type {
  Budget,
  BudgetOwner,
  BudgetScope,
  BudgetUnit,
  BudgetStatus,
} from "../../../shared/budgets.ts";
import { DAY_MS, timestamp } from "../../../shared/clock.ts";
import { meterAmountsAt, isDollarFieldLimit } from "../rules/limits.ts";
import type { CountedLimit, Meter } from "../rules/limits.ts";
import {
  addToBucket,
  bucketAt,
  clampFutureBuckets,
  findTimeWithCapacity,
} from "../../../shared/budget-meter.ts";
import type { UsageTotalsByGroup } from "../rules/usage-totals.ts";
import {
  putBudgetRow,
  saveLastCountedLedgerRow,
  markBudgetRemoved,
  selectKeysOfMember,
  selectPeriodUsage,
} from "../tables/budget-rows.do.ts";
import type { PeriodUsageQuery } from "../tables/budget-rows.do.ts";
import {
  budgetMetersOfOwner,
  fieldMetersOfOwner,
  createMeterWithHolds,
  metersOfOwner,
  budgetOwnerKey,
  replaceMeter,
  metersOfRequest,
} from "./budget-memory.do.ts";
import type { Tx } from "./memory.do.ts";
import type { Session } from "../../../shared/session.ts";

/**
 * Replaces an owner's budgets. A budget with the same unit, window and models keeps its count. A
 * new calendar budget for all models starts with its period's usage. Other new budgets start at
 * zero.
 */
export function setBudgets(tx: Tx, owner: BudgetOwner, budgets: readonly Budget[]): void {
  const { memory, sql, storage } = tx;
  const fields = fieldMetersOfOwner(tx, owner);
  const before = budgetMetersOfOwner(tx, owner);
  if (hasSameBudgets(before, budgets)) return;
  const after = budgets.map((budget): Meter => {
    const known = before.find((meter) => meter.budget.id === budget.id);
    if (known === undefined) return createBudgetMeter(tx, owner, budget);
    return { ...known, budget, sinceSeq: memory.ledger.seq }; // the budget has counted all ledger rows so far
  });
  const changed = memory.row.revision + 1;
  storage.transactionSync(() => {
    for (const { budget } of before) markBudgetRemoved(sql, { ...owner, id: budget.id }, changed);
    for (const [place, meter] of after.entries()) putBudgetRow(sql, meter, { place, changed });
    const { floorId, ledger } = memory;
    if (memory.budgets.scopes.size === 0) {
      saveLastCountedLedgerRow(sql, { seq: ledger.seq, floorId });
    }
  });
  const { meters, scopes, unsaved } = memory.budgets;
  for (const { budget } of before) unsaved.delete(`${budgetOwnerKey(owner)}\n${budget.id}`);
  meters.set(budgetOwnerKey(owner), [...fields, ...after]);
  if (after.length > 0) scopes.add(owner.scope);
  memory.hasChanges = true;
}

export function syncBudgets(
  tx: Tx,
  owner: BudgetOwner,
  budgets: readonly Budget[] | null | undefined,
): void {
  const list = budgets ?? [];
  if (list.length === 0 && !tx.memory.budgets.scopes.has(owner.scope)) return;
  setBudgets(tx, owner, list);
}

function hasSameBudgets(meters: readonly Meter[], budgets: readonly Budget[]): boolean {
  return (
    meters.length === budgets.length &&
    meters.every(({ budget }, at) => JSON.stringify(budget) === JSON.stringify(budgets[at]))
  );
}

function createBudgetMeter(tx: Tx, owner: BudgetOwner, budget: Budget): Meter {
  const { memory, nowMs, sql } = tx;
  const usage = initialUsage(tx, owner, budget);
  const row: CountedLimit = {
    ...owner,
    budget,
    sinceSeq: memory.ledger.seq,
    sinceMs: usage === null ? nowMs : DAY_MS * bucketAt(budget.window, tx),
    tally: usage === null ? [] : addToBucket(budget.window, [], { at: tx, amount: usage }),
  };
  const scopes = new Set([...memory.budgets.scopes, owner.scope]);
  const budgets = { ...memory.budgets, scopes };
  return createMeterWithHolds({ sql, memory: { ...memory, budgets } }, row);
}

function initialUsage(tx: Tx, owner: BudgetOwner, { unit, window, models }: Budget): number | null {
  const isCalendar = window === "day" || window === "week" || window === "month";
  const of = isCalendar && models === null ? usageLookupOf(tx, owner) : null;
  if (of === null) return null;
  const days: string[] = [];
  for (let day = bucketAt(window, tx); day * DAY_MS <= tx.memory.newest; day++) {
    days.push(timestamp(day * DAY_MS).slice(0, 10));
  }
  const stored = selectPeriodUsage(tx.sql, { ...of, days })[unit];
  return stored + usageInMemory(tx.memory.usage, { ...of, days }, unit);
}

/** Returns the query for an owner's daily totals, or null for a session, which has no totals. */
function usageLookupOf(
  { sql }: Tx,
  { scope, subject }: BudgetOwner,
): Omit<PeriodUsageQuery, "days"> | null {
  switch (scope) {
    case "organization":
      return { dimension: "day", names: [""] };
    case "key":
      return { dimension: "key", names: [subject] };
    case "member":
      return { dimension: "key", names: selectKeysOfMember(sql, subject) };
    case "end_user":
      return { dimension: "user", names: externalIdsOf(sql, subject) };
    case "session":
      return null;
  }
}

function externalIdsOf(sql: SqlStorage, endUserId: string): string[] {
  return sql
    .exec<{ name: string }>("SELECT external_id AS name FROM end_users WHERE id = ?", endUserId)
    .toArray()
    .map(({ name }) => name);
}

function usageInMemory(totals: UsageTotalsByGroup, of: PeriodUsageQuery, unit: BudgetUnit): number {
  let sum = 0;
  for (const total of totals.values()) {
    if (total.dimension !== of.dimension || !of.names.includes(total.name)) continue;
    if (!of.days.includes(total.day)) continue;
    const tokens = total.promptTokens + total.completionTokens;
    sum += { dollars: total.costMicro, tokens, requests: total.requests }[unit];
  }
  return sum;
}

/** Moves future entries of rolling windows to the present after the clock moved back. */
export function moveFutureBucketsToNow(tx: Tx): void {
  for (const owner of ownersWithRollingBudgets(tx)) {
    for (const meter of metersOfOwner(tx, owner)) {
      const { budget, tally } = meter;
      const clamped = clampFutureBuckets(budget.window, tally, tx);
      replaceMeter(tx.memory.budgets, meter, { ...meter, tally: clamped });
    }
  }
}

function ownersWithRollingBudgets({ sql }: Tx): BudgetOwner[] {
  return sql
    .exec<{ scope: BudgetScope; subject: string }>(
      "SELECT DISTINCT scope, subject FROM budgets WHERE budget ->> '$.window' LIKE '%m'",
    )
    .toArray();
}

function budgetStatusOf(tx: Tx, meter: Meter): BudgetStatus {
  const { budget, scope, sinceMs, tally } = meter;
  const { settled: used, held } = meterAmountsAt(meter, tx);
  const isRolling = rollingMinutes(budget.window) !== null;
  const resetsAt = findTimeWithCapacity(budget.window, tally, {
    at: tx,
    missing: isRolling ? used : 1,
  });
  return { scope, budget, used, held, resetsAt, countingSince: sinceMs };
}

export function budgetStatusesOfOwner(tx: Tx, owner: BudgetOwner): readonly BudgetStatus[] {
  return budgetMetersOfOwner(tx, owner).map((meter) => budgetStatusOf(tx, meter));
}

export function budgetStatusesOfKey(
  tx: Tx,
  keyId: string,
  session: Session | undefined,
): readonly BudgetStatus[] {
  const parties = { keyId, endUserId: null, session: session?.id ?? null };
  return metersOfRequest(tx, parties)
    .filter((meter) => !isDollarFieldLimit(meter))
    .filter(({ scope }) => session === undefined || scope === "session")
    .map((meter) => budgetStatusOf(tx, meter));
}
