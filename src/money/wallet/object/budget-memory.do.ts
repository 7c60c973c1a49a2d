import type { BudgetOwner, BudgetScope } from "../../../shared/budgets.ts";
import { countRow, isFieldLimit, emptyMeter, adjustHeld, withBudget } from "../rules/limits.ts";
import type { MeterChange, CountedLimit, CountedRow, Meter } from "../rules/limits.ts";
import type { HoldTotals, OpenHold } from "../rules/open-holds.ts";
import {
  saveLastCountedRow,
  selectBudgets,
  selectBudgetScopes,
  selectMemberOfKey,
  updateTally,
} from "../tables/budget-rows.do.ts";
import { selectFieldLimits, storeFieldLimits } from "../tables/field-limits.do.ts";

export type BudgetMemory = {
  /** Scopes with budgets. Requests skip other scopes, except end user, key and session. */
  readonly scopes: Set<BudgetScope>;
  readonly meters: Map<string, readonly Meter[]>;
  /** Budgets changed since the newest checkpoint, by owner and ID. */
  readonly unsaved: Map<string, Meter>;
};

type MemoryWithBudgets = { readonly ledger: HoldTotals; readonly budgets: BudgetMemory };

export function loadBudgets(sql: SqlStorage): BudgetMemory {
  return { scopes: new Set(selectBudgetScopes(sql)), meters: new Map(), unsaved: new Map() };
}

type BudgetParties = Pick<OpenHold, "keyId" | "endUserId" | "session">;

const OWNERS_MAX = 2000;

function ownersOf(
  sql: SqlStorage,
  { scopes }: BudgetMemory,
  parties: BudgetParties,
): BudgetOwner[] {
  const owners: BudgetOwner[] = [];
  for (const scope of SCOPE_CHECK_ORDER) {
    if (!scopes.has(scope) && !SCOPES_WITH_FIELDS.has(scope)) continue;
    const subject = subjectOf(sql, scope, parties);
    if (subject !== null) owners.push({ scope, subject });
  }
  return owners;
}

function subjectOf(sql: SqlStorage, scope: BudgetScope, parties: BudgetParties): string | null {
  switch (scope) {
    case "end_user":
      return parties.endUserId;
    case "key":
      return parties.keyId;
    case "session":
      return parties.session ?? null;
    case "member":
      return selectMemberOfKey(sql, parties.keyId);
    case "organization":
      return "";
  }
}
const SCOPES_WITH_FIELDS: ReadonlySet<BudgetScope> = new Set(["end_user", "key", "session"]);
export const SCOPE_CHECK_ORDER = ["end_user", "key", "session", "member", "organization"] as const;

export function metersOf(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  parties: BudgetParties,
): Meter[] {
  return ownersOf(sql, memory.budgets, parties).flatMap((owner) =>
    metersOfOwner(sql, memory, owner),
  );
}

export const ownerKey = ({ scope, subject }: BudgetOwner): string => `${scope}\n${subject}`;

export function metersOfOwner(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  const { meters } = memory.budgets;
  const known = meters.get(ownerKey(owner));
  if (known !== undefined) return known;
  const read = peekMeters(sql, memory, owner);
  meters.set(ownerKey(owner), read);
  return read;
}

/** Returns an owner's meters without caching them. */
export function peekMeters(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  const { meters, scopes } = memory.budgets;
  const known = meters.get(ownerKey(owner));
  if (known !== undefined) return known;
  const entries = scopes.has(owner.scope) ? selectBudgets(sql, owner) : [];
  const rows = [...selectFieldLimits(sql, owner), ...entries];
  return rows.map((row) => meterWithHolds(sql, memory, row));
}

/** Reloads an owner's quotas or `budget_dollars` after its row was stored. */
export function reloadFieldLimits(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): void {
  const fields = selectFieldLimits(sql, owner).map((row) => meterWithHolds(sql, memory, row));
  const entries = budgetMetersOfOwner(sql, memory, owner);
  memory.budgets.meters.set(ownerKey(owner), [...fields, ...entries]);
}

export function fieldMetersOfOwner(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  return metersOfOwner(sql, memory, owner).filter(isFieldLimit);
}

