import { micros } from "../lib/money.ts";
import { idFloor } from "../lib/id.ts";
import { CLOCK_LAG_MAX_MS, HOLD_ID, ID_AGE_MAX_MS } from "./hold-id.ts";
import { emptyBooks, openHold } from "./open-holds.ts";
import type { Books, OpenHold } from "./open-holds.ts";
import { rateFloor } from "./organization-rate.ts";
import type { RateLog } from "./organization-rate.ts";
import { addSpend } from "./quota.ts";
import type { EndUser } from "./quota.ts";
import { selectEndUser } from "./end-user-rows.do.ts";
import { periodOfRow } from "./request-rows.do.ts";
import { readWalletRow } from "./wallet-row.do.ts";
import type { WalletRow } from "./wallet-row.do.ts";
import { addUsage } from "./usage-totals.ts";
import type { PostedUsage, UsageTotals } from "./usage-totals.ts";

/**
 * Everything the wallet knows without asking its tables, and that they can always give again:
 * changed only after the transaction that made it true has returned.
 */
export type Memory = {
  row: WalletRow;
  readonly books: Books;
  /** The wallet's own time when it was last asked, as `wallet-clock.do.ts` lets it pass. */
  clock: number;
  /** The newest time ever seen: the periods of spend and quotas go by it. */
  newest: number;
  /** No ledger row after the newest checkpoint has a smaller id. */
  floorId: string;
  /** End users with spend that only the ledger rows after the checkpoint show, by id. */
  readonly unsaved: Map<string, EndUser>;
  /** End users whose change the book has not acknowledged, by id. */
  readonly unpublished: Set<string>;
  /** Number of end users. */
  endUsers: number;
  /** Usage since the newest checkpoint. */
  readonly usage: UsageTotals;
  rateLog: RateLog;
  /** Anything that the book does not show yet. */
  changed: boolean;
};

/** Derives the memory from the newest checkpoint and the rows after it. */
export function loadMemory(sql: SqlStorage): Memory {
  const row = readWalletRow(sql);
  const checkpoint = sql
    .exec<{ seq: number; balance: number; clock: number; newest: number; floor_id: string }>(
      "SELECT seq, balance, clock, newest, floor_id FROM checkpoints ORDER BY seq DESC LIMIT 1",
    )
    .one();
  const memory: Memory = {
    row,
    books: { ...emptyBooks(), seq: checkpoint.seq, balance: micros(checkpoint.balance) },
    clock: checkpoint.clock,
    newest: checkpoint.newest,
    floorId: checkpoint.floor_id,
    unsaved: new Map(),
    unpublished: new Set(),
    endUsers: sql.exec<{ n: number }>("SELECT count(*) AS n FROM end_users").one().n,
    usage: new Map(),
    rateLog: [],
    changed: false,
  };
  addLaterRows(sql, memory, checkpoint.seq);
  memory.clock = Math.max(memory.clock, newestAdmission(sql, checkpoint.floor_id));
  memory.newest = Math.max(memory.newest, memory.clock);
  for (const hold of selectOpenHolds(sql, checkpoint.floor_id)) openHold(memory.books, hold);
  for (const user of sql.exec<{ id: string }>(
    "SELECT id FROM end_users WHERE changed > ?",
    row.acknowledged,
  )) {
    memory.unpublished.add(user.id);
  }
  memory.changed = memory.books.seq > checkpoint.seq || unpublished(sql, memory);
  memory.rateLog.push(...selectRateLog(sql, row.rpmLimit, memory.clock));
  return memory;
}

function addLaterRows(sql: SqlStorage, memory: Memory, seq: number): void {
  const later = sql
    .exec<{ seq: number; charged: number; at: number }>(
      `SELECT seq, CASE WHEN state = 'settled' AND late = 0 THEN charged ELSE 0 END AS charged,
        max(admitted_at, coalesce(settled_at, 0)) AS at
      FROM requests WHERE id >= ?1 AND seq > ?2
      UNION ALL SELECT seq, -amount, created_at FROM entries WHERE seq > ?2`,
      memory.floorId,
      seq,
    )
    .toArray();
  const { books } = memory;
  // Summed first: row by row, in no order, the balance could pass through what it never was.
  books.balance = micros(books.balance - later.reduce((sum, one) => sum + one.charged, 0));
  for (const one of later) {
    books.seq = Math.max(books.seq, one.seq);
    memory.clock = Math.max(memory.clock, one.at);
  }
  for (const posted of selectPosted(sql, memory.floorId, seq)) {
    addUsage(memory.usage, posted);
    if (posted.endUserId !== null) addLaterSpend(sql, memory, posted.endUserId, posted);
  }
}

