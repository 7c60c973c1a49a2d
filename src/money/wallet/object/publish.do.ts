import { logAlert, logWarning } from "../../../shared/log.ts";
import { conflictJson, ownsSnapshot } from "../snapshot-ownership.ts";
import { PAGE_ROWS, readSnapshotHead, writePublication, settingsRow } from "../snapshot.store.ts";
import type {
  SnapshotPage,
  SnapshotRow,
  SnapshotHead,
  Publication,
  PublishResult,
} from "../snapshot.store.ts";
import type { KeyUse, KeyAfterUse } from "../../../shared/key-uses.store.ts";
import { deleteOldAlerts, selectAlertsAfter } from "./alerts.do.ts";
import { selectDebtsRow, selectPaymentsPage } from "../tables/payment-rows.do.ts";
import {
  deleteRemovedRules,
  selectRemovedRules,
  selectRulePage,
} from "../tables/policy-pause-rows.do.ts";
import { selectEndUsers, selectEndUsersAfter } from "../tables/end-user-rows.do.ts";
import {
  deleteRemovedBudgets,
  selectBudgetPage,
  selectRemovedBudgets,
} from "../tables/budget-rows.do.ts";
import type { Settings } from "../../../shared/contracts/settings.ts";
import type { WalletRow } from "../tables/wallet-row.do.ts";
import { recordKeyUse, changeWalletRow } from "./memory.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx, Memory } from "./memory.do.ts";

/** Minimum time between two published uses of the organization, in ms. */
const USE_INTERVAL_MS = 3_600_000;

/** The result of a publish. `again`: D1 lost rows, so the wallet must publish all rows. */
export type PublishOutcome = {
  readonly outcome: "published" | "again" | "conflict";
  readonly uses: readonly KeyUse[];
  readonly touched: readonly KeyAfterUse[];
  readonly eventsWait: boolean;
};

const NOTHING_SENT = { uses: [], touched: [], eventsWait: true } as const;

/**
 * Publishes changes to D1. If D1 belongs to another wallet, only checks its snapshot. Throws if D1
 * fails. The next publish then includes the same changes. `live` returns the open transaction.
 */
export async function publish(tx: Tx, live: () => Tx | null): Promise<PublishOutcome> {
  const first = await publishOnce(tx, live);
  const later = live();
  if (first.outcome !== "again" || later === null) return first;
  const second = await publishOnce(later, live);
  const uses = [...first.uses, ...second.uses];
  return { ...second, uses, touched: [...first.touched, ...second.touched] };
}

async function publishOnce(tx: Tx, live: () => Tx | null): Promise<PublishOutcome> {
  const { row } = tx.memory;
  if (row.conflict === null) return publishNow(tx, live);
  const head = await readSnapshotHead(tx.env.DB, row.orgId);
  const later = live();
  if (later === null) return { ...NOTHING_SENT, outcome: "published" }; // the wallet was deleted meanwhile
  if (head === null || ownsSnapshot(later.memory.row, head)) return publishNow(later, live);
  logConflict(later, head);
  return { ...NOTHING_SENT, outcome: "conflict" };
}

async function publishNow(tx: Tx, live: () => Tx | null): Promise<PublishOutcome> {
  const { memory } = tx;
  takeCheckpoint(tx);
  const picked = { endUsers: [...memory.unpublishedUserIds], uses: takeKeyUses(memory) };
  const publication = createPublication(tx, picked);
  const { settings } = memory.row;
  const creditsSeq = memory.ledger.seq;
  memory.unpublishedUserIds.clear();
  memory.hasChanges = false;
  memory.routine = 0;
  let published: PublishResult;
  try {
    published = await writePublication(tx.env.DB, publication);
  } catch (error) {
    const later = live()?.memory;
    if (later !== undefined) {
      restoreUnpublished(later, picked.endUsers);
      for (const { hash, usedAt } of picked.uses) recordKeyUse(later, hash, usedAt);
    }
    throw error;
  }
  const reported = { ...published, uses: picked.uses };
  const after = live();
  if (after === null) return { ...reported, outcome: "published" };
  const sent = { head: published.head, picked: picked.endUsers, creditsSeq, settings };
  return { ...reported, outcome: acknowledge(after, publication, sent) };
}

function takeKeyUses({ uses }: Memory): KeyUse[] {
  const picked = [...uses].map(([hash, usedAt]) => ({ hash, usedAt }));
  uses.clear();
  return picked;
}

function restoreUnpublished(memory: Memory, picked: readonly string[]): void {
  for (const id of picked) memory.unpublishedUserIds.add(id);
  memory.hasChanges = true;
}

