import type { FailedRequest } from "../../../shared/failed-request.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { holdIdBound, lowestHoldIdSince } from "../rules/hold-ids.ts";
import type {
  RequestState,
  WalletMethods,
  EventPage,
  EventQuery,
  SettledGeneration,
  OpenHoldRecord,
  HoldsPage,
  LedgerPage,
  LedgerRow,
  RequestPage,
  RequestQuery,
  RequestRecord,
  WalletBalance,
} from "../../../shared/contracts/wallet.ts";
import type { AlertPage } from "../../../shared/contracts/reports.ts";
import { selectFailedRequest } from "../tables/failed-rows.do.ts";
import { selectEventPage } from "./event-log.do.ts";
import { KEY_ID_SQL, REQUEST_MODEL_SQL } from "../tables/request-rows.do.ts";
import { parseGeneration, REQUEST_TAGS_SQL } from "../tables/generation-json.ts";
import { selectAlertPage } from "./alerts.do.ts";
import type { Tx } from "./memory.do.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import { OPERATOR_POLICY_OWNER } from "../rules/policies.ts";

const MAX_ID = "~";

export function readLedger(tx: Tx, afterSeq: number, limit: number): LedgerPage {
  const rows: LedgerRow[] = [];
  let from = afterSeq;
  while (rows.length < limit) {
    const to = nextCheckpoint(tx.sql, from + limit);
    rows.push(...ledgerRows(tx.sql, { from, to, limit: limit - rows.length }));
    if (to === null) break;
    from = to.seq;
  }
  return { rows, nextAfterSeq: rows.at(-1)?.seq ?? afterSeq };
}

export function readNewestLedgerRows(tx: Tx, beforeSeq: number, limit: number): LedgerRow[] {
  const rows: LedgerRow[] = [];
  let before = Math.min(beforeSeq, tx.memory.ledger.seq + 1);
  while (rows.length < limit && before > 1) {
    const from = checkpointBefore(tx.sql, before - Math.max(limit, 2))?.seq ?? 0;
    const to = nextCheckpoint(tx.sql, before - 1);
    const part = ledgerRows(tx.sql, { from, to, upTo: before - 1, limit: before - from });
    rows.push(...part.toReversed());
    before = from + 1;
  }
  return rows.slice(0, limit);
}

function checkpointBefore(sql: SqlStorage, seq: number) {
  const [mark] = sql
    .exec<{ seq: number; floor_id: string }>(
      "SELECT seq, floor_id FROM checkpoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1",
      seq,
    )
    .toArray();
  return mark;
}

type CheckpointMark = { seq: number; newest: number };

function nextCheckpoint(sql: SqlStorage, seq: number): CheckpointMark | null {
  const [mark] = sql
    .exec<CheckpointMark>(
      "SELECT seq, newest FROM checkpoints WHERE seq >= ? ORDER BY seq LIMIT 1",
      seq,
    )
    .toArray();
  return mark ?? null;
}

function ledgerRows(
  sql: SqlStorage,
  range: {
    readonly from: number;
    readonly to: CheckpointMark | null;
    readonly upTo?: number;
    readonly limit: number;
  },
): LedgerRow[] {
  const { from, to, limit, upTo = Number.MAX_SAFE_INTEGER } = range;
  const beforeId = to === null ? MAX_ID : holdIdBound(to.newest + 1);
  return sql
    .exec<LedgerRow>(
      `SELECT seq, iif(state = 'settled' AND late = 0, 'usage', 'expire') AS kind,
        iif(state = 'settled' AND late = 0, -charged, 0) AS amountMicro, balance AS balanceMicro,
        0 AS absorbedMicro, settled_at AS createdAt, NULL AS reference, id AS generationId
      FROM requests WHERE id >= ?1 AND id < ?2 AND seq > ?3 AND seq <= ?4
      UNION ALL
      SELECT seq, kind, amount, balance, absorbed, created_at, reference, request_id
      FROM entries WHERE seq > ?3 AND seq <= ?4
      ORDER BY seq LIMIT ?5`,
      checkpointBefore(sql, from)?.floor_id ?? "",
      beforeId,
      from,
      Math.min(to?.seq ?? upTo, upTo),
      limit,
    )
    .toArray();
}

export function readHolds(
  tx: Tx,
  { limit, after, keyIds }: Parameters<WalletMethods["holds"]>[0],
): Result<HoldsPage> {
  const { holds } = tx.memory.ledger;
  const found = [...holds.values()]
    .filter(({ id, keyId }) => id > (after ?? "") && (keyIds?.includes(keyId) ?? true))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const shown = found.slice(0, limit).map((hold): OpenHoldRecord => {
    const { id, granted, keyId, externalId, admittedAt, expiresAt, purpose = null } = hold;
    return { id, keyId, externalId, admittedAt, grantedMicro: granted, expiresAt, purpose };
  });
  const nextAfter = found.length > limit ? (shown.at(-1)?.id ?? null) : null;
  return success({ holds: shown, nextAfter });
}

