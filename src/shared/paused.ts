import type { BudgetScope } from "./budgets.ts";

/**
 * The failure of a request that a pause rejects. A session sees scope and reason only if the
 * session itself is paused.
 */
export type Paused = {
  readonly kind: "paused";
  readonly pauseId: string;
  readonly scope: BudgetScope | null;
  readonly reason: string | null;
  readonly until: number | null;
};
