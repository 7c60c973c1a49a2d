import { assert } from "../../lib/assert.ts";
import { changesOf, SYSTEM } from "../../lib/event.ts";
import type { Actor } from "../../lib/event.ts";
import { externalIdProblem } from "../../lib/external-id.ts";
import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Refusal, Result } from "../../lib/failure.ts";
import { DOLLARS_MAX } from "../../lib/money.ts";
import type { Micros } from "../../lib/money.ts";
import { balanceCrossing, quotaCrossings } from "../rules/alerts.ts";
import { spentIn } from "../rules/quota.ts";
import type { EndUser } from "../rules/quota.ts";
import { raiseAlerts } from "../tables/alert-rows.do.ts";
import { addEvent } from "../tables/event-rows.do.ts";
import { selectEndUserPage, updateEndUserLimits } from "../tables/end-user-rows.do.ts";
import { updateSettings } from "../tables/wallet-schema.do.ts";
import type { Settings } from "../tables/wallet-schema.do.ts";
import type {
  Configuration,
  ConfigurationChange,
  EndUserChange,
  EndUserPage,
  EndUserRecord,
  PutEndUserAnswer,
  SettingsChange,
  SettingsRecord,
} from "../wallet-contract.ts";
import { depart, madeEndUser, newEndUser, storeEndUser } from "./departures.do.ts";
import { changeRow, findEndUser, nextRevision, selectRateLog, touchStorage } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";

const QUOTA_MAX = DOLLARS_MAX * 1_000_000;

/** Creates the end user with the defaults for what is left out, or changes what is given. */
export function putEndUser(
  desk: Desk,
  externalId: string,
  change: EndUserChange,
): Result<PutEndUserAnswer> {
  const wrong = refuseExternalId(externalId) ?? refuseChange(change);
  if (wrong !== null) return wrong;
  const known = findEndUser(desk, "external_id", externalId);
  if (known !== null) {
    return success({ created: false, endUser: alter(desk, known, change) });
  }
  const fresh = newEndUser(desk, externalId);
  if (fresh === null) return refuse({ kind: "too_many_end_users" });
  const made = { ...fresh, user: { ...fresh.user, ...changed(fresh.user, change) } };
  desk.storage.transactionSync(() => storeEndUser(desk, made));
  madeEndUser(desk, made);
  return success({ created: true, endUser: recordOf(desk, made.user) });
}

/** Changes what is given; `not_found` for an end user that is not there. */
export function patchEndUser(
  desk: Desk,
  externalId: string,
  change: EndUserChange,
): Result<EndUserRecord> {
  const wrong = refuseChange(change);
  if (wrong !== null) return wrong;
  const known = findEndUser(desk, "external_id", externalId);
  return known === null ? missing() : success(alter(desk, known, change));
}

export function readEndUser(desk: Desk, externalId: string): Result<EndUserRecord> {
  const known = findEndUser(desk, "external_id", externalId);
  return known === null ? missing() : success(recordOf(desk, known));
}

export function listEndUsers(desk: Desk, limit: number, offset: number): Result<EndUserPage> {
  const endUsers = selectEndUserPage(desk.sql, limit, offset).map((stored) =>
    recordOf(desk, desk.memory.unsaved.get(stored.id) ?? stored),
  );
  return success({ endUsers, total: desk.memory.endUsers });
}

/** Forgets an end user, but for what it has spent this month: see `depart`. */
export function deleteEndUser(desk: Desk, externalId: string): Result<{ externalId: string }> {
  const known = findEndUser(desk, "external_id", externalId);
  if (known === null) return missing();
  depart(desk, known);
  return success({ externalId });
}

