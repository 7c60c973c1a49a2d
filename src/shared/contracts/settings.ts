import type { Budget, BudgetStatus, BudgetOwner } from "../budgets.ts";
import type { Micros } from "../money.ts";
import type { Policy } from "../policy.ts";
import type { AutoTopUpSettings } from "./payments.ts";

export const STORED_RESPONSE_HOURS_MAX = 720;

/** An organization's settings in its wallet. */
export type SettingsRecord = {
  readonly defaultUserMonthlyQuotaMicro: Micros | null;
  readonly defaultUserDailyQuotaMicro: Micros | null;
  readonly defaultAlertThreshold: number;
  readonly lowBalanceThresholdMicro: Micros | null;
  /** Hours for which /v1/responses stores responses. 0 turns storage off. */
  readonly keepResponsesHours: number;
  readonly autoTopUp: AutoTopUpSettings | null;
  readonly tagKeys: readonly string[];
  readonly policy: Policy | null;
  readonly maxConcurrent: number | null;
  /** The operator's policy. The organization's own policy can only narrow it. */
  readonly operatorPolicy: Policy | null;
};
export type SettingsChange = {
  readonly [K in Exclude<keyof SettingsRecord, "operatorPolicy">]?: SettingsRecord[K] | undefined;
} & { readonly budgets?: readonly Budget[] | undefined };
export type SettingsWithBudgets = SettingsRecord & { readonly budgets: readonly BudgetStatus[] };

export type SettingsWithoutRestrictions = Omit<
  SettingsRecord,
  "policy" | "operatorPolicy" | "maxConcurrent"
>;

/** An organization's settings that only operators change. */
export type OperatorSettings = {
  readonly rpmLimit: number | null;
  readonly suspended: boolean;
  readonly closed: boolean;
  readonly priceList: string | null;
};
export type OperatorSettingsChange = {
  readonly [K in keyof OperatorSettings]?: OperatorSettings[K];
};

export type MemberLimits = {
  readonly policy: Policy | null;
  readonly budgets: readonly BudgetStatus[];
};
export type MemberLimitsChange = {
  readonly policy?: Policy | null | undefined;
  readonly budgets?: readonly Budget[] | undefined;
};

export type BudgetsChange = { readonly owner: BudgetOwner; readonly budgets: readonly Budget[] };
