import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Refusal, Result } from "../../lib/failure.ts";
import { idFloor } from "../../lib/id.ts";
import { micros } from "../../lib/money.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "../rules/hold-guards.ts";
import type { RequestState } from "../rules/ledger.ts";
import { microsOrNull } from "../rules/quota.ts";
import { selectEventPage } from "./event-rows.do.ts";
import { KEY_ID, MODEL } from "../tables/request-rows.do.ts";
import type { Rest, Sold } from "../tables/request-rows.do.ts";
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
  RequestRecord,
} from "../wallet-contract.ts";
import { selectAlertPage } from "./alerts.do.ts";
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

/** Rows that one answer looks at: some ten milliseconds in which nobody is charged. */
const SCANNED_MAX = 10_000;

type Row = {
  id: string;
  state: RequestState;
  admitted_at: number;
  granted: number | null;
  charged: number;
  shortfall: number;
  key_id: string;
  external_id: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  sold: string | null;
  detail: string | null;
};

const COLUMNS = `id, state, admitted_at, granted, charged, shortfall, ${KEY_ID}, external_id, prompt_tokens,
  completion_tokens, (SELECT text FROM names WHERE number = sold) AS sold, detail`;

/** A request that was held for; `not_found` for any other id. Whose it is says its hold, whatever was settled later. */
export function readRequest({ sql }: Desk, id: string): Result<RequestRecord> {
  const [row] = sql.exec<Row>(`SELECT ${COLUMNS} FROM requests WHERE id = ?`, id).toArray();
  return row === undefined ? missing() : success(recordOf(row));
}

/** See `WalletCalls.generation`. */
export function readGeneration(desk: Desk, id: string): Result<GenerationRecord> {
  const request = readRequest(desk, id);
  if (!request.ok) return request;
  const { generation } = request.value;
  return generation === null ? missing() : success(generation);
}

function missing(): Refusal {
  return refuse({ kind: "not_found", message: "No such generation." });
}

/**
 * A page of requests, newest first, by the tables' own order. Looks at no more than `SCANNED_MAX` rows: where they
 * hold fewer than were asked for, the page is short and goes on after them.
 */
export function readRequests({ sql }: Desk, asked: RequestQuery): Result<RequestPage> {
  const { fromMs, beforeMs, limit } = asked;
  const beforeId = [
    asked.after ?? LAST_ID,
    idFloor(HOLD_ID, beforeMs + ID_AGE_MAX_MS),
  ].toSorted()[0];
  const fromId = idFloor(HOLD_ID, fromMs - ID_AGE_MAX_MS);
  const [end] = sql
    .exec<{ id: string }>(
      "SELECT id FROM requests WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
      fromId,
      beforeId ?? "",
      SCANNED_MAX - 1,
    )
    .toArray();
  const rows = sql
    .exec<Row>(
      `SELECT ${COLUMNS} FROM requests
      WHERE id >= ?1 AND id < ?2 AND admitted_at >= ?3 AND admitted_at < ?4
        AND (?5 IS NULL OR state = ?5) AND (?6 IS NULL OR external_id = ?6)
        AND (?7 IS NULL OR ${bare(KEY_ID)} IN (SELECT value FROM json_each(?7)))
        AND (?8 IS NULL OR ${bare(MODEL)} = ?8)
      ORDER BY id DESC LIMIT ?9`,
      end?.id ?? fromId,
      beforeId ?? "",
      fromMs,
      beforeMs,
      asked.state,
      asked.externalId,
      asked.keyIds === null ? null : JSON.stringify(asked.keyIds),
      asked.model,
      limit + 1,
    )
    .toArray();
  const shown = rows.slice(0, limit);
  const nextAfter = rows.length > limit ? (shown.at(-1)?.id ?? null) : (end?.id ?? null);
  return success({ requests: shown.map(recordOf), nextAfter });
}

/** A column's expression without the name that it is given. */
function bare(column: string): string {
  return column.slice(0, column.lastIndexOf(" AS "));
}

function recordOf(row: Row): RequestRecord {
  return {
    id: row.id,
    state: row.state,
    keyId: row.key_id === "" ? null : row.key_id,
    externalId: row.external_id,
    createdAt: row.admitted_at,
    heldMicro: microsOrNull(row.granted),
    generation: row.state === "settled" ? generationOf(row) : null,
  };
}

function generationOf(row: Row): GenerationRecord {
  const whose = {
    id: row.id,
    keyId: row.key_id,
    externalId: row.external_id,
    createdAt: row.admitted_at,
    costMicro: micros(row.charged),
    heldMicro: micros(row.granted ?? 0),
    absorbedMicro: micros(row.shortfall),
  };
  const [
    streamed,
    cacheRead,
    cacheWrite,
    reasoning,
    firstByteMs,
    durationMs,
    estimated,
    finishReason,
    cacheWriteHour,
    failed,
  ] = JSON.parse(row.detail ?? "") as Rest;
  const input = row.prompt_tokens - cacheRead - cacheWrite;
  return {
    ...(JSON.parse(row.sold ?? "") as Sold),
    ...whose,
    usage: {
      input,
      cacheRead,
      cacheWrite,
      ...(cacheWriteHour !== undefined && cacheWriteHour > 0 && { cacheWriteHour }),
      output: row.completion_tokens,
      reasoning,
    },
    streamed: streamed === 1,
    firstByteMs,
    durationMs,
    estimated: estimated === 1,
    finishReason,
    ...(failed && { failed }),
  };
}
