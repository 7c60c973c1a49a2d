import type { Budget, BudgetStatus } from "../budgets.ts";
import type { Micros } from "../money.ts";
import type { Policy } from "../policy.ts";
import type { AutoTopUp } from "./payments.ts";

/** Maximum hours that responses can be stored: 30 days. */
export const KEEP_HOURS_MAX = 720;

/** An organization's settings, changed by its members. */
export type SettingsRecord = {
  readonly defaultUserMonthlyQuotaMicro: Micros | null;
  readonly defaultUserDailyQuotaMicro: Micros | null;
  readonly defaultAlertThreshold: number;
  readonly lowBalanceThresholdMicro: Micros | null;
  /** Hours that responses of /v1/responses are stored, 0 to 720; 0 disables storage. */
  readonly keepResponsesHours: number;
  /** Conditions of automatic purchases; null to disable them. */
  readonly autoTopUp: AutoTopUp | null;
  /** Tag keys with daily sums. */
  readonly tagKeys: readonly string[];
  /** The allowed models, providers and data regions; null for all. */
  readonly policy: Policy | null;
  /** The operator's policy, which the organization can only narrow. */
  readonly operatorPolicy: Policy | null;
};
/** A change of settings; absent keeps. */
export type SettingsChange = {
  readonly [K in Exclude<keyof SettingsRecord, "operatorPolicy">]?: SettingsRecord[K] | undefined;
} & { readonly budgets?: readonly Budget[] | undefined };
/** The settings, and the organization's budgets with their counts now. */
export type SettingsAnswer = SettingsRecord & { readonly budgets: readonly BudgetStatus[] };

/** The settings in the wallet's memory. */
export type Settings = {
  readonly monthlyQuota: Micros | null;
  readonly dailyQuota: Micros | null;
  readonly alertThreshold: number;
  readonly lowBalance: Micros | null;
  /** Hours that responses are stored; 0 disables storage. */
  readonly keepHours: number;
  readonly autoTopUp: AutoTopUp | null;
  readonly tagKeys: readonly string[];
};

export const DEFAULT_SETTINGS: Settings = {
  monthlyQuota: null,
  dailyQuota: null,
  alertThreshold: 0.8,
  lowBalance: null,
  keepHours: 0,
  autoTopUp: null,
  tagKeys: [],
};

/** Operator settings. Null `rpmLimit` or `priceList` means none. */
export type Configuration = {
  readonly rpmLimit: number | null;
  readonly suspended: boolean;
  readonly priceList: string | null;
};
export type ConfigurationChange = { readonly [K in keyof Configuration]?: Configuration[K] };
