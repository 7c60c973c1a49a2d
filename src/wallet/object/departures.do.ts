import { sha256 } from "../../lib/sha256.ts";
import { quotaCrossings } from "../rules/alerts.ts";
import { moveHolds } from "../rules/ledger.ts";
import { noSpend } from "../rules/quota.ts";
import type { EndUser } from "../rules/quota.ts";
import { raiseAlerts } from "../tables/alert-rows.do.ts";
import {
  deleteDepartedBefore,
  deleteDepartedHash,
  deleteOldestDeparted,
  endOfMonth,
  insertEndUser,
  selectDeparted,
  selectDepartedEndUser,
  updateDeparted,
} from "../tables/end-user-rows.do.ts";
import { nextRevision } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";

export const END_USERS_MAX = 100_000;
/** So many that departed are kept; of more the oldest go, with what they spent. */
const DEPARTED_MAX = 100_000;

/** An end user that is to be made; `departed` is who it was before, as stored, or null. */
export type NewEndUser = {
  readonly user: EndUser;
  readonly departed: { readonly user: EndUser; readonly account: number } | null;
};

/**
 * An end user with the organisation's defaults, under an id of its own; who departed this month under the same
 * name is one with what it has spent. Null when there are too many. Only looks.
 */
export function newEndUser(desk: Desk, externalId: string): NewEndUser | null {
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

/** Writes a new end user; its requests of before are its own again. Within a transaction. */
export function storeEndUser(desk: Desk, { user, departed }: NewEndUser): void {
  const { memory, sql, period } = desk;
  const changed = nextRevision(desk);
  if (departed === null) {
    insertEndUser(sql, user, { changed, account: null });
    return;
  }
  deleteDepartedHash(sql, departed.user.externalId);
  // As of the checkpoint: the rows after it are added by whoever reads them.
  const { spend } = departed.user;
  insertEndUser(sql, { ...user, spend }, { changed, account: departed.account });
  raiseAlerts(desk, quotaCrossings(null, user, period), memory.books.seq);
}

/** Brings the memory to what `storeEndUser` wrote. */
export function madeEndUser({ memory }: Desk, { user, departed }: NewEndUser): void {
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
 * An end user is gone, but for what it spends: until the month ends its row stays under a hash of its name, and its
 * open holds and their charges count.
 */
export function depart(desk: Desk, user: EndUser): void {
  const { memory, sql, period, storage } = desk;
  const hash = hashOf(desk, user.externalId);
  const gone = storage.transactionSync(() => {
    const before = memory.departed.count === 0 ? [] : deleteDepartedHash(sql, hash);
    if (memory.departed.count - before.length >= DEPARTED_MAX) {
      before.push(...deleteOldestDeparted(sql));
    }
    updateDeparted(sql, user.id, { hash, month: period.month, changed: nextRevision(desk) });
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

/** Forgets those whose month is over, at most `rowsMax`; true when there may be more. */
export function forgetDeparted({ memory, sql, period }: Desk, rowsMax: number): boolean {
  if (memory.departed.count === 0) {
    memory.departed = { count: 0, until: Infinity };
    return false;
  }
  const gone = deleteDepartedBefore(sql, period.month, rowsMax);
  for (const id of gone) memory.unsaved.delete(id);
  memory.departed = selectDeparted(sql);
  return gone.length >= rowsMax;
}

/** Stands for the name in its column. It begins as no name can: those have no control characters. */
function hashOf({ memory }: Desk, externalId: string): string {
  return `\n${sha256(`${memory.row.orgId}\n${externalId}`)}`;
}