function acknowledge(
  tx: Tx,
  publication: Publication,
  sent: {
    readonly head: PublishResult["head"];
    readonly picked: readonly string[];
    readonly creditsSeq: number;
    readonly settings: Settings;
  },
): PublishOutcome["outcome"] {
  const { row } = tx.memory;
  const { head, picked, creditsSeq } = sent;
  const found = head === "moved" ? null : head;
  const seq = head === "moved" ? row.acknowledged : (head?.seq ?? 0);
  if (found !== null && !ownsSnapshot({ ...row, revision: publication.revision }, found)) {
    restoreUnpublished(tx.memory, picked);
    const { epoch } = row;
    changeWalletRow(tx, {
      conflict: conflictJson({ head: found, epoch, revision: publication.revision }),
    });
    logConflict(tx, found);
    return "conflict";
  }
  if (seq < row.acknowledged && !publication.everything) {
    restoreUnpublished(tx.memory, picked);
    changeWalletRow(tx, { publishAll: true, conflict: null });
    logWarning("book_restored", {
      org_id: row.orgId,
      acknowledged: row.acknowledged,
      book_seq: seq,
    });
    return "again";
  }
  tx.storage.transactionSync(() => {
    tx.sql.exec("DELETE FROM deleted_end_users WHERE changed <= ?", publication.revision);
    deleteRemovedBudgets(tx.sql, publication.revision);
    deleteRemovedRules(tx.sql, publication.revision);
  });
  const publishAll = row.publishAll && !publication.everything;
  const { revision: acknowledged } = publication;
  changeWalletRow(tx, { acknowledged, creditsSeq, publishAll, conflict: null });
  const usedAt = publication.isUse ? publication.updatedAt : tx.memory.published.usedAt;
  tx.memory.published = { settings: sent.settings, usedAt };
  return "published";
}

function logConflict(tx: Tx, head: SnapshotHead): void {
  const { orgId, epoch, revision } = tx.memory.row;
  logAlert("wallet_book_conflict", {
    org_id: orgId,
    epoch,
    revision,
    book_epoch: head.epoch,
    book_seq: head.seq,
  });
}

function createPublication(
  tx: Tx,
  { endUsers, uses }: { readonly endUsers: readonly string[]; readonly uses: readonly KeyUse[] },
): Publication {
  const { row, ledger } = tx.memory;
  return {
    orgId: row.orgId,
    epoch: row.epoch,
    revision: row.revision,
    base: row.publishAll ? 0 : row.acknowledged,
    creditsMicro: ledger.balance,
    updatedAt: tx.nowMs,
    pages: pagesOf(tx, endUsers),
    uses: Array.from({ length: Math.ceil(uses.length / PAGE_ROWS) }, (_, page) =>
      uses.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS),
    ),
    alertsFrom: deleteOldAlerts(tx),
    everything: row.publishAll,
    isUse: row.publishAll || Math.abs(tx.nowMs - tx.memory.published.usedAt) >= USE_INTERVAL_MS,
  };
}

/**
 * Yields the rows to publish. Credits come first, so that up to 2,500 share a transaction with
 * their balance.
 */
function* pagesOf(tx: Tx, endUserIds: readonly string[]): Generator<SnapshotPage> {
  const { sql, memory } = tx;
  const { settings, publishAll } = memory.row;
  const isPublished = memory.published.settings === settings && !publishAll;
  const since = publishAll ? -1 : memory.row.acknowledged;
  yield* creditPages(sql, memory.row, memory.ledger.seq);
  yield* paymentPages(sql, since);
  if (!isPublished) yield { table: "settings", rows: [settingsRow(settings)] };
  yield* rulePages(sql, since);
  for (const rows of rowPages((last) => selectUsageByDay(sql, since, last?.["day"] ?? ""))) {
    yield { table: "daily_usage", rows };
  }
  for (const rows of rowPages((last) => selectKeySpendPage(sql, since, last?.["key_id"] ?? ""))) {
    yield { table: "key_spend", rows };
  }
  yield* budgetPages(sql, since);
  for (const rows of rowPages((last) =>
    selectAlertsAfter(sql, last ?? { changed: since, id: "~" }),
  )) {
    yield { table: "alerts", rows };
  }
  if (publishAll) {
    for (const rows of rowPages((last) => selectEndUsersAfter(sql, last?.["id"] ?? ""))) {
      yield { table: "end_users", rows };
    }
  } else {
    for (let from = 0; from < endUserIds.length; from += PAGE_ROWS) {
      const rows = selectEndUsers(sql, endUserIds.slice(from, from + PAGE_ROWS));
      yield { table: "end_users", rows };
    }
  }
  for (const rows of rowPages((last) => selectDeletedEndUsers(sql, last?.["id"] ?? ""))) {
    yield { table: "deleted_end_users", rows: rows.map(({ id }) => String(id)) };
  }
}

