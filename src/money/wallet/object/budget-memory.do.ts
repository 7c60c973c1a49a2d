import type { BudgetOwner, BudgetScope } from "../../../shared/budgets.ts";
import {
  changeMeter,
  isDollarFieldLimit,
  createMeterWithoutHolds,
  adjustMeterHolds,
  withBudget,
} from "../rules/limits.ts";
import type { MeterChange, CountedLimit, CountedRow, Meter } from "../rules/limits.ts";
import type { HoldTotals, OpenHold } from "../rules/open-holds.ts";
import {
  saveLastCountedLedgerRow,
  selectBudgets,
  selectBudgetScopes,
  selectMemberOfKey,
  updateBudgetTally,
} from "../tables/budget-rows.do.ts";
import { selectFieldLimits, storeFieldLimits } from "../tables/field-limits.do.ts";

/** Cached meters of budgets and quotas. */
export type BudgetMemory = {
  /**
   * Scopes with budgets. A request checks these scopes in addition to end user, key and session.
   */
  readonly scopes: Set<BudgetScope>;
  readonly meters: Map<string, readonly Meter[]>;
  /** Budgets changed since the newest checkpoint, by owner and ID. */
  readonly unsaved: Map<string, Meter>;
};

/** The part of a transaction's context that exists before the wallet is loaded. */
type BudgetTx = {
  readonly sql: SqlStorage;
  readonly memory: { readonly ledger: HoldTotals; readonly budgets: BudgetMemory };
};

export function createBudgetMemory(sql: SqlStorage): BudgetMemory {
  return { scopes: new Set(selectBudgetScopes(sql)), meters: new Map(), unsaved: new Map() };
}

type BudgetParties = Pick<OpenHold, "keyId" | "endUserId" | "session">;

const OWNERS_MAX = 2000;

