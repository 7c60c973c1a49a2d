import type { BudgetOwner, BudgetScope } from "../../../shared/budgets.ts";
import { countIn, isField, newMeter, reserveIn, withBudget } from "../rules/limits.ts";
import type { Count, CountedLimit, CountedRow, Meter } from "../rules/limits.ts";
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
  for (const scope of CHECKED) {
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
export const CHECKED = ["end_user", "key", "session", "member", "organization"] as const;

export function metersOf(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  parties: BudgetParties,
): Meter[] {
  return ownersOf(sql, memory.budgets, parties).flatMap((owner) =>
    metersOfOwner(sql, memory, owner),
  );
}

export const nameOf = ({ scope, subject }: BudgetOwner): string => `${scope}\n${subject}`;

export function metersOfOwner(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  const { meters } = memory.budgets;
  const known = meters.get(nameOf(owner));
  if (known !== undefined) return known;
  const read = readMeters(sql, memory, owner);
  meters.set(nameOf(owner), read);
  return read;
}

/** Returns an owner's meters without caching them. */
export function readMeters(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  const { meters, scopes } = memory.budgets;
  const known = meters.get(nameOf(owner));
  if (known !== undefined) return known;
  const entries = scopes.has(owner.scope) ? selectBudgets(sql, owner) : [];
  const rows = [...selectFieldLimits(sql, owner), ...entries];
  return rows.map((row) => meterOf(sql, memory, row));
}

/** Reloads an owner's quotas or `budget_dollars` after its row was stored. */
export function readFields(sql: SqlStorage, memory: MemoryWithBudgets, owner: BudgetOwner): void {
  const fields = selectFieldLimits(sql, owner).map((row) => meterOf(sql, memory, row));
  const entries = entriesOfOwner(sql, memory, owner);
  memory.budgets.meters.set(nameOf(owner), [...fields, ...entries]);
}

export function fieldsOfOwner(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  return metersOfOwner(sql, memory, owner).filter(isField);
}

/** Reloads the amounts of an owner's quotas or `budget_dollars`. Keeps the counts. */
export function readAmounts(sql: SqlStorage, memory: MemoryWithBudgets, owner: BudgetOwner): void {
  const before = fieldsOfOwner(sql, memory, owner);
  const read = selectFieldLimits(sql, owner);
  const fields = before.map((meter, at) => withBudget(meter, read[at]));
  memory.budgets.meters.set(nameOf(owner), [...fields, ...entriesOfOwner(sql, memory, owner)]);
}

export function moveCounts(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  from: BudgetOwner,
  to: BudgetOwner,
) {
  const { meters, unsaved } = memory.budgets;
  const moved = (meter: Meter): Meter => ({ ...meter, ...to });
  const fields = fieldsOfOwner(sql, memory, from).map(moved);
  meters.set(nameOf(to), fields);
  for (const meter of fields) {
    const { id } = meter.budget;
    if (unsaved.delete(`${nameOf(from)}\n${id}`)) unsaved.set(`${nameOf(to)}\n${id}`, meter);
  }
  meters.delete(nameOf(from));
}

export function forgetCounts({ budgets }: MemoryWithBudgets, owner: BudgetOwner): void {
  for (const { budget } of budgets.meters.get(nameOf(owner)) ?? []) {
    budgets.unsaved.delete(`${nameOf(owner)}\n${budget.id}`);
  }
  budgets.meters.delete(nameOf(owner));
}

/** Returns an owner's quotas or `budget_dollars` without caching them. */
export function readCounts(
  sql: SqlStorage,
  { budgets }: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly CountedLimit[] {
  return budgets.meters.get(nameOf(owner)) ?? selectFieldLimits(sql, owner);
}

export function entriesOfOwner(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  owner: BudgetOwner,
): readonly Meter[] {
  return metersOfOwner(sql, memory, owner).filter((meter) => !isField(meter));
}

export function meterOf(sql: SqlStorage, memory: MemoryWithBudgets, limit: CountedLimit): Meter {
  const meter = newMeter(limit);
  for (const hold of memory.ledger.holds.values()) {
    if (subjectOf(sql, limit.scope, hold) === limit.subject) reserveIn(meter, hold, 1);
  }
  return meter;
}

export function reserve(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  hold: OpenHold,
  sign: 1 | -1,
): void {
  for (const owner of ownersOf(sql, memory.budgets, hold)) {
    for (const meter of memory.budgets.meters.get(nameOf(owner)) ?? []) {
      reserveIn(meter, hold, sign);
    }
  }
}

export type CountedRequest = BudgetParties & CountedRow;

export function countsOf(
  sql: SqlStorage,
  memory: MemoryWithBudgets,
  request: CountedRequest,
): Count[] {
  return metersOf(sql, memory, request).flatMap((meter) => countIn(meter, request) ?? []);
}

export function applyCounts({ budgets }: MemoryWithBudgets, counts: readonly Count[]): void {
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
  memory: MemoryWithBudgets,
  { revision, floorId }: { readonly revision: number; readonly floorId: string },
): void {
  const { ledger, budgets } = memory;
  const owners = new Map<string, Meter>();
  for (const meter of budgets.unsaved.values()) {
    if (isField(meter)) owners.set(nameOf(meter), meter);
    else updateTally(sql, meter, revision);
  }
  for (const owner of owners.values()) {
    const limits = fieldsOfOwner(sql, memory, owner);
    storeFieldLimits(sql, owner, { limits, changed: revision });
  }
  if (budgets.scopes.size > 0) saveLastCountedRow(sql, { seq: ledger.seq, floorId });
}

export function countsStored({ budgets }: MemoryWithBudgets): void {
  budgets.unsaved.clear();
  if (budgets.meters.size > OWNERS_MAX) budgets.meters.clear();
}
