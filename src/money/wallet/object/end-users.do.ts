import type { Budget, BudgetOwner } from "../../../shared/budgets.ts";
import { definedFields } from "../../../shared/defined-fields.ts";
import { findFieldChanges } from "../../../shared/event.ts";
import { findExternalIdProblem } from "../../../shared/external-id.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { sha256HexSync } from "../../../shared/hash.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { findQuotaAlerts } from "../rules/alerts.ts";
import type { ThresholdAlert } from "../rules/alerts.ts";
import { isDollarFieldLimit, createMeterWithoutHolds, withBudget } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { sumInWindow } from "../../../shared/budget-meter.ts";
import { moveHoldsToEndUser } from "../rules/open-holds.ts";
import {
  selectEndUser,
  selectEndUserPage,
  updateEndUserLimits,
  purgeEndUsersBefore,
  purgeEndUserByHash,
  purgeOldestEndUser,
  endOfMonthMs,
  insertEndUser,
  selectDeletedEndUserStats,
  selectDeletedEndUser,
  selectEndUserSpend,
  markEndUserDeleted,
} from "../tables/end-user-rows.do.ts";
import type { EndUserSpend } from "../tables/end-user-rows.do.ts";
import { quotaLimitsOf } from "../tables/field-limits.do.ts";
import { addEvent, eraseEventNames, eraseExternalId } from "./event-log.do.ts";
import { replaceExternalIdInFailures } from "../tables/failed-rows.do.ts";
import type {
  EndUser,
  EndUserPage,
  EndUserRecord,
  EndUserUpdate,
  PutEndUserResult,
} from "../../../shared/contracts/end-users.ts";
import {
  fieldMetersOfOwner,
  evictMeters,
  metersOfOwner,
  moveMeters,
  reloadFieldAmounts,
  readFieldLimits,
} from "./budget-memory.do.ts";
import { budgetStatusesOfOwner, setBudgets } from "./budgets.do.ts";
import { endPausesOfDeletedOwner, refuseDeletingPausedOwner } from "./pauses.do.ts";
import { raiseAlerts } from "./alerts.do.ts";
import { nextPublishRevision } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

export function putEndUser(
  tx: Tx,
  externalId: string,
  change: EndUserUpdate,
): Result<PutEndUserResult> {
  const wrong = refuseExternalId(externalId);
  if (wrong !== null) return wrong;
  const known = selectEndUser(tx.sql, "external_id", externalId);
  if (known !== null) {
    return success({ created: false, endUser: updateEndUser(tx, known, change) });
  }
  const fresh = prepareEndUser(tx, externalId);
  if (fresh === null) return refuse({ kind: "too_many_end_users" });
  const made = { ...fresh, user: changedUser(fresh.user, change) };
  tx.storage.transactionSync(() => {
    storeEndUser(tx, made);
    if (change.budgets !== undefined) setBudgets(tx, ownerOf(made.user), change.budgets);
  });
  addEndUserToMemory(tx, made);
  return success({ created: true, endUser: endUserRecordOf(tx, made.user) });
}

export function patchEndUser(
  tx: Tx,
  externalId: string,
  change: EndUserUpdate,
): Result<EndUserRecord> {
  const known = selectEndUser(tx.sql, "external_id", externalId);
  return known === null ? refuseUnknownEndUser() : success(updateEndUser(tx, known, change));
}

export function readEndUser(tx: Tx, externalId: string): Result<EndUserRecord> {
  const known = selectEndUser(tx.sql, "external_id", externalId);
  return known === null ? refuseUnknownEndUser() : success(endUserRecordOf(tx, known));
}

export function listEndUsers(
  tx: Tx,
  limit: number,
  offset: number,
  after: string | null = null,
): Result<EndUserPage> {
  const found = selectEndUserPage(tx.sql, { limit: limit + 1, offset, after });
  if (found === null) return invalid("after must be the id of an end user.", "after");
  const endUsers = found.slice(0, limit).map((stored) => endUserRecordOf(tx, stored));
  const nextAfter = found.length > limit ? (endUsers.at(-1)?.id ?? null) : null;
  return success({ endUsers, total: tx.memory.endUsers, nextAfter });
}

/** Deletes an end user, but keeps this month's spend. */
export function deleteEndUser(tx: Tx, externalId: string): Result<{ externalId: string }> {
  const known = selectEndUser(tx.sql, "external_id", externalId);
  if (known === null) return refuseUnknownEndUser();
  const paused = refuseDeletingPausedOwner(tx, ownerOf(known));
  if (paused !== null) return paused;
  removeEndUser(tx, known);
  return success({ externalId });
}

const ERASED_PER_CALL_MAX = 200;

/**
 * Deletes up to 200 end users. After the last one, erases names from events. Reports whether more
 * remain.
 */
