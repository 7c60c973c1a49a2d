import type { Budget, BudgetOwner, BudgetStatus } from "../budgets.ts";
import type { Policy } from "../policy.ts";

/** The limits of a member. They apply to all its keys together. */
export type MemberLimits = {
  /** The allowed models, providers and data regions; null for all. */
  readonly policy: Policy | null;
  readonly budgets: readonly BudgetStatus[];
};
/** A change of them; absent keeps. */
export type MemberLimitsChange = {
  readonly policy?: Policy | null | undefined;
  readonly budgets?: readonly Budget[] | undefined;
};

/** New budgets of an owner. */
export type BudgetsChange = { readonly owner: BudgetOwner; readonly budgets: readonly Budget[] };
