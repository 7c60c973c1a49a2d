import type { Actor } from "../../../shared/event.ts";
import { conflict } from "../../../shared/failure.ts";
import type { Refusal } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import {
  isOwnSnapshot,
  PAGED_SNAPSHOT_TABLES,
  readWalletSnapshotHead,
  readSnapshotPages,
} from "../snapshot.store.ts";
import type { PagedSnapshotTable } from "../snapshot.store.ts";
import { readSnapshot } from "../read-snapshot.store.ts";
import type { WalletSnapshot } from "../read-snapshot.store.ts";
import { addEvent } from "./event-log.do.ts";
import { insertLedgerEntry } from "../tables/request-rows.do.ts";
import { INITIAL_TOP_UP_STATE } from "../rules/top-up.ts";
import { insertForgivenDebt, putDebts, putTopUp } from "../tables/payment-rows.do.ts";
import { updateSettings, updateWalletRow } from "../tables/wallet-row.do.ts";
import { nextPublishRevision } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

const COPY_ATTEMPTS_MAX = 3;

/**
 * Restores the wallet from D1 after the loss of its tables. Fails if open holds exceed D1's
 * balance, or if the wallet lost nothing: D1's snapshot is its own. After success, the caller must
 * reload the wallet's memory.
 */
export function restoreFromSnapshot(
  tx: Tx,
  snapshot: WalletSnapshot,
  { isNew, actor }: { readonly isNew: boolean; readonly actor: Actor },
): Refusal | null {
  const { memory, sql, nowMs } = tx;
  const { ledger, row } = memory;
  const { head } = snapshot;
  if (!isNew && isOwnSnapshot(row, head)) return rejectNeedlessRebuild();
  if (head.creditsMicro < ledger.held) {
    return conflict("The open holds exceed the balance in the database.");
  }
  tx.storage.transactionSync(() => {
    const revision = Math.max(head.seq, row.revision);
    const changed = Math.max(nextPublishRevision(tx), revision + 1);
    updateWalletRow(sql, {
      ...row,
      epoch: head.epoch,
      revision,
      acknowledged: 0,
      publishAll: true,
      conflict: null,
      ...snapshot.configuration,
    });
    insertLedgerEntry(sql, {
      place: { seq: ledger.seq + 1, balance: micros(head.creditsMicro), at: nowMs },
      kind: "credit",
      amount: micros(head.creditsMicro - ledger.balance),
      reference: `rebuild:${head.epoch}:${head.seq}:${ledger.seq}`,
      held: ledger.held,
      openHolds: ledger.holds.size,
    });
    adoptRows(sql, snapshot, changed);
    addEvent(tx, {
      type: "organization.wallet_rebuilt",
      actor,
      subject: row.orgId,
      data: { balance_micro: head.creditsMicro },
    });
    // A rebuild ends all sessions, because D1 doesn't store their spend.
    sql.exec("DELETE FROM sessions");
    sql.exec("UPDATE wallet SET created_at = max(created_at + 1, ?)", nowMs);
  });
  return null;
}

export function rejectNeedlessRebuild(): Refusal {
  return conflict("The wallet exists and matches the database. Nothing needs to be rebuilt.");
}

function adoptRows(sql: SqlStorage, snapshot: WalletSnapshot, changed: number): void {
  const { settings } = snapshot;
  // D1's snapshot can lack recent top-ups, so automatic top-up stays off until a person enables it.
  if (settings !== null) updateSettings(sql, { ...settings, autoTopUp: null }, changed);
  const isOff = settings !== null && settings.autoTopUp !== null;
  if (isOff) putTopUp(sql, { ...INITIAL_TOP_UP_STATE, disabledReason: "wallet_rebuilt" });
  if (snapshot.debts !== null) {
    putDebts(sql, snapshot.debts, changed);
    sql.exec("DELETE FROM forgiven");
    for (const [reference, amount] of Object.entries(snapshot.debts.forgivenBy)) {
      insertForgivenDebt(sql, reference, amount);
    }
  }
  // The payments object sends unpublished payments again.
  sql.exec(
    `DELETE FROM payments WHERE id NOT IN (SELECT value ->> 'id' FROM ${pagesSql("payments")})`,
  );
  sql.exec(
    `INSERT OR REPLACE INTO payments (id, purchase_id, credited, back, reading, changed)
    SELECT value ->> 'id', value ->> 'purchase_id', value ->> 'credited_micro',
      value ->> 'back_micro', value ->> 'reading', ? FROM ${pagesSql("payments")}`,
    changed,
  );
  adoptRules(sql, changed);
  adoptEndUsers(sql, changed);
  sql.exec(
    `INSERT OR REPLACE INTO totals (dimension, day, name, requests, prompt_tokens,
      completion_tokens, cost, changed)
    SELECT 'day', value ->> 'day', '', value ->> 'requests', value ->> 'prompt_tokens',
      value ->> 'completion_tokens', value ->> 'cost_micro', ? FROM ${pagesSql("daily_usage")}`,
    changed,
  );
  sql.exec(
    `INSERT OR IGNORE INTO adopted_credits (reference, amount, balance, held, open_holds, created_at)
    SELECT value ->> 'reference', value ->> 'amount_micro', value ->> 'balance_micro',
      value ->> 'held_micro', value ->> 'open_holds', value ->> 'created_at' FROM ${pagesSql("credits")}`,
  );
  // The next hold restores the limits from the key's terms.
  sql.exec(
    `INSERT OR REPLACE INTO key_budgets (key_id, day, daily, week, weekly, month, monthly, total,
      changed)
    SELECT value ->> 'key_id', value ->> 'day', value ->> 'daily_spend_micro', value ->> 'week',
      value ->> 'weekly_spend_micro', value ->> 'month', value ->> 'monthly_spend_micro',
      value ->> 'total_spend_micro', ? FROM ${pagesSql("key_spend")}`,
    changed,
  );
  adoptBudgets(sql, changed);
  sql.exec(
    `INSERT OR IGNORE INTO alerts (id, kind, external_id, period, threshold, limit_micro,
      value_micro, created_at, seq, changed)
    SELECT value ->> 'id', value ->> 'kind', value ->> 'external_id', value ->> 'period',
      value ->> 'threshold', value ->> 'limit_micro', value ->> 'value_micro',
      value ->> 'created_at', 0, ? FROM ${pagesSql("alerts")}`,
    changed,
  );
}