function ownersOf({ sql, memory }: BudgetTx, parties: BudgetParties): BudgetOwner[] {
  const owners: BudgetOwner[] = [];
  for (const scope of BUDGET_SCOPE_CHECK_ORDER) {
    if (!memory.budgets.scopes.has(scope) && !SCOPES_WITH_FIELDS.has(scope)) continue;
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
export const BUDGET_SCOPE_CHECK_ORDER = [
  "end_user",
  "key",
  "session",
  "member",
  "organization",
] as const;

/** Returns the meters of all budgets that count a request. */
export function metersOfRequest(tx: BudgetTx, parties: BudgetParties): Meter[] {
  return ownersOf(tx, parties).flatMap((owner) => metersOfOwner(tx, owner));
}

export const budgetOwnerKey = ({ scope, subject }: BudgetOwner): string => `${scope}\n${subject}`;

export function metersOfOwner(tx: BudgetTx, owner: BudgetOwner): readonly Meter[] {
  const meters = peekMeters(tx, owner);
  tx.memory.budgets.meters.set(budgetOwnerKey(owner), meters);
  return meters;
}

/** Returns an owner's meters without caching them. */
export function peekMeters(tx: BudgetTx, owner: BudgetOwner): readonly Meter[] {
  const { meters, scopes } = tx.memory.budgets;
  const known = meters.get(budgetOwnerKey(owner));
  if (known !== undefined) return known;
  const entries = scopes.has(owner.scope) ? selectBudgets(tx.sql, owner) : [];
  return [...selectFieldLimits(tx.sql, owner), ...entries].map((row) =>
    createMeterWithHolds(tx, row),
  );
}

/** Reloads an owner's quotas or `budget_dollars` after the owner's row has changed. */
export function reloadFieldLimits(tx: BudgetTx, owner: BudgetOwner): void {
  const limits = selectFieldLimits(tx.sql, owner);
  replaceFieldMeters(
    tx,
    owner,
    limits.map((row) => createMeterWithHolds(tx, row)),
  );
}

/** Reloads the amounts of an owner's quotas or `budget_dollars`, but keeps the counts. */
export function reloadFieldAmounts(tx: BudgetTx, owner: BudgetOwner): void {
  const limits = selectFieldLimits(tx.sql, owner);
  const before = fieldMetersOfOwner(tx, owner);
  replaceFieldMeters(
    tx,
    owner,
    before.map((meter, at) => withBudget(meter, limits[at])),
  );
}

function replaceFieldMeters(tx: BudgetTx, owner: BudgetOwner, fields: readonly Meter[]): void {
  const entries = budgetMetersOfOwner(tx, owner);
  tx.memory.budgets.meters.set(budgetOwnerKey(owner), [...fields, ...entries]);
}

/** Returns the meters of limits that have their own field, such as a daily quota. */
export function fieldMetersOfOwner(tx: BudgetTx, owner: BudgetOwner): readonly Meter[] {
  return metersOfOwner(tx, owner).filter(isDollarFieldLimit);
}

/** Returns an owner's meters, except those of quotas and `budget_dollars`. */
export function budgetMetersOfOwner(tx: BudgetTx, owner: BudgetOwner): readonly Meter[] {
  return metersOfOwner(tx, owner).filter((meter) => !isDollarFieldLimit(meter));
}

/** Moves a deleted end user's meters to a new end user. */
export function moveMeters(tx: BudgetTx, from: BudgetOwner, to: BudgetOwner): void {
  const { meters, unsaved } = tx.memory.budgets;
  const moved = (meter: Meter): Meter => ({ ...meter, ...to });
  const fields = fieldMetersOfOwner(tx, from).map(moved);
  meters.set(budgetOwnerKey(to), fields);
  for (const meter of fields) {
    const { id } = meter.budget;
    if (unsaved.delete(`${budgetOwnerKey(from)}\n${id}`)) {
      unsaved.set(`${budgetOwnerKey(to)}\n${id}`, meter);
    }
  }
  meters.delete(budgetOwnerKey(from));
}

export function evictMeters({ budgets }: BudgetTx["memory"], owner: BudgetOwner): void {
  for (const { budget } of budgets.meters.get(budgetOwnerKey(owner)) ?? []) {
    budgets.unsaved.delete(`${budgetOwnerKey(owner)}\n${budget.id}`);
  }
  budgets.meters.delete(budgetOwnerKey(owner));
}

/**
 * Returns the limits from an owner's fields (quotas or `budget_dollars`), and its budgets if
 * cached.
 */
export function readFieldLimits(
  { sql, memory }: BudgetTx,
  owner: BudgetOwner,
): readonly CountedLimit[] {
  return memory.budgets.meters.get(budgetOwnerKey(owner)) ?? selectFieldLimits(sql, owner);
}

export function createMeterWithHolds({ sql, memory }: BudgetTx, limit: CountedLimit): Meter {
  const meter = createMeterWithoutHolds(limit);
  for (const hold of memory.ledger.holds.values()) {
    if (subjectOf(sql, limit.scope, hold) === limit.subject) adjustMeterHolds(meter, hold, 1);
  }
  return meter;
}

/** Adds a hold to the meters that count it, or removes the hold. */
export function adjustHeldOfOwners(tx: BudgetTx, hold: OpenHold, sign: 1 | -1): void {
  for (const owner of ownersOf(tx, hold)) {
    const meters = tx.memory.budgets.meters.get(budgetOwnerKey(owner)) ?? [];
    for (const meter of meters) adjustMeterHolds(meter, hold, sign);
  }
}

export type CountedRequest = BudgetParties & CountedRow;

/** Returns how a request changes the meters, without applying the changes. */
export function computeMeterChanges(tx: BudgetTx, request: CountedRequest): MeterChange[] {
  return metersOfRequest(tx, request).flatMap((meter) => changeMeter(meter, request) ?? []);
}

export function applyMeterChanges(
  { budgets }: BudgetTx["memory"],
  counts: readonly MeterChange[],
): void {
  for (const { meter, updated: counted } of counts) replaceMeter(budgets, meter, counted);
}

/** Replaces a meter in memory. The next checkpoint stores the new meter. */
export function replaceMeter({ meters, unsaved }: BudgetMemory, before: Meter, after: Meter): void {
  const name = budgetOwnerKey(before);
  const list = meters.get(name) ?? [];
  meters.set(
    name,
    list.map((one) => (one.budget.id === before.budget.id ? after : one)),
  );
  unsaved.set(`${name}\n${before.budget.id}`, after);
}

/** Saves changed meters. Later requests have IDs from `floorId` on. */
export function storeMeters(tx: BudgetTx, revision: number, floorId: string): void {
  const { sql, memory } = tx;
  const { ledger, budgets } = memory;
  const owners = new Map<string, Meter>();
  for (const meter of budgets.unsaved.values()) {
    if (isDollarFieldLimit(meter)) owners.set(budgetOwnerKey(meter), meter);
    else updateBudgetTally(sql, meter, revision);
  }
  for (const owner of owners.values()) {
    storeFieldLimits(sql, owner, { limits: fieldMetersOfOwner(tx, owner), changed: revision });
  }
  if (budgets.scopes.size > 0) saveLastCountedLedgerRow(sql, { seq: ledger.seq, floorId });
}

export function markMetersSaved({ budgets }: BudgetTx["memory"]): void {
  budgets.unsaved.clear();
  if (budgets.meters.size > OWNERS_MAX) budgets.meters.clear();
}
