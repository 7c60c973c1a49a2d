import type { Micros } from "../money.ts";
import type { AutoTopUp } from "./payments.ts";

/** The longest that answers of /v1/responses may be kept: 30 days. */
export const KEEP_HOURS_MAX = 720;

/** What an organization says of itself; changed by its members. */
export type SettingsRecord = {
  readonly defaultUserMonthlyQuotaMicro: Micros | null;
  readonly defaultUserDailyQuotaMicro: Micros | null;
  readonly defaultAlertThreshold: number;
  readonly lowBalanceThresholdMicro: Micros | null;
  /** For how long answers of /v1/responses are kept, 0 to 720; 0: not at all. */
  readonly keepResponsesHours: number;
  /** When credits are bought automatically; null: never. */
  readonly autoTopUp: AutoTopUp | null;
};
export type SettingsChange = {
  readonly [K in keyof SettingsRecord]?: SettingsRecord[K] | undefined;
};

/** The same as the wallet has it in hand. */
export type Settings = {
  readonly monthlyQuota: Micros | null;
  readonly dailyQuota: Micros | null;
  readonly alertThreshold: number;
  readonly lowBalance: Micros | null;
  /** For how long answers of /v1/responses are kept; 0: not at all. */
  readonly keepHours: number;
  readonly autoTopUp: AutoTopUp | null;
};

export const DEFAULT_SETTINGS: Settings = {
  monthlyQuota: null,
  dailyQuota: null,
  alertThreshold: 0.8,
  lowBalance: null,
  keepHours: 0,
  autoTopUp: null,
};

/** What an operator sets; `rpmLimit` and `priceList` null are none of its own. */
export type Configuration = {
  readonly rpmLimit: number | null;
  readonly suspended: boolean;
  readonly priceList: string | null;
};
export type ConfigurationChange = { readonly [K in keyof Configuration]?: Configuration[K] };