export function eraseEndUsers(tx: Tx): Result<{ readonly more: boolean }> {
  const found =
    selectEndUserPage(tx.sql, { limit: ERASED_PER_CALL_MAX, offset: 0, after: null }) ?? [];
  for (const user of found) removeEndUser(tx, user);
  const more = tx.memory.endUsers > 0;
  if (!more) eraseEventNames(tx);
  return success({ more });
}

function refuseExternalId(externalId: string): Refusal | null {
  const problem = findExternalIdProblem(externalId);
  return problem === null ? null : invalid(`external_id ${problem}.`, "external_id");
}

function changedUser(user: EndUser, change: EndUserUpdate): EndUser {
  const { dailyQuotaMicro, monthlyQuotaMicro, alertThreshold } = change;
  return { ...user, ...definedFields({ dailyQuotaMicro, monthlyQuotaMicro, alertThreshold }) };
}

function updateEndUser(tx: Tx, known: EndUser, change: EndUserUpdate): EndUserRecord {
  const { memory, sql } = tx;
  const { actor } = change;
  const user = changedUser(known, change);
  const budgets = budgetStatusesOfOwner(tx, ownerOf(known)).map(({ budget }) => budget);
  const data = findFieldChanges(
    eventFieldsOf(known, budgets),
    eventFieldsOf(user, change.budgets ?? budgets),
  );
  tx.storage.transactionSync(() => {
    updateEndUserLimits(sql, user, nextPublishRevision(tx));
    if (change.budgets !== undefined) setBudgets(tx, ownerOf(user), change.budgets);
    if (data !== null && actor !== undefined) {
      addEvent(tx, { type: "end_user.changed", actor, subject: user.externalId, data });
    }
    raiseAlerts(tx, reachedQuotaAlerts(tx, user, user.id), memory.ledger.seq);
  });
  reloadFieldAmounts(tx, ownerOf(user));
  memory.unpublishedUserIds.add(user.id);
  memory.hasChanges = true;
  return endUserRecordOf(tx, user);
}

function eventFieldsOf(user: EndUser, budgets: readonly Budget[]) {
  return {
    monthly_quota_micro: user.monthlyQuotaMicro,
    daily_quota_micro: user.dailyQuotaMicro,
    alert_threshold: user.alertThreshold,
    budgets,
  };
}

const ownerOf = ({ id }: EndUser): BudgetOwner => ({ scope: "end_user", subject: id });

function endUserRecordOf(tx: Tx, user: EndUser): EndUserRecord {
  const spent = (window: string): Micros => micros(spentIn(tx, user.id, window));
  return {
    ...user,
    monthlySpendMicro: spent("month"),
    dailySpendMicro: spent("day"),
    budgets: tx.memory.budgets.scopes.has("end_user")
      ? budgetStatusesOfOwner(tx, ownerOf(user))
      : [],
  };
}

function spentIn(tx: Tx, id: string, window: string): number {
  const counts = readFieldLimits(tx, { scope: "end_user", subject: id });
  const count = counts.find((one) => isDollarFieldLimit(one) && one.budget.window === window);
  return count === undefined ? 0 : sumInWindow(window, count.tally, tx);
}

function reachedQuotaAlerts(tx: Tx, user: EndUser, id: string): ThresholdAlert[] {
  const spend = (window: string) => ({ before: 0, after: spentIn(tx, id, window) });
  return findQuotaAlerts(user, { day: spend("day"), month: spend("month") }, tx.period);
}

function refuseUnknownEndUser(): Refusal {
  return refuse({ kind: "not_found", message: "No such end user." });
}

const END_USERS_MAX = 100_000;
const DELETED_MAX = 100_000;

/** An end user to create. `departed` had the same external ID and was deleted this month. */
export type NewEndUser = {
  readonly user: EndUser;
  readonly departed: { readonly user: EndUser; readonly account: number } | null;
};

/** Prepares a new end user without storing it. Returns null at the maximum number of end users. */
export function prepareEndUser(tx: Tx, externalId: string): NewEndUser | null {
  const { memory } = tx;
  if (memory.endUsers >= END_USERS_MAX) return null;
  const { settings } = memory.row;
  const limits = {
    dailyQuotaMicro: settings.defaultUserDailyQuotaMicro,
    monthlyQuotaMicro: settings.defaultUserMonthlyQuotaMicro,
    alertThreshold: settings.defaultAlertThreshold,
  };
  const user = { id: crypto.randomUUID(), externalId, ...limits, createdAt: tx.nowMs };
  return { user, departed: findDeletedEndUser(tx, externalId) };
}

