import { logAlert, logWarning } from "../../lib/log.ts";
import { conflictText, ownsBook, readBookHead, writePublication } from "../book.store.ts";
import type { BookHead, Publication } from "../book.store.ts";
import { selectAlertsSince } from "../tables/alert-rows.do.ts";
import { selectEndUsers } from "../tables/end-user-rows.do.ts";
import { changeRow, takeCheckpoint } from "./memory.do.ts";
import type { Desk, Memory } from "./memory.do.ts";

/** `again`: the book had lost what it acknowledged, everything must be published. */
export type PublishOutcome = "published" | "again" | "conflict";

/**
 * Brings the book up to date. The batch is picked in the turn this is called in, before anything is
 * awaited; what changes meanwhile belongs to the next one. After a conflict the book is looked at
 * first, and left alone until it is this wallet's again. Throws when D1 fails: nothing is lost, the
 * next batch holds it too. `live` gives the desk as it is after the wait.
 */
export async function publish(desk: Desk, live: () => Desk | null): Promise<PublishOutcome> {
  const { row } = desk.memory;
  if (row.conflict === null) return publishNow(desk, live);
  const head = await readBookHead(desk.env.DB, row.orgId);
  const later = live();
  if (later === null) return "published"; // given up meanwhile
  if (head === null || ownsBook(later.memory.row, head)) return publishNow(later, live);
  tellConflict(later, head);
  return "conflict";
}

async function publishNow(desk: Desk, live: () => Desk | null): Promise<PublishOutcome> {
  const { memory } = desk;
  takeCheckpoint(desk);
  const picked = [...memory.unpublished];
  const publication = pick(desk, picked);
  memory.unpublished.clear();
  memory.changed = false;
  let head: BookHead | null;
  try {
    head = await writePublication(desk.env.DB, publication);
  } catch (error) {
    putBack(live()?.memory, picked);
    throw error;
  }
  const after = live();
  if (after === null) return "published"; // given up meanwhile
  return acknowledge(after, publication, { head, picked });
}

function putBack(memory: Memory | undefined, picked: readonly string[]): void {
  if (memory === undefined) return;
  for (const id of picked) memory.unpublished.add(id);
  memory.changed = true;
}

function acknowledge(
  desk: Desk,
  publication: Publication,
  sent: { readonly head: BookHead | null; readonly picked: readonly string[] },
): PublishOutcome {
  const { row } = desk.memory;
  const { head, picked } = sent;
  if (head !== null && !ownsBook({ ...row, revision: publication.revision }, head)) {
    putBack(desk.memory, picked);
    const { epoch } = row;
    changeRow(desk, { conflict: conflictText({ head, epoch, revision: publication.revision }) });
    tellConflict(desk, head);
    return "conflict";
  }
  if ((head?.seq ?? 0) < row.acknowledged && !publication.everything) {
    putBack(desk.memory, picked);
    changeRow(desk, { publishAll: true, conflict: null });
    logWarning("book_restored", {
      org_id: row.orgId,
      acknowledged: row.acknowledged,
      book_seq: head?.seq ?? 0,
    });
    return "again";
  }
  desk.storage.transactionSync(() =>
    desk.sql.exec("DELETE FROM deleted_end_users WHERE changed <= ?", publication.revision),
  );
  const publishAll = row.publishAll && !publication.everything;
  changeRow(desk, { acknowledged: publication.revision, publishAll, conflict: null });
  return "published";
}

function tellConflict(desk: Desk, head: BookHead): void {
  const { orgId, epoch, revision } = desk.memory.row;
  logAlert("wallet_book_conflict", {
    org_id: orgId,
    epoch,
    revision,
    book_epoch: head.epoch,
    book_seq: head.seq,
  });
}

/** Everything that changed after the acknowledged publish, as it is now. */
function pick(desk: Desk, endUserIds: readonly string[]): Publication {
  const { memory, sql } = desk;
  const { row, books } = memory;
  const since = row.publishAll ? -1 : row.acknowledged;
  const deleted = sql.exec<{ id: string }>("SELECT id FROM deleted_end_users").toArray();
  return {
    orgId: row.orgId,
    epoch: row.epoch,
    revision: row.revision,
    base: row.publishAll ? 0 : row.acknowledged,
    creditsMicro: books.balance,
    updatedAt: desk.nowMs,
    settings: {
      default_user_monthly_quota_micro: row.settings.monthlyQuota,
      default_user_daily_quota_micro: row.settings.dailyQuota,
      default_alert_threshold: row.settings.alertThreshold,
      low_balance_threshold_micro: row.settings.lowBalance,
    },
    endUsers: selectEndUsers(sql, row.publishAll ? "all" : endUserIds),
    deletedEndUsers: deleted.map((one) => one.id),
    days: sql
      .exec<Record<string, string | number>>(
        `SELECT day, requests, prompt_tokens, completion_tokens, cost AS cost_micro
        FROM totals WHERE dimension = 'day' AND changed > ?`,
        since,
      )
      .toArray(),
    alerts: selectAlertsSince(sql, since),
    everything: row.publishAll,
  };
}