/** Reloads the amounts of an owner's quotas or `budget_dollars`. Keeps the counts. */
export function reloadFieldAmounts(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): void {
  const before = fieldMetersOfOwner(sql, memory, owner);
  const read = selectFieldLimits(sql, owner);
  const fields = before.map((meter, at) => withBudget(meter, read[at]));
  memory.budgets.meters.set(ownerKey(owner), [
    ...fields,
    ...budgetMetersOfOwner(sql, memory, owner),
  ]);
}

export function moveMeters(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  from: BudgetOwner,
  to: BudgetOwner,
) {
  const { meters, unsaved } = memory.budgets;
  const moved = (meter: Meter): Meter => ({ ...meter, ...to });
  const fields = fieldMetersOfOwner(sql, memory, from).map(moved);
  meters.set(ownerKey(to), fields);
  for (const meter of fields) {
    const { id } = meter.budget;
    if (unsaved.delete(`${ownerKey(from)}\n${id}`)) unsaved.set(`${ownerKey(to)}\n${id}`, meter);
  }
  meters.delete(ownerKey(from));
}

export function evictMeters({ budgets }: MemoryWithBudgets, owner: BudgetOwner): void {
  for (const { budget } of budgets.meters.get(ownerKey(owner)) ?? []) {
    budgets.unsaved.delete(`${ownerKey(owner)}\n${budget.id}`);
  }
  budgets.meters.delete(ownerKey(owner));
}

/** Returns an owner's quotas or `budget_dollars` without caching them. */
export function readFieldLimits(
  sql: SqlStorage,
  { budgets }: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly CountedLimit[] {
  return budgets.meters.get(ownerKey(owner)) ?? selectFieldLimits(sql, owner);
}

export function budgetMetersOfOwner(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  return metersOfOwner(sql, memory, owner).filter((meter) => !isFieldLimit(meter));
}

export function meterWithHolds(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  limit: CountedLimit,
): Meter {
  const meter = emptyMeter(limit);
  for (const hold of memory.ledger.holds.values()) {
    if (subjectOf(sql, limit.scope, hold) === limit.subject) adjustHeld(meter, hold, 1);
  }
  return meter;
}

export function adjustHeldOfOwners(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  hold: OpenHold,
  sign: 1 | -1,
): void {
  for (const owner of ownersOf(sql, memory.budgets, hold)) {
    for (const meter of memory.budgets.meters.get(ownerKey(owner)) ?? []) {
      adjustHeld(meter, hold, sign);
    }
  }
}

export type CountedRequest = BudgetParties & CountedRow;

export function countRequest(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  request: CountedRequest,
): MeterChange[] {
  return metersOf(sql, memory, request).flatMap((meter) => countRow(meter, request) ?? []);
}

export function applyMeterChanges(
  { budgets }: MemoryWithBudgets,
  counts: readonly MeterChange[],
): void {
  for (const { meter, updated: counted } of counts) replaceMeter(budgets, meter, counted);
}

/** Replaces a budget in memory. The next checkpoint stores it. */
export function replaceMeter({ meters, unsaved }: BudgetMemory, before: Meter, after: Meter): void {
  const name = ownerKey(before);
  const list = meters.get(name) ?? [];
  meters.set(
    name,
    list.map((one) => (one.budget.id === before.budget.id ? after : one)),
  );
  unsaved.set(`${name}\n${before.budget.id}`, after);
}

export function storeMeters(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  { revision, floorId }: { readonly revision: number; readonly floorId: string },
): void {
  const { ledger, budgets } = memory;
  const owners = new Map<string, Meter>();
  for (const meter of budgets.unsaved.values()) {
    if (isFieldLimit(meter)) owners.set(ownerKey(meter), meter);
    else updateTally(sql, meter, revision);
  }
  for (const owner of owners.values()) {
    const limits = fieldMetersOfOwner(sql, memory, owner);
    storeFieldLimits(sql, owner, { limits, changed: revision });
  }
  if (budgets.scopes.size > 0) saveLastCountedRow(sql, { seq: ledger.seq, floorId });
}

export function clearUnsavedMeters({ budgets }: MemoryWithBudgets): void {
  budgets.unsaved.clear();
  if (budgets.meters.size > OWNERS_MAX) budgets.meters.clear();
}
