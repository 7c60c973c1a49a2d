import type { Budget, BudgetStatus, BudgetOwner } from "../budgets.ts";
import type { Micros } from "../money.ts";
import type { Policy } from "../policy.ts";
import type { AutoTopUp } from "./payments.ts";

export const STORED_RESPONSE_HOURS_MAX = 720;

/** An organization's settings in its wallet. */
export type SettingsRecord = {
  readonly defaultUserMonthlyQuotaMicro: Micros | null;
  readonly defaultUserDailyQuotaMicro: Micros | null;
  readonly defaultAlertThreshold: number;
  readonly lowBalanceThresholdMicro: Micros | null;
  /** Hours for which /v1/responses stores responses. 0 turns storage off. */
  readonly keepResponsesHours: number;
  readonly autoTopUp: AutoTopUp | null;
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

export type Settings = Omit<SettingsRecord, "policy" | "operatorPolicy" | "maxConcurrent">;

/** The settings of an organization that only operators change. */
export type Configuration = {
  readonly rpmLimit: number | null;
  readonly suspended: boolean;
  readonly closed: boolean;
  readonly priceList: string | null;
};
export type ConfigurationChange = { readonly [K in keyof Configuration]?: Configuration[K] };

export type MemberLimits = {
  readonly policy: Policy | null;
  readonly budgets: readonly BudgetStatus[];
};
export type MemberLimitsChange = {
  readonly policy?: Policy | null | undefined;
  readonly budgets?: readonly Budget[] | undefined;
};

export type BudgetsChange = { readonly owner: BudgetOwner; readonly budgets: readonly Budget[] };
