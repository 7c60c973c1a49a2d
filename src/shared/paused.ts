import type { BudgetScope } from "./budgets.ts";

/** A failure: a pause stops the request. A session that a wider pause stops gets no scope and reason. */
export type Paused = {
  readonly kind: "paused";
  readonly pauseId: string;
  readonly scope: BudgetScope | null;
  readonly reason: string | null;
  /** Unix ms; null for a pause without an end. */
  readonly until: number | null;
};