/** Why a quota or a threshold cannot be stored, or null. */
export function refuseLimits(limits: {
  readonly quotas: Readonly<Record<string, Micros | null | undefined>>;
  readonly threshold: readonly [name: string, value: number | undefined];
}): Refusal | null {
  for (const [param, quota] of Object.entries(limits.quotas)) {
    if (quota === undefined || quota === null) continue;
    if (!Number.isSafeInteger(quota) || quota < 0 || quota > QUOTA_MAX) {
      return invalid(`${param} must be null or from 0 to ${DOLLARS_MAX}.`, param);
    }
  }
  const [param, value] = limits.threshold;
  const fits = value === undefined || (typeof value === "number" && value >= 0 && value <= 1);
  return fits ? null : invalid(`${param} must be from 0 to 1.`, param);
}

function refuseChange(change: EndUserChange): Refusal | null {
  return refuseLimits({
    quotas: {
      monthly_quota_dollars: change.monthlyQuotaMicro,
      daily_quota_dollars: change.dailyQuotaMicro,
    },
    threshold: ["alert_threshold", change.alertThreshold],
  });
}

function refuseExternalId(externalId: string): Refusal | null {
  const problem = externalIdProblem(externalId);
  return problem === null ? null : invalid(`external_id ${problem}.`, "external_id");
}

type Limits = Pick<EndUser, "dailyQuota" | "monthlyQuota" | "alertThreshold">;

function changed(limits: Limits, change: EndUserChange): Limits {
  const { dailyQuotaMicro, monthlyQuotaMicro, alertThreshold } = change;
  return {
    dailyQuota: dailyQuotaMicro === undefined ? limits.dailyQuota : dailyQuotaMicro,
    monthlyQuota: monthlyQuotaMicro === undefined ? limits.monthlyQuota : monthlyQuotaMicro,
    alertThreshold: alertThreshold ?? limits.alertThreshold,
  };
}

function alter(desk: Desk, known: EndUser, change: EndUserChange): EndUserRecord {
  const { memory, sql } = desk;
  const user: EndUser = { ...known, ...changed(known, change) };
  const crossings = quotaCrossings(null, user, desk.period);
  desk.storage.transactionSync(() => {
    updateEndUserLimits(sql, user, nextRevision(desk));
    raiseAlerts(desk, crossings, memory.books.seq);
  });
  if (memory.unsaved.has(user.id)) memory.unsaved.set(user.id, user);
  told(desk, user);
  return recordOf(desk, user);
}

function told(desk: Desk, user: EndUser): void {
  desk.memory.unpublished.add(user.id);
  desk.memory.changed = true;
}

function recordOf(desk: Desk, user: EndUser): EndUserRecord {
  const spent = spentIn(user.spend, desk.period);
  return {
    id: user.id,
    externalId: user.externalId,
    monthlyQuotaMicro: user.monthlyQuota,
    dailyQuotaMicro: user.dailyQuota,
    alertThreshold: user.alertThreshold,
    monthlySpendMicro: spent.monthly,
    dailySpendMicro: spent.daily,
    createdAt: user.createdAt,
  };
}

function missing(): Refusal {
  return refuse({ kind: "not_found", message: "No such end user." });
}

export function readSettings(desk: Desk): Result<SettingsRecord> {
  touchStorage(desk);
  return success(settingsRecordOf(desk.memory.row.settings));
}

/** Changes what is given; quotas are for end users seen later, the threshold is looked at at once. */
export function patchSettings(
  desk: Desk,
  change: SettingsChange,
  actor: Actor = SYSTEM,
): Result<SettingsRecord> {
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
  const before = settingsRecordOf(memory.row.settings);
  const given = Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined),
  );
  const after: SettingsRecord = { ...before, ...given };
  const settings = settingsOf(after);
  const changes = changesOf(before, after);
  const low = balanceCrossing(memory.books.balance, settings.lowBalance);
  desk.storage.transactionSync(() => {
    updateSettings(sql, settings, nextRevision(desk));
    if (changes !== null) {
      addEvent(desk, { type: "settings.changed", actor, subject: memory.row.orgId, data: changes });
    }
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

function settingsRecordOf(settings: Settings): SettingsRecord {
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
