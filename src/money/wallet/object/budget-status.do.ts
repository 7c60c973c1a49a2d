import type { BudgetOwner, BudgetStatus } from "../../../shared/budgets.ts";
import { minutesOf } from "../../../shared/budgets.ts";
import type { Session } from "../../../shared/session.ts";
import { capacityAt } from "../../../shared/budget-meter.ts";
import { amountsOf, isField } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { entriesOfOwner, metersOf } from "./budget-memory.do.ts";
import type { Tx } from "./memory.do.ts";

function budgetStatusOf(tx: Tx, meter: Meter): BudgetStatus {
  const { budget, scope, sinceMs, tally } = meter;
  const { settled: used, held } = amountsOf(meter, tx);
  const isRolling = minutesOf(budget.window) !== null;
  const resetsAt = capacityAt(budget.window, tally, { at: tx, missing: isRolling ? used : 1 });
  return { scope, budget, used, held, resetsAt, countingSince: sinceMs };
}

export function budgetsOf(tx: Tx, owner: BudgetOwner): readonly BudgetStatus[] {
  return entriesOfOwner(tx.sql, tx.memory, owner).map((meter) => budgetStatusOf(tx, meter));
}

export function budgetsOfKey(
  tx: Tx,
  keyId: string,
  session: Session | undefined,
): readonly BudgetStatus[] {
  const parties = { keyId, endUserId: null, session: session?.id ?? null };
  return metersOf(tx.sql, tx.memory, parties)
    .filter((meter) => !isField(meter))
    .filter(({ scope }) => session === undefined || scope === "session")
    .map((meter) => budgetStatusOf(tx, meter));
}
