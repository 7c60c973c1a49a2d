import type { BudgetOwner } from "../../../shared/budgets.ts";
import { micros } from "../../../shared/money.ts";
import { fieldLimit } from "../rules/limits.ts";
import type { CountedLimit } from "../rules/limits.ts";
import { selectSession, updateSessionSpend } from "./session-rows.do.ts";

/** Returns the limits of an owner's fields. Their counts are stored in the owner's row. */
export function selectFieldLimits(sql: SqlStorage, owner: BudgetOwner): CountedLimit[] {
  if (owner.scope !== "session") return [];
  const row = selectSession(sql, owner.subject);
  // A session without terms was lost or never used, so its charges can't exceed their holds.
  const amount = row === null || row.session === null ? micros(0) : row.session.budgetMicro;
  return [fieldLimit(owner, "total", { amount, tally: [[0, row?.spent ?? 0]] })];
}

export function storeFieldLimit(sql: SqlStorage, { subject, tally }: CountedLimit): void {
  updateSessionSpend(sql, subject, micros(tally.reduce((sum, [, amount]) => sum + amount, 0)));
}