export function readAlerts(tx: Tx, limit: number, offset: number): Result<AlertPage> {
  const { n } = tx.sql.exec<{ n: number }>("SELECT count(*) AS n FROM alerts").one();
  return success({ alerts: selectAlertPage(tx.sql, limit, offset), total: n });
}

export function readEvents(tx: Tx, query: EventQuery): Result<EventPage> {
  const page = selectEventPage(tx, query);
  return page === null
    ? invalid("after must be the id of an event in the log.", "after")
    : success(page);
}

const SCANNED_MAX = 10_000;

type StoredGeneration = Parameters<typeof parseGeneration>[0] & {
  readonly id: string;
  readonly state: RequestState;
  readonly createdAt: number;
  readonly granted: Micros | null;
  readonly charged: Micros;
  readonly absorbedMicro: Micros;
  readonly keyId: string;
  readonly externalId: string | null;
  readonly failed: string | null;
};

const COLUMNS = `requests.id AS id, state, admitted_at AS createdAt, granted, charged,
  shortfall AS absorbedMicro, ${KEY_ID_SQL} AS keyId, requests.external_id AS externalId,
  prompt_tokens, completion_tokens, (SELECT text FROM names WHERE number = sold) AS sold,
  requests.detail AS detail, failed.detail AS failed`;
const REQUESTS_WITH_FAILURES =
  "requests LEFT JOIN failed_requests AS failed ON failed.id = requests.id";

export function readRequest({ sql }: Tx, id: string): Result<RequestRecord> {
  const [row] = sql
    .exec<StoredGeneration>(
      `SELECT ${COLUMNS} FROM ${REQUESTS_WITH_FAILURES} WHERE requests.id = ?`,
      id,
    )
    .toArray();
  if (row !== undefined) return success(requestRecordOf(row));
  const failed = selectFailedRequest(sql, id);
  return failed === null ? refuseUnknownGeneration() : success(refusedRecord(failed));
}

export function selectSettledGenerations(
  sql: SqlStorage,
  ids: readonly string[],
): Map<string, SettledGeneration> {
  const rows = sql
    .exec<StoredGeneration>(
      `SELECT ${COLUMNS} FROM ${REQUESTS_WITH_FAILURES}
      WHERE requests.id IN (SELECT value FROM json_each(?)) AND state = 'settled'`,
      JSON.stringify(ids),
    )
    .toArray();
  return new Map(rows.map((row) => [row.id, generationRecordOf(row)]));
}

function refuseUnknownGeneration(): Refusal {
  return refuse({ kind: "not_found", message: "No such generation." });
}

