import { assert } from "../lib/assert.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { balanceCrossing } from "./alerts.ts";
import { raiseAlerts } from "./alert-rows.do.ts";
import { changeRow, nextRevision, touchStorage } from "./desk.do.ts";
import type { Desk } from "./desk.do.ts";
import { refuseLimits } from "./end-users.do.ts";
import { selectRateLog } from "./memory.do.ts";
import type {
  Configuration,
  ConfigurationChange,
  SettingsChange,
  SettingsRecord,
} from "./wallet-contract.ts";
import { updateSettings } from "./wallet-row.do.ts";
import type { Settings } from "./wallet-row.do.ts";

export function readSettings(desk: Desk): Result<SettingsRecord> {
  touchStorage(desk);
  return success(recordOf(desk.memory.row.settings));
}

/** Changes what is given; quotas are for end users seen later, the threshold is looked at at once. */
export function patchSettings(desk: Desk, change: SettingsChange): Result<SettingsRecord> {
  const wrong = refuseLimits({
    quotas: {
      default_user_monthly_quota_dollars: change.defaultUserMonthlyQuotaMicro,
      default_user_daily_quota_dollars: change.defaultUserDailyQuotaMicro,
      low_balance_threshold_dollars: change.lowBalanceThresholdMicro,
    },
    threshold: ["default_alert_threshold", change.defaultAlertThreshold],
  });
  if (wrong !== null) return wrong;
  const { memory, sql } = desk;
  const before = recordOf(memory.row.settings);
  const given = Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined),
  );
  const after: SettingsRecord = { ...before, ...given };
  const settings = settingsOf(after);
  const low = balanceCrossing(memory.books.balance, settings.lowBalance);
  desk.storage.transactionSync(() => {
    updateSettings(sql, settings, nextRevision(desk));
    if (low !== null) raiseAlerts(desk, [low], memory.books.seq + 1);
  });
  memory.row = { ...memory.row, settings };
  memory.changed = true;
  return success(after);
}

/** What only an operator sets: the organisation's own rate limit, and whether it may spend at all. */
export function configure(desk: Desk, change: ConfigurationChange): Result<Configuration> {
  const { row } = desk.memory;
  const rpmLimit = change.rpmLimit === undefined ? row.rpmLimit : change.rpmLimit;
  const suspended = change.suspended ?? row.suspended;
  assert(
    rpmLimit === null || (Number.isSafeInteger(rpmLimit) && rpmLimit > 0),
    "an organisation's rpm limit is null or a whole number above 0",
  );
  const wasCounting = row.rpmLimit !== null;
  changeRow(desk, { rpmLimit, suspended });
  if (!wasCounting) desk.memory.rateLog = selectRateLog(desk.sql, rpmLimit, desk.nowMs);
  return success({ rpmLimit, suspended });
}

function recordOf(settings: Settings): SettingsRecord {
  return {
    defaultUserMonthlyQuotaMicro: settings.monthlyQuota,
    defaultUserDailyQuotaMicro: settings.dailyQuota,
    defaultAlertThreshold: settings.alertThreshold,
    lowBalanceThresholdMicro: settings.lowBalance,
  };
}

function settingsOf(record: SettingsRecord): Settings {
  return {
    monthlyQuota: record.defaultUserMonthlyQuotaMicro,
    dailyQuota: record.defaultUserDailyQuotaMicro,
    alertThreshold: record.defaultAlertThreshold,
    lowBalance: record.lowBalanceThresholdMicro,
  };
}
