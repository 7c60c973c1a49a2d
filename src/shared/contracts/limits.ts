import type { Budget, BudgetOwner, BudgetStatus } from "../budgets.ts";
import type { Policy } from "../policy.ts";

export type MemberLimits = {
  readonly policy: Policy | null;
  readonly budgets: readonly BudgetStatus[];
};
export type MemberLimitsChange = {
  readonly policy?: Policy | null | undefined;
  readonly budgets?: readonly Budget[] | undefined;
};

export type BudgetsChange = { readonly owner: BudgetOwner; readonly budgets: readonly Budget[] };