/** Returns requests, newest first. Scans at most `SCANNED_MAX` rows, so a page can be short. */
export function readRequests({ sql }: Tx, query: RequestQuery): Result<RequestPage> {
  const { fromMs, beforeMs, limit } = query;
  const endId = holdIdBound(beforeMs);
  const beforeId = query.after !== null && query.after < endId ? query.after : endId;
  const fromId = lowestHoldIdSince(fromMs);
  const [end] = sql
    .exec<{ id: string }>(
      "SELECT id FROM requests WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
      fromId,
      beforeId,
      SCANNED_MAX - 1,
    )
    .toArray();
  const range = { fromId: end?.id ?? fromId, beforeId };
  const rows = [
    ...selectHeldRequests(sql, query, range),
    ...selectRefusedRequests(sql, query, range),
  ]
    .toSorted((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit + 1);
  const shown = rows.slice(0, limit);
  const nextAfter = rows.length > limit ? (shown.at(-1)?.id ?? null) : (end?.id ?? null);
  return success({ requests: shown, nextAfter });
}

type IdRange = { readonly fromId: string; readonly beforeId: string };

function selectHeldRequests(sql: SqlStorage, query: RequestQuery, range: IdRange): RequestRecord[] {
  const states = query.states ?? (query.state === null ? undefined : [query.state]);
  const models = query.models ?? (query.model === null ? undefined : [query.model]);
  return sql
    .exec<StoredGeneration>(
      `SELECT ${COLUMNS} FROM ${REQUESTS_WITH_FAILURES}
      WHERE requests.id >= ?1 AND requests.id < ?2 AND admitted_at >= ?3 AND admitted_at < ?4
        AND (?5 IS NULL OR state IN (SELECT value FROM json_each(?5)) OR ${OUTCOME_SQL} IN (SELECT value FROM json_each(?5)))
        AND (?6 IS NULL OR requests.external_id = ?6)
        AND (?7 IS NULL OR ${KEY_ID_SQL} IN (SELECT value FROM json_each(?7)))
        AND (?8 IS NULL OR coalesce(${REQUEST_MODEL_SQL}, failed.model) IN (SELECT value FROM json_each(?8)))
        AND (?9 IS NULL OR ${PROVIDER_SQL} IN (SELECT value FROM json_each(?9)) OR ${WAS_CALLED_SQL})
        AND (?10 IS NULL OR failed.code IN (SELECT value FROM json_each(?10)))
        AND (?12 IS NULL OR requests.${REQUEST_TAGS_SQL} ->> ('$."' || ?12 || '"') = ?13)
      ORDER BY requests.id DESC LIMIT ?11`,
      range.fromId,
      range.beforeId,
      query.fromMs,
      query.beforeMs,
      jsonList(states),
      query.externalId,
      jsonList(query.keyIds),
      jsonList(models),
      jsonList(query.providers),
      jsonList(query.codes),
      query.limit + 1,
      query.tag?.key ?? null,
      query.tag?.value ?? null,
    )
    .toArray()
    .map(requestRecordOf);
}

const OUTCOME_SQL = "iif(state = 'settled', iif(failed.id IS NULL, 'succeeded', 'failed'), NULL)";
const PROVIDER_SQL = "(SELECT text ->> '$.provider' FROM names WHERE number = sold)";
const WAS_CALLED_SQL = `EXISTS (SELECT 1 FROM json_each(failed.detail, '$.attempts') AS attempt
  WHERE substr(attempt.value ->> 'route', 1, instr(attempt.value ->> 'route', ':') - 1)
    IN (SELECT value FROM json_each(?9)))`;

function selectRefusedRequests(
  sql: SqlStorage,
  query: RequestQuery,
  range: IdRange,
): RequestRecord[] {
  const states = query.states ?? (query.state === null ? undefined : [query.state]);
  const models = query.models ?? (query.model === null ? undefined : [query.model]);
  if (states?.includes("refused") === false || query.providers !== undefined) return [];
  if (query.tag !== undefined) return []; // only charged requests have tags
  return sql
    .exec<{ detail: string }>(
      `SELECT detail FROM failed_requests AS failed
      WHERE id >= ?1 AND id < ?2 AND at >= ?3 AND at < ?4 AND (?5 IS NULL OR external_id = ?5)
        AND (?6 IS NULL OR key_id IN (SELECT value FROM json_each(?6)))
        AND (?7 IS NULL OR model IN (SELECT value FROM json_each(?7)))
        AND (?8 IS NULL OR code IN (SELECT value FROM json_each(?8)))
        AND NOT EXISTS (SELECT 1 FROM requests WHERE requests.id = failed.id)
      ORDER BY id DESC LIMIT ?9`,
      range.fromId,
      range.beforeId,
      query.fromMs,
      query.beforeMs,
      query.externalId,
      jsonList(query.keyIds),
      jsonList(models),
      jsonList(query.codes),
      query.limit + 1,
    )
    .toArray()
    .map(({ detail }) => refusedRecord(parseStoredJson<FailedRequest>(detail)));
}

function jsonList(values: readonly string[] | null | undefined): string | null {
  return values === null || values === undefined ? null : JSON.stringify(values);
}

function refusedRecord(failed: FailedRequest): RequestRecord {
  const { id, at: createdAt, keyId, externalId } = failed;
  const money = { heldMicro: null, generation: null };
  return { id, state: "refused", keyId, externalId, createdAt, ...money, failed };
}

function requestRecordOf(row: StoredGeneration): RequestRecord {
  const { id, state, keyId, externalId, createdAt, granted, failed, detail } = row;
  return {
    id,
    state,
    keyId: keyId === "" ? null : keyId,
    externalId,
    createdAt,
    heldMicro: granted,
    generation: state === "settled" ? generationRecordOf(row) : null,
    failed: failed === null ? null : parseStoredJson<FailedRequest>(failed),
    failure: state === "refused" && detail !== null ? parseStoredJson<Failure>(detail) : null,
  };
}

function generationRecordOf(row: StoredGeneration): SettledGeneration {
  const { id, keyId, externalId, createdAt, charged, granted, absorbedMicro } = row;
  const amounts = { costMicro: charged, heldMicro: granted ?? micros(0), absorbedMicro };
  return { ...parseGeneration(row), id, keyId, externalId, createdAt, ...amounts };
}

export function readBalance(tx: Tx): WalletBalance {
  const { balance, held, holds } = tx.memory.ledger;
  const { owed } = tx.memory.debts;
  const status = { creditsMicro: balance, heldMicro: held, openHolds: holds.size };
  const operatorPolicy = tx.memory.policies.get(OPERATOR_POLICY_OWNER);
  return {
    ...status,
    ...(owed !== 0 && { owedMicro: owed }),
    ...(operatorPolicy !== undefined && { operatorPolicy }),
  };
}
