import { assert } from "../../../shared/assert.ts";
import { changesOf, SYSTEM } from "../../../shared/event.ts";
import type { Actor } from "../../../shared/event.ts";
import { externalIdProblem } from "../../../shared/external-id.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { DOLLARS_MAX } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { sha256 } from "../../../shared/hash.ts";
import { balanceCrossing, quotaCrossings } from "../rules/alerts.ts";
import { moveHolds } from "../rules/open-holds.ts";
import { spentIn, noSpend } from "../rules/quota.ts";
import type { EndUser } from "../rules/quota.ts";
import {
  selectEndUserPage,
  updateEndUserLimits,
  deleteDepartedBefore,
  deleteDepartedHash,
  deleteOldestDeparted,
  endOfMonth,
  insertEndUser,
  selectDeparted,
  selectDepartedEndUser,
  updateDeparted,
} from "../tables/end-user-rows.do.ts";
import { addEvent, eraseName } from "./event-rows.do.ts";
import { enableTopUp } from "../rules/top-up.ts";
import { putTopUp } from "../tables/payment-rows.do.ts";
import { putTagKeys, selectTagKeys } from "../tables/tag-rows.do.ts";
import { updateSettings } from "../tables/wallet-row.do.ts";
import type {
  Configuration,
  ConfigurationChange,
  Settings,
  SettingsChange,
  SettingsRecord,
} from "../../../shared/contracts/settings.ts";
import type {
  EndUserChange,
  EndUserPage,
  EndUserRecord,
  PutEndUserAnswer,
} from "../../../shared/contracts/wallet.ts";
import { raiseAlerts } from "./alerts.do.ts";
import { changeRow, findEndUser, nextRevision, selectRateLog, touchStorage } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

const QUOTA_MAX = DOLLARS_MAX * 1_000_000;

/** Creates an end user with defaults for missing fields, or changes the given fields. */
export function putEndUser(
  desk: Tx,
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
  const made = { ...fresh, user: { ...fresh.user, ...changedLimits(fresh.user, change) } };
  desk.storage.transactionSync(() => storeEndUser(desk, made));
  madeEndUser(desk, made);
  return success({ created: true, endUser: recordOf(desk, made.user) });
}

/** Changes the given fields. Returns `not_found` for an unknown end user. */
export function patchEndUser(
  desk: Tx,
  externalId: string,
  change: EndUserChange,
): Result<EndUserRecord> {
  const wrong = refuseChange(change);
  if (wrong !== null) return wrong;
  const known = findEndUser(desk, "external_id", externalId);
  return known === null ? missing() : success(alter(desk, known, change));
}

export function readEndUser(desk: Tx, externalId: string): Result<EndUserRecord> {
  const known = findEndUser(desk, "external_id", externalId);
  return known === null ? missing() : success(recordOf(desk, known));
}

export function listEndUsers(
  desk: Tx,
  page: { readonly limit: number; readonly offset: number; readonly after: string | null },
): Result<EndUserPage> {
  const found = selectEndUserPage(desk.sql, { ...page, limit: page.limit + 1 });
  if (found === null) return invalid("after must be the id of an end user.", "after");
  const endUsers = found
    .slice(0, page.limit)
    .map((stored) => recordOf(desk, desk.memory.unsaved.get(stored.id) ?? stored));
  const nextAfter = found.length > page.limit ? (endUsers.at(-1)?.id ?? null) : null;
  return success({ endUsers, total: desk.memory.endUsers, nextAfter });
}

/** Deletes an end user. Its spend of this month is kept; see `depart`. */
export function deleteEndUser(desk: Tx, externalId: string): Result<{ externalId: string }> {
  const known = findEndUser(desk, "external_id", externalId);
  if (known === null) return missing();
  depart(desk, known);
  return success({ externalId });
}

