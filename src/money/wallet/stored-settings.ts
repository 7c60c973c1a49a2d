import type { SettingsWithoutRestrictions } from "../../shared/contracts/settings.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";

type SettingName = keyof SettingsWithoutRestrictions;

/** The columns of each setting in the wallet's table and in D1. */
const COLUMNS: Readonly<Record<SettingName, Readonly<Record<"wallet" | "d1", string>>>> = {
  defaultUserMonthlyQuotaMicro: { wallet: "monthly_quota", d1: "default_user_monthly_quota_micro" },
  defaultUserDailyQuotaMicro: { wallet: "daily_quota", d1: "default_user_daily_quota_micro" },
  defaultAlertThreshold: { wallet: "alert_threshold", d1: "default_alert_threshold" },
  lowBalanceThresholdMicro: { wallet: "low_balance", d1: "low_balance_threshold_micro" },
  keepResponsesHours: { wallet: "keep_hours", d1: "keep_responses_hours" },
  autoTopUp: { wallet: "auto_top_up", d1: "auto_top_up" },
  tagKeys: { wallet: "tag_keys", d1: "tag_keys" },
};
const isName = (name: string): name is SettingName => name in COLUMNS;
const NAMES = Object.keys(COLUMNS).filter(isName);

/** Settings as the wallet's table and D1 store them. A null column has its default value. */
export type StoredSettings = Omit<
  SettingsWithoutRestrictions,
  "keepResponsesHours" | "autoTopUp" | "tagKeys"
> & {
  readonly keepResponsesHours: number | null;
  readonly autoTopUp: string | null;
  readonly tagKeys: string | null;
};

export function settingsFromRow(row: StoredSettings): SettingsWithoutRestrictions {
  return {
    ...row,
    keepResponsesHours: row.keepResponsesHours ?? 0,
    autoTopUp: parseStoredJson<SettingsWithoutRestrictions["autoTopUp"]>(row.autoTopUp ?? "null"),
    tagKeys: parseStoredJson<SettingsWithoutRestrictions["tagKeys"]>(row.tagKeys ?? "[]"),
  };
}

/** Returns the SQL columns that select `StoredSettings`. */
export function settingsColumnsSql(table: "wallet" | "d1"): string {
  return NAMES.map((name) => `${COLUMNS[name][table]} AS ${name}`).join(", ");
}

export function settingsToRow(settings: SettingsWithoutRestrictions, table: "wallet" | "d1") {
  const { autoTopUp, tagKeys } = settings;
  const stored: StoredSettings = {
    ...settings,
    autoTopUp: autoTopUp === null ? null : JSON.stringify(autoTopUp),
    tagKeys: tagKeys.length === 0 ? null : JSON.stringify(tagKeys),
  };
  return Object.fromEntries(NAMES.map((name) => [COLUMNS[name][table], stored[name]]));
}

export const PUBLISHED_SETTINGS_COLUMNS: readonly string[] = NAMES.map((name) => COLUMNS[name].d1);
