import type { BudgetOwner, BudgetStatus } from "../../../shared/budgets.ts";
import { rollingMinutes } from "../../../shared/budgets.ts";
import type { Session } from "../../../shared/session.ts";
import { capacityReturnsAt } from "../../../shared/budget-meter.ts";
import { amountsOf, isFieldLimit } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { budgetMetersOfOwner, metersOf } from "./budget-memory.do.ts";
import type { Tx } from "./memory.do.ts";

function budgetStatusOf(tx: Tx, meter: Meter): BudgetStatus {
  const { budget, scope, sinceMs, tally } = meter;
  const { settled: used, held } = amountsOf(meter, tx);
  const isRolling = rollingMinutes(budget.window) !== null;
  const resetsAt = capacityReturnsAt(budget.window, tally, {
    at: tx,
    missing: isRolling ? used : 1,
  });
  return { scope, budget, used, held, resetsAt, countingSince: sinceMs };
}

export function budgetStatusesOf(tx: Tx, owner: BudgetOwner): readonly BudgetStatus[] {
  return budgetMetersOfOwner(tx, owner).map((meter) => budgetStatusOf(tx, meter));
}

export function budgetStatusesOfKey(
  tx: Tx,
  keyId: string,
  session: Session | undefined,
): readonly BudgetStatus[] {
  const parties = { keyId, endUserId: null, session: session?.id ?? null };
  return metersOf(tx, parties)
    .filter((meter) => !isFieldLimit(meter))
    .filter(({ scope }) => session === undefined || scope === "session")
    .map((meter) => budgetStatusOf(tx, meter));
}