/** When the newest request that is not in the ledger was admitted, Unix ms; 0 without any. */
function newestAdmission(sql: SqlStorage, floorId: string): number {
  const { at } = sql
    .exec<{ at: number | null }>(
      "SELECT max(admitted_at) AS at FROM requests WHERE id >= ? AND seq IS NULL",
      floorId,
    )
    .one();
  return at ?? 0;
}

function addLaterSpend(sql: SqlStorage, memory: Memory, id: string, posted: PostedUsage): void {
  const user = memory.unsaved.get(id) ?? selectEndUser(sql, "id", id);
  if (user === null) return; // deleted since: the organisation paid
  const spend = addSpend(user.spend, posted.period, posted.charged);
  memory.unsaved.set(id, { ...user, spend });
}

type PostedRow = {
  admitted_at: number;
  period_day: string | null;
  charged: number;
  end_user_id: string | null;
  external_id: string | null;
  key_id: string;
  model: string;
  prompt_tokens: number;
  completion_tokens: number;
};

/** The settled requests of the ledger after `seq`, late ones too. */
function selectPosted(sql: SqlStorage, floorId: string, seq: number): PostedUsage[] {
  const columns =
    "admitted_at, period_day, charged, end_user_id, external_id, key_id, model, prompt_tokens, completion_tokens";
  return sql
    .exec<PostedRow>(
      `SELECT ${columns} FROM requests
      WHERE id >= ?1 AND seq > ?2 AND state = 'settled' AND late = 0
      UNION ALL SELECT ${columns} FROM entries JOIN requests ON requests.id = entries.request_id
      WHERE entries.seq > ?2 AND kind = 'usage'`,
      floorId,
      seq,
    )
    .toArray()
    .map((row) => ({
      admittedAt: row.admitted_at,
      period: periodOfRow(row),
      charged: micros(row.charged),
      endUserId: row.end_user_id,
      externalId: row.external_id,
      keyId: row.key_id,
      model: row.model,
      promptTokens: row.prompt_tokens,
      completionTokens: row.completion_tokens,
    }));
}

type HoldRow = {
  id: string;
  granted: number;
  external_id: string | null;
  end_user_id: string | null;
  key_id: string;
  admitted_at: number;
  period_day: string | null;
  expires_at: number;
};

/** The holds that are open in the tables, oldest id first. */
export function selectOpenHolds(sql: SqlStorage, floorId: string): OpenHold[] {
  return sql
    .exec<HoldRow>(
      `SELECT id, granted, external_id, end_user_id, key_id, admitted_at, period_day, expires_at
      FROM requests WHERE id >= ? AND state = 'held' ORDER BY id`,
      floorId,
    )
    .toArray()
    .map((row) => ({
      id: row.id,
      granted: micros(row.granted),
      externalId: row.external_id,
      endUserId: row.end_user_id,
      keyId: row.key_id,
      admittedAt: row.admitted_at,
      period: periodOfRow(row),
      expiresAt: row.expires_at,
    }));
}

/** The granted holds that still count against an organisation's limit; none is later than `nowMs`. */
export function selectRateLog(sql: SqlStorage, limit: number | null, nowMs: number): RateLog {
  if (limit === null) return [];
  const floor = rateFloor(nowMs);
  return sql
    .exec<{ at: number }>(
      `SELECT admitted_at AS at FROM requests
      WHERE id >= ? AND admitted_at > ? AND admitted_at <= ? AND granted IS NOT NULL
      ORDER BY admitted_at`,
      idFloor(HOLD_ID, floor - ID_AGE_MAX_MS - CLOCK_LAG_MAX_MS),
      floor,
      nowMs,
    )
    .toArray()
    .map((row) => row.at);
}

function unpublished(sql: SqlStorage, memory: Memory): boolean {
  if (memory.unpublished.size > 0 || memory.row.publishAll) return true;
  if (memory.row.revision > memory.row.acknowledged) return true;
  const { n } = sql
    .exec<{ n: number }>(
      `SELECT (SELECT count(*) FROM settings WHERE changed > ?1)
        + (SELECT count(*) FROM alerts WHERE changed > ?1)
        + (SELECT count(*) FROM deleted_end_users) AS n`,
      memory.row.acknowledged,
    )
    .one();
  return n > 0;
}