function adoptBudgets(sql: SqlStorage, changed: number): void {
  sql.exec("DELETE FROM budgets");
  sql.exec(
    `INSERT INTO budgets (scope, subject, id, place, budget, since_seq, since, tally, changed)
    SELECT value ->> 'scope', value ->> 'subject', value ->> 'id', value ->> 'place',
      value ->> 'budget', (SELECT max(seq) FROM entries), value ->> 'since', value ->> 'tally', ?
    FROM ${pagesSql("budgets")}`,
    changed,
  );
}

function adoptRules(sql: SqlStorage, changed: number): void {
  sql.exec(
    `DELETE FROM rules WHERE name NOT IN (SELECT value ->> 'name' FROM ${pagesSql("rules")})`,
  );
  sql.exec(
    `INSERT OR REPLACE INTO rules (name, rule, changed)
    SELECT value ->> 'name', value ->> 'rule', ? FROM ${pagesSql("rules")}`,
    changed,
  );
}

/** Restores end users. Existing ones keep their numbers, because open holds refer to them. */
function adoptEndUsers(sql: SqlStorage, changed: number): void {
  sql.exec(
    `UPDATE OR REPLACE end_users SET id = book.id
    FROM (SELECT value ->> 'id' AS id, value ->> 'external_id' AS name FROM ${pagesSql("end_users")}) AS book
    WHERE end_users.external_id = book.name AND end_users.id <> book.id`,
  );
  sql.exec(
    `INSERT INTO end_users (id, external_id, monthly_quota, daily_quota, alert_threshold,
      month, monthly_spend, day, daily_spend, created_at, changed)
    SELECT value ->> 'id', value ->> 'external_id', value ->> 'monthly_quota_micro',
      value ->> 'daily_quota_micro', value ->> 'alert_threshold', value ->> 'month',
      value ->> 'monthly_spend_micro', value ->> 'day', value ->> 'daily_spend_micro',
      value ->> 'created_at', ? FROM ${pagesSql("end_users")} WHERE true ORDER BY value ->> 'created_at'
    ON CONFLICT (id) DO UPDATE SET external_id = excluded.external_id,
      monthly_quota = excluded.monthly_quota, daily_quota = excluded.daily_quota,
      alert_threshold = excluded.alert_threshold, month = excluded.month,
      monthly_spend = excluded.monthly_spend, day = excluded.day,
      daily_spend = excluded.daily_spend, created_at = excluded.created_at,
      changed = excluded.changed, departed = NULL`,
    changed,
  );
}

export function dropSnapshotCopy(sql: SqlStorage): void {
  sql.exec("DROP TABLE IF EXISTS book_pages");
}

const pagesSql = (table: PagedSnapshotTable): string =>
  `(SELECT value FROM book_pages, json_each(book_pages.rows) WHERE name = '${table}')`;

/** Copies D1's snapshot to a local table. Returns null if D1 has no balance or keeps changing. */
export async function copySnapshot(
  sql: SqlStorage,
  db: D1Database,
  orgId: string,
): Promise<WalletSnapshot | null> {
  for (let attempt = 0; attempt < COPY_ATTEMPTS_MAX; attempt++) {
    const copy = await readSnapshot(db, orgId);
    if (copy === null) return null;
    dropSnapshotCopy(sql);
    sql.exec("CREATE TABLE book_pages (name TEXT NOT NULL, rows TEXT NOT NULL) STRICT");
    for (const table of PAGED_SNAPSHOT_TABLES) {
      for await (const rows of readSnapshotPages(db, orgId, table)) {
        sql.exec("INSERT INTO book_pages (name, rows) VALUES (?, ?)", table, JSON.stringify(rows));
      }
    }
    const head = await readWalletSnapshotHead(db, orgId);
    if (head?.epoch === copy.head.epoch && head.seq === copy.head.seq) return copy;
  }
  return null;
}
