import type { Micros } from "../lib/money.ts";

/** The longest that answers of /v1/responses may be kept: 30 days. */
export const KEEP_HOURS_MAX = 720;

/** What an organisation says of itself; changed by its members. */
export type SettingsRecord = {
  readonly defaultUserMonthlyQuotaMicro: Micros | null;
  readonly defaultUserDailyQuotaMicro: Micros | null;
  readonly defaultAlertThreshold: number;
  readonly lowBalanceThresholdMicro: Micros | null;
  /** For how long answers of /v1/responses are kept, 0 to 720; 0: not at all. */
  readonly keepResponsesHours: number;
};
export type SettingsChange = {
  readonly [K in keyof SettingsRecord]?: SettingsRecord[K] | undefined;
};