function* rulePages(sql: SqlStorage, since: number): Generator<SnapshotPage> {
  for (const rows of rowPages((last) => selectRulePage(sql, since, last?.["name"] ?? ""))) {
    yield { table: "rules", rows };
  }
  for (const rows of rowPages((last) => selectRemovedRules(sql, last?.["name"] ?? ""))) {
    yield { table: "removed_rules", rows: rows.map(({ name }) => String(name)) };
  }
}

function* creditPages(
  sql: SqlStorage,
  { creditsSeq, publishAll }: WalletRow,
  newest: number,
): Generator<SnapshotPage> {
  const first = publishAll ? 0 : creditsSeq;
  for (const rows of rowPages((last) => selectCredits(sql, last?.["seq"] ?? first, newest))) {
    yield { table: "credits", rows };
  }
  if (!publishAll) return;
  for (const rows of rowPages((last) => selectAdoptedCredits(sql, last?.["reference"] ?? ""))) {
    yield { table: "credits", rows };
  }
}

function* budgetPages(sql: SqlStorage, since: number): Generator<SnapshotPage> {
  for (const rows of rowPages((last) => selectBudgetPage(sql, since, last?.["name"] ?? ""))) {
    yield { table: "budgets", rows };
  }
  for (const rows of rowPages((last) => selectRemovedBudgets(sql, last?.["name"] ?? ""))) {
    yield { table: "removed_budgets", rows: rows.map(({ name }) => String(name)) };
  }
}

function* paymentPages(sql: SqlStorage, since: number): Generator<SnapshotPage> {
  for (const rows of rowPages((last) => selectPaymentsPage(sql, since, last?.["id"] ?? ""))) {
    yield { table: "payments", rows };
  }
  const debts = selectDebtsRow(sql, since);
  if (debts.length > 0) yield { table: "debts", rows: debts };
}

function* rowPages(
  read: (last: SnapshotRow | undefined) => SnapshotRow[],
): Generator<SnapshotRow[]> {
  for (let rows = read(undefined); rows.length > 0; rows = read(rows.at(-1))) {
    yield rows;
    if (rows.length < PAGE_ROWS) return;
  }
}

const CREDIT_COLUMNS = `reference, amount AS amount_micro, balance AS balance_micro, held AS held_micro,
  open_holds, created_at`;

function selectCredits(sql: SqlStorage, after: SnapshotRow[string], newest: number): SnapshotRow[] {
  return sql
    .exec<SnapshotRow>(
      `SELECT seq, ${CREDIT_COLUMNS} FROM entries WHERE seq > ? AND seq <= ? AND kind = 'credit'
      ORDER BY seq LIMIT ${PAGE_ROWS}`,
      after,
      newest,
    )
    .toArray();
}

function selectAdoptedCredits(sql: SqlStorage, after: SnapshotRow[string]): SnapshotRow[] {
  return sql
    .exec<SnapshotRow>(
      `SELECT ${CREDIT_COLUMNS} FROM adopted_credits WHERE reference > ?
      ORDER BY reference LIMIT ${PAGE_ROWS}`,
      after,
    )
    .toArray();
}

function selectUsageByDay(
  sql: SqlStorage,
  since: number,
  after: SnapshotRow[string],
): SnapshotRow[] {
  return sql
    .exec<SnapshotRow>(
      `SELECT day, requests, prompt_tokens, completion_tokens, cost AS cost_micro FROM totals
      WHERE dimension = 'day' AND day > ? AND changed > ? ORDER BY day LIMIT ${PAGE_ROWS}`,
      after,
      since,
    )
    .toArray();
}

function selectKeySpendPage(
  sql: SqlStorage,
  since: number,
  after: SnapshotRow[string],
): SnapshotRow[] {
  return sql
    .exec<SnapshotRow>(
      `SELECT key_id, day, daily AS daily_spend_micro, week, weekly AS weekly_spend_micro, month,
        monthly AS monthly_spend_micro, total AS total_spend_micro FROM key_budgets
      WHERE key_id > ? AND changed > ? ORDER BY key_id LIMIT ${PAGE_ROWS}`,
      after,
      since,
    )
    .toArray();
}

function selectDeletedEndUsers(sql: SqlStorage, after: SnapshotRow[string]): SnapshotRow[] {
  return sql
    .exec<SnapshotRow>(
      `SELECT id FROM deleted_end_users WHERE id > ? ORDER BY id LIMIT ${PAGE_ROWS}`,
      after,
    )
    .toArray();
}
