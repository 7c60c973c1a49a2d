import type { BudgetScope } from "./budgets.ts";

/**
 * The failure of a request that a pause rejects. A session sees scope and reason only of its own
 * pause.
 */
export type Paused = {
  readonly kind: "paused";
  readonly pauseId: string;
  readonly scope: BudgetScope | null;
  readonly reason: string | null;
  readonly until: number | null;
};