function refuseLimits(limits: {
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

function changedLimits(limits: Limits, change: EndUserChange): Limits {
  const { dailyQuotaMicro, monthlyQuotaMicro, alertThreshold } = change;
  return {
    dailyQuota: dailyQuotaMicro === undefined ? limits.dailyQuota : dailyQuotaMicro,
    monthlyQuota: monthlyQuotaMicro === undefined ? limits.monthlyQuota : monthlyQuotaMicro,
    alertThreshold: alertThreshold ?? limits.alertThreshold,
  };
}

function alter(desk: Tx, known: EndUser, change: EndUserChange): EndUserRecord {
  const { memory, sql } = desk;
  const user: EndUser = { ...known, ...changedLimits(known, change) };
  const crossings = quotaCrossings(null, user, desk.period);
  desk.storage.transactionSync(() => {
    updateEndUserLimits(sql, user, nextRevision(desk));
    raiseAlerts(desk, crossings, memory.books.seq);
  });
  if (memory.unsaved.has(user.id)) memory.unsaved.set(user.id, user);
  told(desk, user);
  return recordOf(desk, user);
}

function told(desk: Tx, user: EndUser): void {
  desk.memory.unpublished.add(user.id);
  desk.memory.changed = true;
}

function recordOf(desk: Tx, user: EndUser): EndUserRecord {
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

export function readSettings(desk: Tx): Result<SettingsRecord> {
  touchStorage(desk);
  return success(settingsRecordOf(desk.memory.row.settings));
}

/** Changes the given settings. Quotas apply to new end users; the alert threshold applies immediately. */
export function patchSettings(
  desk: Tx,
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
  const isOn = change.autoTopUp !== undefined && change.autoTopUp !== null;
  const topUp = isOn ? enableTopUp(memory.topUp) : memory.topUp;
  desk.storage.transactionSync(() => {
    updateSettings(sql, settings, nextRevision(desk));
    if (topUp !== memory.topUp) putTopUp(sql, topUp);
    if (change.tagKeys !== undefined) putTagKeys(sql, memory.books.seq + 1, change.tagKeys);
    if (changes !== null) {
      addEvent(desk, { type: "settings.changed", actor, subject: memory.row.orgId, data: changes });
    }
    if (low !== null) raiseAlerts(desk, [low], memory.books.seq + 1);
  });
  memory.row = { ...memory.row, settings };
  memory.topUp = topUp;
  if (change.tagKeys !== undefined) memory.tagKeys = selectTagKeys(sql);
  memory.changed = true;
  return success(after);
}

/** Changes operator settings: rate limit, price list and status. */
export function configure(desk: Tx, change: ConfigurationChange): Result<Configuration> {
  const { row } = desk.memory;
  const rpmLimit = change.rpmLimit === undefined ? row.rpmLimit : change.rpmLimit;
  const suspended = change.suspended ?? row.suspended;
  const priceList = change.priceList === undefined ? row.priceList : change.priceList;
  assert(
    rpmLimit === null || (Number.isSafeInteger(rpmLimit) && rpmLimit > 0),
    "an organization's rpm limit is null or a whole number above 0",
  );
  const wasCounting = row.rpmLimit !== null;
  changeRow(desk, { rpmLimit, suspended, priceList });
  if (!wasCounting) desk.memory.rateLog = selectRateLog(desk.sql, rpmLimit, desk.nowMs);
  return success({ rpmLimit, suspended, priceList });
}

function settingsRecordOf(settings: Settings): SettingsRecord {
  return {
    defaultUserMonthlyQuotaMicro: settings.monthlyQuota,
    defaultUserDailyQuotaMicro: settings.dailyQuota,
    defaultAlertThreshold: settings.alertThreshold,
    lowBalanceThresholdMicro: settings.lowBalance,
    keepResponsesHours: settings.keepHours,
    autoTopUp: settings.autoTopUp,
    tagKeys: settings.tagKeys,
  };
}

function settingsOf(record: SettingsRecord): Settings {
  return {
    monthlyQuota: record.defaultUserMonthlyQuotaMicro,
    dailyQuota: record.defaultUserDailyQuotaMicro,
    alertThreshold: record.defaultAlertThreshold,
    lowBalance: record.lowBalanceThresholdMicro,
    keepHours: record.keepResponsesHours,
    autoTopUp: record.autoTopUp,
    tagKeys: record.tagKeys,
  };
}

const END_USERS_MAX = 100_000;
const DEPARTED_MAX = 100_000;

/** An end user to create. `departed` is its deleted predecessor of this month, or null. */
export type NewEndUser = {
  readonly user: EndUser;
  readonly departed: { readonly user: EndUser; readonly account: number } | null;
};

/**
 * Returns an end user to create, with defaults. One deleted this month under the same name continues with its
 * spend. Returns null at the maximum. Writes nothing.
 */
export function newEndUser(desk: Tx, externalId: string): NewEndUser | null {
  const { memory, sql, period } = desk;
  if (memory.endUsers >= END_USERS_MAX) return null;
  const { dailyQuota, monthlyQuota, alertThreshold } = memory.row.settings;
  const departed =
    memory.departed.count === 0
      ? null
      : selectDepartedEndUser(sql, hashOf(desk, externalId), period.month);
  const last = departed === null ? null : (memory.unsaved.get(departed.user.id) ?? departed.user);
  const user = {
    id: crypto.randomUUID(),
    externalId,
    dailyQuota,
    monthlyQuota,
    alertThreshold,
    createdAt: desk.nowMs,
    spend: last?.spend ?? noSpend(period),
  };
  return { user, departed };
}

/** Writes a new end user and reassigns its earlier requests. Must run in a transaction. */
export function storeEndUser(desk: Tx, { user, departed }: NewEndUser): void {
  const { memory, sql, period } = desk;
  const changed = nextRevision(desk);
  if (departed === null) {
    insertEndUser(sql, user, { changed, account: null });
    return;
  }
  deleteDepartedHash(sql, departed.user.externalId);
  // Spend as of the checkpoint. Readers add the rows after it.
  const { spend } = departed.user;
  insertEndUser(sql, { ...user, spend }, { changed, account: departed.account });
  raiseAlerts(desk, quotaCrossings(null, user, period), memory.books.seq);
}

/** Updates memory after `storeEndUser`. */
export function madeEndUser({ memory }: Tx, { user, departed }: NewEndUser): void {
  memory.endUsers += 1;
  memory.unpublished.add(user.id);
  memory.changed = true;
  if (departed === null) return;
  const { id } = departed.user;
  memory.departed = { ...memory.departed, count: memory.departed.count - 1 };
  if (memory.unsaved.delete(id)) memory.unsaved.set(user.id, user);
  memory.unpublished.delete(id);
  moveHolds(memory.books, id, user.id);
}

/**
 * Deletes an end user but keeps its spend: until the month ends, its row remains under a hash of its name,
 * and its open holds and charges count.
 */
function depart(desk: Tx, user: EndUser): void {
  const { memory, sql, period, storage } = desk;
  const hash = hashOf(desk, user.externalId);
  const gone = storage.transactionSync(() => {
    const before = memory.departed.count === 0 ? [] : deleteDepartedHash(sql, hash);
    if (memory.departed.count - before.length >= DEPARTED_MAX) {
      before.push(...deleteOldestDeparted(sql));
    }
    updateDeparted(sql, user.id, { hash, month: period.month, changed: nextRevision(desk) });
    eraseName(desk, user);
    return before;
  });
  for (const id of gone) memory.unsaved.delete(id);
  memory.departed = {
    count: memory.departed.count - gone.length + 1,
    until: Math.min(memory.departed.until, endOfMonth(period.month)),
  };
  memory.endUsers -= 1;
  if (memory.unsaved.has(user.id)) {
    const left = { ...user, externalId: hash, monthlyQuota: null, dailyQuota: null };
    memory.unsaved.set(user.id, left);
  }
  memory.unpublished.delete(user.id);
  memory.changed = true;
}

/** Deletes departed end users of past months, at most `rowsMax`. Returns true if more may remain. */
export function forgetDeparted({ memory, sql, period }: Tx, rowsMax: number): boolean {
  if (memory.departed.count === 0) {
    memory.departed = { count: 0, until: Infinity };
    return false;
  }
  const gone = deleteDepartedBefore(sql, period.month, rowsMax);
  for (const id of gone) memory.unsaved.delete(id);
  memory.departed = selectDeparted(sql);
  return gone.length >= rowsMax;
}

/** Returns the hash that replaces a name. Its first character is a control character, which no name has. */
function hashOf({ memory }: Tx, externalId: string): string {
  return `\n${sha256(`${memory.row.orgId}\n${externalId}`)}`;
}
