import { externalIdProblem } from "../../../shared/external-id.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { sha256 } from "../../../shared/hash.ts";
import { quotaCrossings } from "../rules/alerts.ts";
import { moveHolds } from "../rules/open-holds.ts";
import { spentIn, noSpend } from "../rules/quota.ts";
import type { EndUser } from "../rules/quota.ts";
import {
  selectEndUserPage,
  updateEndUserLimits,
  purgeEndUsersBefore,
  purgeEndUserByHash,
  purgeOldestEndUser,
  endOfMonth,
  insertEndUser,
  selectDeletedEndUsers,
  selectDeletedEndUser,
  markEndUserDeleted,
} from "../tables/end-user-rows.do.ts";
import { eraseEvents, eraseName } from "./event-log.do.ts";
import { renameFailed } from "../tables/failed-rows.do.ts";
import type {
  EndUserChange,
  EndUserPage,
  EndUserRecord,
  PutEndUserAnswer,
} from "../../../shared/contracts/wallet.ts";
import type { BudgetOwner } from "../../../shared/budgets.ts";
import { budgetsOf } from "./budget-status.do.ts";
import { setBudgets } from "./budgets.do.ts";
import { endPausesOf, refusePaused } from "./pauses.do.ts";
import { raiseAlerts } from "./alerts.do.ts";
import { refuseLimits } from "./settings.do.ts";
import { findEndUser, nextRevision } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

export function putEndUser(
  tx: Tx,
  externalId: string,
  change: EndUserChange,
): Result<PutEndUserAnswer> {
  const wrong = refuseExternalId(externalId) ?? refuseChange(change);
  if (wrong !== null) return wrong;
  const known = findEndUser(tx, "external_id", externalId);
  if (known !== null) {
    return success({ created: false, endUser: alter(tx, known, change) });
  }
  const fresh = newEndUser(tx, externalId);
  if (fresh === null) return refuse({ kind: "too_many_end_users" });
  const made = { ...fresh, user: { ...fresh.user, ...changedLimits(fresh.user, change) } };
  tx.storage.transactionSync(() => {
    storeEndUser(tx, made);
    if (change.budgets !== undefined) setBudgets(tx, ownerOf(made.user), change.budgets);
  });
  madeEndUser(tx, made);
  return success({ created: true, endUser: recordOf(tx, made.user) });
}

export function patchEndUser(
  tx: Tx,
  externalId: string,
  change: EndUserChange,
): Result<EndUserRecord> {
  const wrong = refuseChange(change);
  if (wrong !== null) return wrong;
  const known = findEndUser(tx, "external_id", externalId);
  return known === null ? missing() : success(alter(tx, known, change));
}

export function readEndUser(tx: Tx, externalId: string): Result<EndUserRecord> {
  const known = findEndUser(tx, "external_id", externalId);
  return known === null ? missing() : success(recordOf(tx, known));
}

export function listEndUsers(
  tx: Tx,
  page: { readonly limit: number; readonly offset: number; readonly after: string | null },
): Result<EndUserPage> {
  const found = selectEndUserPage(tx.sql, { ...page, limit: page.limit + 1 });
  if (found === null) return invalid("after must be the id of an end user.", "after");
  const endUsers = found
    .slice(0, page.limit)
    .map((stored) => recordOf(tx, tx.memory.unsaved.get(stored.id) ?? stored));
  const nextAfter = found.length > page.limit ? (endUsers.at(-1)?.id ?? null) : null;
  return success({ endUsers, total: tx.memory.endUsers, nextAfter });
}

/** Deletes an end user. Its spend of this month stays. */
export function deleteEndUser(tx: Tx, externalId: string): Result<{ externalId: string }> {
  const known = findEndUser(tx, "external_id", externalId);
  if (known === null) return missing();
  const paused = refusePaused(tx, ownerOf(known));
  if (paused !== null) return paused;
  depart(tx, known);
  return success({ externalId });
}

const ERASED_MAX = 200;

/**
 * Deletes end users, at most 200 in one call, then the names in events. Reports whether there are
 * more.
 */
