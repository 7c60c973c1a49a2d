import type { BudgetOwner, BudgetStatus } from "../../../shared/budgets.ts";
import { minutesOf } from "../../../shared/budgets.ts";
import type { Session } from "../../../shared/session.ts";
import { roomAt } from "../rules/meter.ts";
import { amountsOf, metersOf, metersOfOwner } from "./budget-memory.do.ts";
import type { Meter } from "./budget-memory.do.ts";
import type { Tx } from "./memory.do.ts";

function statusOf(desk: Tx, meter: Meter): BudgetStatus {
  const { budget, scope, sinceMs, tally } = meter;
  const { settled: used, held } = amountsOf(meter, desk);
  const isRolling = minutesOf(budget.window) !== null;
  const resetsAt = roomAt(budget.window, tally, { at: desk, missing: isRolling ? used : 1 });
  return { scope, budget, used, held, resetsAt, countingSince: sinceMs };
}

export function budgetsOf(desk: Tx, owner: BudgetOwner): readonly BudgetStatus[] {
  return metersOfOwner(desk.sql, desk.memory, owner).map((meter) => statusOf(desk, meter));
}

/** Returns the budgets in the order of checks; for a session, only its own. */
export function budgetsOfKey(
  desk: Tx,
  keyId: string,
  session: Session | undefined,
): readonly BudgetStatus[] {
  const parties = { keyId, endUserId: null, session: session?.id ?? null };
  return metersOf(desk.sql, desk.memory, parties)
    .filter(({ scope }) => session === undefined || scope === "session")
    .map((meter) => statusOf(desk, meter));
}
