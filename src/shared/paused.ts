import type { BudgetScope } from "./budgets.ts";

/**
 * The failure of a request that a pause rejects. In a session, scope and reason are set only for
 * the session's own pause.
 */
export type Paused = {
  readonly kind: "paused";
  readonly pauseId: string;
  readonly scope: BudgetScope | null;
  readonly reason: string | null;
  readonly until: number | null;
};