/** Returns an end user's quota meters, even before its row exists. */
export function metersOfQuotaUser(
  tx: Tx,
  payer: { readonly user: EndUser; readonly made: NewEndUser | null } | null,
): readonly Meter[] {
  if (payer === null) return [];
  const { user, made } = payer;
  if (made === null) return metersOfOwner(tx, ownerOf(user));
  const fresh = quotaLimitsOf(user, emptySpend(tx)).map(createMeterWithoutHolds);
  if (made.departed === null) return fresh;
  const before = fieldMetersOfOwner(tx, ownerOf(made.departed.user));
  return before.map((meter, at) => withBudget(meter, fresh[at]));
}

function emptySpend({ period }: Tx): EndUserSpend {
  return { month: period.month, monthly_spend: 0, day: period.day, daily_spend: 0 };
}

/** Returns the end user deleted this month with this external ID. */
export function findDeletedEndUser(tx: Tx, externalId: string): NewEndUser["departed"] {
  const { memory, sql, period } = tx;
  return memory.deletedEndUsers.count === 0
    ? null
    : selectDeletedEndUser(sql, hashExternalId(tx, externalId), period.month);
}

export function storeEndUser(tx: Tx, { user, departed }: NewEndUser): void {
  const { memory, sql } = tx;
  const changed = nextPublishRevision(tx);
  if (departed === null) {
    insertEndUser(sql, user, { spend: emptySpend(tx), changed, account: null });
    return;
  }
  const { id, externalId } = departed.user;
  const spend = selectEndUserSpend(sql, id) ?? emptySpend(tx);
  const alerts = reachedQuotaAlerts(tx, user, id);
  purgeEndUserByHash(sql, externalId);
  insertEndUser(sql, user, { spend, changed, account: departed.account });
  raiseAlerts(tx, alerts, memory.ledger.seq);
}

export function addEndUserToMemory(tx: Tx, { user, departed }: NewEndUser): void {
  const { memory } = tx;
  memory.endUsers += 1;
  memory.unpublishedUserIds.add(user.id);
  memory.hasChanges = true;
  if (departed === null) return;
  const { id } = departed.user;
  memory.deletedEndUsers = { ...memory.deletedEndUsers, count: memory.deletedEndUsers.count - 1 };
  moveMeters(tx, ownerOf(departed.user), ownerOf(user));
  reloadFieldAmounts(tx, ownerOf(user));
  memory.unpublishedUserIds.delete(id);
  moveHoldsToEndUser(memory.ledger, id, user.id);
}

/**
 * Removes an end user. Until the month ends, keeps a row with a hash of the external ID for holds
 * and charges.
 */
function removeEndUser(tx: Tx, user: EndUser): void {
  const { memory, sql, period, storage } = tx;
  const hash = hashExternalId(tx, user.externalId);
  const gone = storage.transactionSync(() => {
    const before = memory.deletedEndUsers.count === 0 ? [] : purgeEndUserByHash(sql, hash);
    if (memory.deletedEndUsers.count - before.length >= DELETED_MAX) {
      before.push(...purgeOldestEndUser(sql));
    }
    markEndUserDeleted(sql, user.id, {
      hash,
      month: period.month,
      changed: nextPublishRevision(tx),
    });
    eraseExternalId(tx, user);
    replaceExternalIdInFailures(sql, user);
    setBudgets(tx, ownerOf(user), []);
    endPausesOfDeletedOwner(tx, ownerOf(user));
    return before;
  });
  evictEndUserMeters(tx, gone);
  memory.deletedEndUsers = {
    count: memory.deletedEndUsers.count - gone.length + 1,
    until: Math.min(memory.deletedEndUsers.until, endOfMonthMs(period.month)),
  };
  memory.endUsers -= 1;
  reloadFieldAmounts(tx, ownerOf(user));
  memory.unpublishedUserIds.delete(user.id);
  memory.hasChanges = true;
}

/** Deletes rows of end users deleted in earlier months. Returns true if more may remain. */
export function purgeDeletedEndUsers(tx: Tx, rowsMax: number): boolean {
  const { memory, sql, period } = tx;
  if (memory.deletedEndUsers.count === 0) {
    memory.deletedEndUsers = { count: 0, until: Infinity };
    return false;
  }
  const gone = purgeEndUsersBefore(sql, period.month, rowsMax);
  evictEndUserMeters(tx, gone);
  memory.deletedEndUsers = selectDeletedEndUserStats(sql);
  return gone.length >= rowsMax;
}

function evictEndUserMeters({ memory }: Tx, ids: readonly string[]): void {
  for (const id of ids) evictMeters(memory, { scope: "end_user", subject: id });
}

/** Returns a hash that starts with a line break, which external IDs can't contain. */
function hashExternalId({ memory }: Tx, externalId: string): string {
  return `\n${sha256HexSync(`${memory.row.orgId}\n${externalId}`)}`;
}