export function eraseEndUsers(tx: Tx): Result<{ readonly more: boolean }> {
  const found = selectEndUserPage(tx.sql, { limit: ERASED_MAX, offset: 0, after: null }) ?? [];
  for (const user of found) depart(tx, tx.memory.unsaved.get(user.id) ?? user);
  const more = tx.memory.endUsers > 0;
  if (!more) eraseEvents(tx);
  return success({ more });
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

function alter(tx: Tx, known: EndUser, change: EndUserChange): EndUserRecord {
  const { memory, sql } = tx;
  const user: EndUser = { ...known, ...changedLimits(known, change) };
  const crossings = quotaCrossings(null, user, tx.period);
  tx.storage.transactionSync(() => {
    updateEndUserLimits(sql, user, nextRevision(tx));
    if (change.budgets !== undefined) setBudgets(tx, ownerOf(user), change.budgets);
    raiseAlerts(tx, crossings, memory.ledger.seq);
  });
  if (memory.unsaved.has(user.id)) memory.unsaved.set(user.id, user);
  markChanged(tx, user);
  return recordOf(tx, user);
}

const ownerOf = ({ id }: EndUser): BudgetOwner => ({ scope: "end_user", subject: id });

function markChanged(tx: Tx, user: EndUser): void {
  tx.memory.unpublished.add(user.id);
  tx.memory.changed = true;
}

function recordOf(tx: Tx, user: EndUser): EndUserRecord {
  const spent = spentIn(user.spend, tx.period);
  return {
    id: user.id,
    externalId: user.externalId,
    monthlyQuotaMicro: user.monthlyQuota,
    dailyQuotaMicro: user.dailyQuota,
    alertThreshold: user.alertThreshold,
    monthlySpendMicro: spent.monthly,
    dailySpendMicro: spent.daily,
    budgets: tx.memory.budgets.scopes.has("end_user") ? budgetsOf(tx, ownerOf(user)) : [],
    createdAt: user.createdAt,
  };
}

function missing(): Refusal {
  return refuse({ kind: "not_found", message: "No such end user." });
}

const END_USERS_MAX = 100_000;
const DEPARTED_MAX = 100_000;

/** An end user to create. `departed` is an end user of the same name who was deleted this month. */
export type NewEndUser = {
  readonly user: EndUser;
  readonly departed: { readonly user: EndUser; readonly account: number } | null;
};

/**
 * Returns a new end user that continues the spend of `departed`. Returns null if the organization
 * has the maximum number. Writes nothing.
 */
export function newEndUser(tx: Tx, externalId: string): NewEndUser | null {
  const { memory, period } = tx;
  if (memory.endUsers >= END_USERS_MAX) return null;
  const { dailyQuota, monthlyQuota, alertThreshold } = memory.row.settings;
  const departed = findDeletedEndUser(tx, externalId);
  const last = departed === null ? null : (memory.unsaved.get(departed.user.id) ?? departed.user);
  const user = {
    id: crypto.randomUUID(),
    externalId,
    dailyQuota,
    monthlyQuota,
    alertThreshold,
    createdAt: tx.nowMs,
    spend: last?.spend ?? noSpend(period),
  };
  return { user, departed };
}

export function findDeletedEndUser(tx: Tx, externalId: string): NewEndUser["departed"] {
  const { memory, sql, period } = tx;
  return memory.departed.count === 0
    ? null
    : selectDeletedEndUser(sql, hashOf(tx, externalId), period.month);
}

export function storeEndUser(tx: Tx, { user, departed }: NewEndUser): void {
  const { memory, sql, period } = tx;
  const changed = nextRevision(tx);
  if (departed === null) {
    insertEndUser(sql, user, { changed, account: null });
    return;
  }
  purgeEndUserByHash(sql, departed.user.externalId);
  const { spend } = departed.user;
  insertEndUser(sql, { ...user, spend }, { changed, account: departed.account });
  raiseAlerts(tx, quotaCrossings(null, user, period), memory.ledger.seq);
}

export function madeEndUser({ memory }: Tx, { user, departed }: NewEndUser): void {
  memory.endUsers += 1;
  memory.unpublished.add(user.id);
  memory.changed = true;
  if (departed === null) return;
  const { id } = departed.user;
  memory.departed = { ...memory.departed, count: memory.departed.count - 1 };
  if (memory.unsaved.delete(id)) memory.unsaved.set(user.id, user);
  memory.unpublished.delete(id);
  moveHolds(memory.ledger, id, user.id);
}

/**
 * Deletes an end user. Until the month ends, a row with the hash of its name remains, and its holds
 * and charges still count.
 */
function depart(tx: Tx, user: EndUser): void {
  const { memory, sql, period, storage } = tx;
  const hash = hashOf(tx, user.externalId);
  const gone = storage.transactionSync(() => {
    const before = memory.departed.count === 0 ? [] : purgeEndUserByHash(sql, hash);
    if (memory.departed.count - before.length >= DEPARTED_MAX) {
      before.push(...purgeOldestEndUser(sql));
    }
    markEndUserDeleted(sql, user.id, { hash, month: period.month, changed: nextRevision(tx) });
    eraseName(tx, user);
    renameFailed(sql, user);
    setBudgets(tx, ownerOf(user), []);
    endPausesOf(tx, ownerOf(user));
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

/**
 * Deletes the rows of end users who were deleted in earlier months. Returns true if more may
 * remain.
 */
export function purgeDeletedEndUsers({ memory, sql, period }: Tx, rowsMax: number): boolean {
  if (memory.departed.count === 0) {
    memory.departed = { count: 0, until: Infinity };
    return false;
  }
  const gone = purgeEndUsersBefore(sql, period.month, rowsMax);
  for (const id of gone) memory.unsaved.delete(id);
  memory.departed = selectDeletedEndUsers(sql);
  return gone.length >= rowsMax;
}

/**
 * Returns the hash that replaces a name. It starts with a control character, which names can't
 * contain.
 */
function hashOf({ memory }: Tx, externalId: string): string {
  return `\n${sha256(`${memory.row.orgId}\n${externalId}`)}`;
}
