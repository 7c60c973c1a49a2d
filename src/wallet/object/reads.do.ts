import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Result } from "../../lib/failure.ts";
import { idFloor } from "../../lib/id.ts";
import { micros } from "../../lib/money.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "../rules/hold-guards.ts";
import { selectAlertPage } from "../tables/alert-rows.do.ts";
import { selectEventPage } from "../tables/event-rows.do.ts";
import type {
  AlertPage,
  EventPage,
  EventQuery,
  GenerationRecord,
  HoldsPage,
  LedgerPage,
  LedgerRow,
  RequestPage,
  RequestQuery,
} from "../wallet-contract.ts";
import { selectGeneration, selectRequestPage } from "../tables/generation-rows.do.ts";
import type { Desk } from "./memory.do.ts";

/** Sorts after every id. */
const LAST_ID = "~";

/** A page of the ledger, read between two marks and so never the whole table. */
export function readLedger(desk: Desk, afterSeq: number, limit: number): Result<LedgerPage> {
  const rows: LedgerRow[] = [];
  let from = afterSeq;
  while (rows.length < limit) {
    const to = nextMark(desk.sql, from + limit);
    rows.push(...ledgerRows(desk.sql, { from, to, limit: limit - rows.length }));
    if (to === null) break;
    from = to.seq;
  }
  return success({ rows, nextAfterSeq: rows.at(-1)?.seq ?? afterSeq });
}

type Mark = { seq: number; newest: number };

function nextMark(sql: SqlStorage, seq: number): Mark | null {
  const [mark] = sql
    .exec<Mark>("SELECT seq, newest FROM checkpoints WHERE seq >= ? ORDER BY seq LIMIT 1", seq)
    .toArray();
  return mark ?? null;
}

type LedgerSqlRow = {
  seq: number;
  kind: LedgerRow["kind"];
  amount: number;
  balance: number;
  absorbed: number;
  at: number;
  reference: string | null;
  request_id: string | null;
};

function ledgerRows(
  sql: SqlStorage,
  range: { readonly from: number; readonly to: Mark | null; readonly limit: number },
): LedgerRow[] {
  const { from, to, limit } = range;
  const [floor] = sql
    .exec<{ floor_id: string }>(
      "SELECT floor_id FROM checkpoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1",
      from,
    )
    .toArray();
  const beforeId = to === null ? LAST_ID : idFloor(HOLD_ID, to.newest + ID_AGE_MAX_MS + 1);
  return sql
    .exec<LedgerSqlRow>(
      `SELECT seq, iif(state = 'settled' AND late = 0, 'usage', 'expire') AS kind,
        iif(state = 'settled' AND late = 0, -charged, 0) AS amount, balance, 0 AS absorbed,
        settled_at AS at, NULL AS reference, id AS request_id
      FROM requests WHERE id >= ?1 AND id < ?2 AND seq > ?3 AND seq <= ?4
      UNION ALL
      SELECT seq, kind, amount, balance, absorbed, created_at, reference, request_id
      FROM entries WHERE seq > ?3 AND seq <= ?4
      ORDER BY seq LIMIT ?5`,
      floor?.floor_id ?? "",
      beforeId,
      from,
      to?.seq ?? Number.MAX_SAFE_INTEGER,
      limit,
    )
    .toArray()
    .map((row) => ({
      seq: row.seq,
      kind: row.kind,
      amountMicro: micros(row.amount),
      balanceMicro: micros(row.balance),
      absorbedMicro: micros(row.absorbed),
      createdAt: row.at,
      reference: row.reference,
      generationId: row.request_id,
    }));
}

/** A settled request as `GET /v1/generations` shows it; `not_found` for any other id. */
export function readGeneration(desk: Desk, id: string): Result<GenerationRecord> {
  const found = selectGeneration(desk.sql, id);
  if (found !== null) return success(found);
  return refuse({ kind: "not_found", message: "No such generation." });
}

/** Rows that one answer looks at: some ten milliseconds in which nobody is charged. */
const SCANNED_MAX = 10_000;

/** A page of requests, newest first; one that looked at many rows for few has fewer than asked for. */
export function readRequests(desk: Desk, asked: RequestQuery): Result<RequestPage> {
  return success(selectRequestPage(desk.sql, asked, SCANNED_MAX));
}

/** The open holds after `after`, oldest first; of these keys alone, unless that is null. */
export function readHolds(
  desk: Desk,
  asked: {
    readonly limit: number;
    readonly after: string | null;
    readonly keyIds: readonly string[] | null;
  },
): Result<HoldsPage> {
  const { limit, after, keyIds } = asked;
  const { holds } = desk.memory.books;
  const found = [...holds.values()]
    .filter(({ id, keyId }) => id > (after ?? "") && (keyIds?.includes(keyId) ?? true))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const shown = found.slice(0, limit).map(({ id, granted, keyId, externalId, admittedAt }) => {
    return { id, keyId, externalId, admittedAt, grantedMicro: granted };
  });
  const nextAfter = found.length > limit ? (shown.at(-1)?.id ?? null) : null;
  return success({ holds: shown, nextAfter });
}

export function readAlerts(desk: Desk, limit: number, offset: number): Result<AlertPage> {
  const { n } = desk.sql.exec<{ n: number }>("SELECT count(*) AS n FROM alerts").one();
  return success({ alerts: selectAlertPage(desk.sql, limit, offset), total: n });
}

/** See `WalletCalls.events`. */
export function readEvents(desk: Desk, query: EventQuery): Result<EventPage> {
  const page = selectEventPage(desk, query);
  return page === null
    ? invalid("after must be the id of an event in the log.", "after")
    : success(page);
}
