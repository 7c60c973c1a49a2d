import { createOrMigrateTables } from "../../../shared/tables.do.ts";
import type { TableMigrations } from "../../../shared/tables.do.ts";
import { lowestHoldIdSince } from "../rules/hold-ids.ts";
import { CHARGE_SUMS_TABLES_SQL } from "./charge-sums.do.ts";
import { FAILED_REQUESTS_TABLES_SQL } from "./failed-rows.do.ts";
import { TAG_KEYS_TABLE_SQL } from "./tag-rows.do.ts";
import { PAYMENTS_TABLES_SQL } from "./payment-rows.do.ts";
import { WARM_ROUTES_TABLE_SQL } from "./warm-rows.do.ts";
import { RULES_TABLE_SQL } from "./policy-pause-rows.do.ts";

/**
 * Amounts are in micro-credits, times in Unix ms. `changed` is the number of the publish that
 * contains a row's change.
 */
const CORE_TABLES_SQL =
  "CREATE TABLE wallet (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "org_id TEXT NOT NULL," +
  "epoch TEXT NOT NULL," +
  "created_at INTEGER NOT NULL," +
  "revision INTEGER NOT NULL CHECK (revision >= 0)," + // number of the newest publish
  "acknowledged INTEGER NOT NULL CHECK (acknowledged BETWEEN 0 AND revision)," +
  "publish_all INTEGER NOT NULL CHECK (publish_all IN (0, 1))," + // 1: the next publish includes all rows
  "conflict TEXT," + // D1 belongs to another wallet, so holds are rejected
  "rpm_limit INTEGER CHECK (rpm_limit > 0)," +
  "suspended INTEGER NOT NULL CHECK (suspended IN (0, 1))," +
  "rearmed_seq INTEGER NOT NULL CHECK (rearmed_seq >= 0)," + // low-balance alerts up to this ledger row don't suppress new ones
  "swept_id TEXT NOT NULL," + // no unpaid request has a lower ID
  "credits_seq INTEGER NOT NULL DEFAULT 0," +
  "price_list TEXT" +
  ") STRICT;" +
  "CREATE TABLE settings (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "monthly_quota INTEGER CHECK (monthly_quota >= 0)," +
  "daily_quota INTEGER CHECK (daily_quota >= 0)," +
  "alert_threshold REAL NOT NULL CHECK (alert_threshold BETWEEN 0 AND 1)," +
  "low_balance INTEGER CHECK (low_balance >= 0)," +
  "changed INTEGER NOT NULL," +
  "keep_hours INTEGER CHECK (keep_hours >= 0)," + // null counts as 0
  "auto_top_up TEXT CHECK (json_valid(auto_top_up))," +
  "tag_keys TEXT CHECK (json_valid(tag_keys))" +
  ") STRICT;" +
  "CREATE TABLE requests (" +
  "id TEXT PRIMARY KEY NOT NULL," +
  "state TEXT NOT NULL CHECK (state IN ('held', 'settled', 'voided', 'expired', 'refused'))," +
  "admitted_at INTEGER NOT NULL," +
  "expires_at INTEGER NOT NULL," +
  "least INTEGER NOT NULL CHECK (least >= 0)," +
  "most INTEGER NOT NULL CHECK (most >= least)," +
  "granted INTEGER CHECK (granted BETWEEN least AND most)," +
  "period_day TEXT," + // UTC day of its spend; null: day of admitted_at
  "external_id TEXT," +
  "end_user INTEGER," + // the end user's `number` or `account`
  "key INTEGER NOT NULL," +
  "session TEXT," +
  "named INTEGER NOT NULL CHECK (named IN (0, 1))," + // 1: has an Idempotency-Key
  "tokens INTEGER," + // tokens held from the key's token limit; null: no limit
  "seq INTEGER CHECK (seq > 0)," +
  "late INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1))," + // 1: settled after it expired; its charge is in entries
  "balance INTEGER CHECK (balance >= 0)," +
  "charged INTEGER NOT NULL DEFAULT 0 CHECK (charged >= 0)," +
  "cost INTEGER NOT NULL DEFAULT 0 CHECK (cost >= 0)," +
  "shortfall INTEGER NOT NULL DEFAULT 0 CHECK (shortfall = cost - charged)," +
  "sold INTEGER," + // row in names with model and route; null: no charge
  "prompt_tokens INTEGER NOT NULL DEFAULT 0 CHECK (prompt_tokens >= 0)," +
  "completion_tokens INTEGER NOT NULL DEFAULT 0 CHECK (completion_tokens >= 0)," +
  "settled_at INTEGER," +
  "detail TEXT," + // other fields of the receipt, or the reason for a rejection
  "models INTEGER," + // row in names with the possible models
  "CHECK (state <> 'held' OR granted IS NOT NULL)," +
  "CHECK (state <> 'settled' OR (seq IS NOT NULL AND sold IS NOT NULL AND detail IS NOT NULL))," +
  "CHECK ((seq IS NULL) = (balance IS NULL))" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE names (" + // texts that many requests share
  "number INTEGER PRIMARY KEY," +
  "text TEXT NOT NULL UNIQUE" +
  ") STRICT;" +
  "CREATE TABLE idempotency_keys (" + // newest granted request of each Idempotency-Key
  "day TEXT NOT NULL CHECK (day = date(admitted_at / 1000, 'unixepoch'))," +
  "name TEXT NOT NULL," + // hash of API key ID and Idempotency-Key
  "body TEXT NOT NULL," + // hash of organization, path and body
  "request_id TEXT NOT NULL," +
  "admitted_at INTEGER NOT NULL," +
  "PRIMARY KEY (day, name)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE entries (" + // ledger rows that aren't requests
  "seq INTEGER PRIMARY KEY CHECK (seq > 0)," +
  "kind TEXT NOT NULL," +
  "amount INTEGER NOT NULL CHECK (kind <> 'shortfall' OR amount = 0)," +
  "balance INTEGER NOT NULL CHECK (balance >= 0)," +
  "absorbed INTEGER NOT NULL DEFAULT 0 CHECK (absorbed >= 0)," +
  "created_at INTEGER NOT NULL," +
  "reference TEXT UNIQUE CHECK (kind <> 'credit' OR reference IS NOT NULL)," +
  "request_id TEXT CHECK (kind NOT IN ('usage', 'shortfall') OR request_id IS NOT NULL)," +
  "held INTEGER NOT NULL DEFAULT 0," + // held amount when the credit was added
  "open_holds INTEGER NOT NULL DEFAULT 0" +
  ") STRICT;" +
  "CREATE TABLE adopted_credits (" + // credits of a lost wallet, read from D1; not in the ledger
  "reference TEXT PRIMARY KEY NOT NULL," +
  "amount INTEGER NOT NULL," +
  "balance INTEGER NOT NULL," + // balance and holds when the credit was added
  "held INTEGER NOT NULL," +
  "open_holds INTEGER NOT NULL," +
  "created_at INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE checkpoints (" + // state after ledger row seq; later rows contain only request IDs from floor_id on
  "seq INTEGER PRIMARY KEY," +
  "balance INTEGER NOT NULL CHECK (balance >= 0)," +
  "clock INTEGER NOT NULL," +
  "newest INTEGER NOT NULL," +
  "floor_id TEXT NOT NULL" +
  ") STRICT;" +
  "CREATE TABLE end_users (" +
  "number INTEGER PRIMARY KEY AUTOINCREMENT," +
  "id TEXT NOT NULL UNIQUE," +
  "external_id TEXT NOT NULL UNIQUE CHECK (external_id <> '')," +
  "monthly_quota INTEGER CHECK (monthly_quota >= 0)," +
  "daily_quota INTEGER CHECK (daily_quota >= 0)," +
  "alert_threshold REAL NOT NULL CHECK (alert_threshold BETWEEN 0 AND 1)," +
  "month TEXT NOT NULL," +
  "monthly_spend INTEGER NOT NULL CHECK (monthly_spend >= 0)," +
  "day TEXT NOT NULL," +
  "daily_spend INTEGER NOT NULL CHECK (daily_spend >= 0)," +
  "created_at INTEGER NOT NULL," +
  "departed TEXT," + // month of deletion; external_id is then a hash
  "account INTEGER," + // replaces number in the requests of the end user
  "changed INTEGER NOT NULL" +
  ") STRICT;" +
  "CREATE INDEX end_users_by_departure ON end_users (departed) WHERE departed IS NOT NULL;" +
  "CREATE UNIQUE INDEX end_users_by_account ON end_users (account) WHERE account IS NOT NULL;" +
  "CREATE TABLE deleted_end_users (id TEXT PRIMARY KEY NOT NULL, changed INTEGER NOT NULL) " +
  "STRICT, WITHOUT ROWID;" +
  "CREATE TABLE totals (" + // usage by UTC day of admission, at the newest checkpoint
  "dimension TEXT NOT NULL," +
  "day TEXT NOT NULL," +
  "name TEXT NOT NULL," + // '' for 'day' and for requests without an end user
  "requests INTEGER NOT NULL," +
  "prompt_tokens INTEGER NOT NULL," +
  "cached INTEGER NOT NULL DEFAULT 0," + // unknown before a rebuild
  "completion_tokens INTEGER NOT NULL," +
  "cost INTEGER NOT NULL CHECK (cost >= 0)," +
  "changed INTEGER NOT NULL," +
  "PRIMARY KEY (dimension, day, name)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE alerts (" +
  "id TEXT PRIMARY KEY NOT NULL," +
  "kind TEXT NOT NULL," +
  "end_user_id TEXT," +
  "external_id TEXT," +
  "period TEXT," +
  "threshold REAL," +
  "limit_micro INTEGER NOT NULL," +
  "value_micro INTEGER NOT NULL," +
  "created_at INTEGER NOT NULL," +
  "seq INTEGER NOT NULL," + // newest ledger row at created_at
  "changed INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE INDEX alerts_by_limit ON alerts (kind, limit_micro, end_user_id, period);" +
  "CREATE INDEX alerts_by_change ON alerts (changed);" +
  "CREATE INDEX alerts_by_time ON alerts (end_user_id, kind, created_at);" +
  "CREATE TABLE keys (" + // copies from the key objects, only in the home region
  "number INTEGER PRIMARY KEY," +
  "hash TEXT NOT NULL UNIQUE," +
  "key_id TEXT," + // null: the key must be looked up
  "member_id TEXT," +
  "scope TEXT CHECK (scope IN ('regional', 'global'))," +
  "rpm_limit INTEGER CHECK (rpm_limit > 0)," +
  "terms TEXT," +
  "secrets TEXT," + // only for a rotated key
  "sessions_cut INTEGER NOT NULL DEFAULT 0," + // last rotation that ended all sessions of the key
  "checked_at INTEGER," +
  "revoked_at INTEGER" +
  ") STRICT;" +
  "CREATE TABLE admissions (" + // ring buffer of each key's newest admissions
  "key INTEGER NOT NULL," +
  "slot INTEGER NOT NULL," +
  "at INTEGER NOT NULL," +
  "PRIMARY KEY (key, slot)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE key_budgets (" + // includes removed budgets; spend is at the newest checkpoint
  "key_id TEXT PRIMARY KEY NOT NULL," +
  "budget INTEGER CHECK (budget >= 0)," + // null: removed
  "period TEXT," + // day, week or month; null: total
  "day TEXT NOT NULL," +
  "daily INTEGER NOT NULL CHECK (daily >= 0)," +
  "week TEXT NOT NULL," +
  "weekly INTEGER NOT NULL CHECK (weekly >= 0)," +
  "month TEXT NOT NULL," +
  "monthly INTEGER NOT NULL CHECK (monthly >= 0)," +
  "total INTEGER NOT NULL CHECK (total >= 0)," +
  "changed INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE events (" +
  "seq INTEGER PRIMARY KEY AUTOINCREMENT," +
  "id TEXT NOT NULL UNIQUE," +
  "type TEXT NOT NULL," +
  "actor_kind TEXT NOT NULL," +
  "actor_id TEXT CHECK ((actor_id IS NULL) = (actor_kind = 'system'))," +
  "subject TEXT NOT NULL," +
  "data TEXT NOT NULL CHECK (json_valid(data))," +
  "created_at INTEGER NOT NULL," +
  "room TEXT NOT NULL," + // partition: a new event deletes only old events of its partition
  "place INTEGER NOT NULL," +
  "renamed INTEGER NOT NULL DEFAULT 0 CHECK (renamed IN (0, 1))" + // 1: webhook messages may contain an erased name
  ") STRICT;" +
  "CREATE INDEX events_of_end_users ON events (subject) WHERE room = 'end_user';" +
  "CREATE INDEX events_renamed ON events (seq) WHERE renamed = 1;" +
  "CREATE UNIQUE INDEX events_by_room ON events (room, place);" +
  "CREATE INDEX events_by_time ON events (created_at, seq);" +
  "CREATE INDEX events_by_type ON events (type, created_at, seq);" +
  "CREATE INDEX events_by_member ON events (actor_id) WHERE actor_kind = 'member';" +
  "CREATE INDEX events_of_members ON events (subject) WHERE type GLOB 'member.*';" +
  "CREATE TABLE event_log (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "dropped INTEGER NOT NULL DEFAULT 0," + // number of events deleted at the limit
  "dropped_until INTEGER," + // created_at of the newest deleted event
  "told_seq INTEGER NOT NULL DEFAULT 0" + // newest event that the webhooks object has
  ") STRICT;" +
  "INSERT INTO event_log (id) VALUES (1);" +
  "CREATE TABLE event_counts (" + // events of each key and session in its last hour
  "actor TEXT NOT NULL," +
  "type TEXT NOT NULL," +
  "hour INTEGER NOT NULL," +
  "told INTEGER NOT NULL," +
  "left_out INTEGER NOT NULL," +
  "PRIMARY KEY (actor, type)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE sessions (" +
  "id TEXT PRIMARY KEY NOT NULL," +
  "key_id TEXT," + // null, like terms, if it ended before its first use
  "terms TEXT CHECK (json_valid(terms))," +
  "spent INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0)," +
  "expires_at INTEGER NOT NULL," + // for an unused session: latest possible expiry
  "ended_at INTEGER," +
  "ended_by TEXT" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE INDEX sessions_unused ON sessions (ended_by) WHERE key_id IS NULL;";

const BUDGET_TABLES_SQL =
  "CREATE TABLE budgets (" +
  "scope TEXT NOT NULL," +
  "subject TEXT NOT NULL," + // owner's ID, or '' for the organization
  "id TEXT NOT NULL," +
  "place INTEGER NOT NULL," +
  "budget TEXT CHECK (json_valid(budget))," + // null: removed, but not yet in D1
  "since_seq INTEGER NOT NULL," + // counts ledger rows after this one
  "since INTEGER NOT NULL," +
  "tally TEXT NOT NULL CHECK (json_valid(tally))," +
  "changed INTEGER NOT NULL," +
  "PRIMARY KEY (scope, subject, id)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE budgets_counted (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "seq INTEGER NOT NULL," +
  "floor_id TEXT NOT NULL" + // later rows contain only request IDs from here on
  ") STRICT;" +
  "CREATE TABLE key_members (" + // the member of each key, even if the key was evicted
  "key_id TEXT PRIMARY KEY NOT NULL," +
  "member_id TEXT NOT NULL" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE INDEX key_members_by_member ON key_members (member_id);";

/** Adds the flag `closed`. A closed organization's wallet rejects all keys. */
const ADD_CLOSED_COLUMN_SQL = "ALTER TABLE wallet ADD COLUMN closed INTEGER";

/** An index without which the deletion of end users reads all events of budgets and pauses. */
const ADD_INDEX_OF_NAMES_SQL = `CREATE INDEX events_of_names ON events (data ->> '$.end_user')
  WHERE data ->> '$.end_user' IS NOT NULL`;

export const WALLET_TABLES: TableMigrations = {
  name: "wallet",
  steps: [
    {
      sql:
        CORE_TABLES_SQL +
        FAILED_REQUESTS_TABLES_SQL +
        PAYMENTS_TABLES_SQL +
        TAG_KEYS_TABLE_SQL +
        BUDGET_TABLES_SQL +
        CHARGE_SUMS_TABLES_SQL,
      readableBy: 1,
    },
    { sql: WARM_ROUTES_TABLE_SQL, readableBy: 1 },
    { sql: RULES_TABLE_SQL, readableBy: 1 },
    { sql: ADD_CLOSED_COLUMN_SQL, readableBy: 1 },
    { sql: ADD_INDEX_OF_NAMES_SQL, readableBy: 1 },
  ],
};

/** Creates a wallet. Its new `epoch` distinguishes it from earlier wallets of the organization. */
export function createWallet(
  storage: DurableObjectStorage,
  made: { readonly orgId: string; readonly epoch: string; readonly nowMs: number },
): void {
  const { sql } = storage;
  const floorId = lowestHoldIdSince(made.nowMs);
  storage.transactionSync(() => {
    createOrMigrateTables(storage, WALLET_TABLES);
    sql.exec(
      `INSERT INTO wallet (id, org_id, epoch, created_at, revision, acknowledged, publish_all,
        suspended, rearmed_seq, swept_id) VALUES (1, ?, ?, ?, 0, 0, 0, 0, 0, ?)`,
      made.orgId,
      made.epoch,
      made.nowMs,
      floorId,
    );
    sql.exec("INSERT INTO settings (id, alert_threshold, changed) VALUES (1, 0.8, 1)");
    sql.exec(
      "INSERT INTO checkpoints (seq, balance, clock, newest, floor_id) VALUES (0, 0, ?, ?, ?)",
      made.nowMs,
      made.nowMs,
      floorId,
    );
  });
}

export function hasWalletBeenUsed(sql: SqlStorage): boolean {
  const { n } = sql
    .exec<{ n: number }>(
      `SELECT EXISTS (SELECT 1 FROM requests) + EXISTS (SELECT 1 FROM entries)
        + EXISTS (SELECT 1 FROM end_users) + EXISTS (SELECT 1 FROM deleted_end_users)
        + (SELECT changed > 1 FROM settings) AS n`,
    )
    .one();
  return n > 0;
}
