import { insertRow } from "../../../shared/tables.do.ts";
import { assert } from "../../../shared/assert.ts";
import type { Failure } from "../../../shared/failure.ts";
import { IDEMPOTENCY_RETENTION_MS } from "../../../shared/idempotency.ts";
import type { IdempotencyHashes } from "../../../shared/idempotency.ts";
import type { Micros } from "../../../shared/money.ts";
import { sumPromptTokens } from "../../../shared/usage.ts";
import type { IdempotencyHolder } from "../rules/hold-guards.ts";
import type { KnownHold, HoldPosting } from "../rules/ledger.ts";
import type { OpenHold } from "../rules/open-holds.ts";
import type { HoldRequest, Settlement } from "../../../shared/contracts/wallet.ts";
import { periodOf, periodOfDay } from "../../../shared/period.ts";
import type { Period } from "../../../shared/period.ts";
import {
  HOLD_PURPOSE_SQL,
  generationDetailJson,
  sharedChargeFieldsJson,
} from "./generation-json.ts";
import type { StoredHoldPurpose } from "../../../shared/placed-hold.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import { evictOldest } from "../../../shared/evict-oldest.ts";
import { computeCost } from "../../../shared/cost.ts";
import type { Generation } from "../../../shared/generation.ts";

export const KEY_ID_SQL = "(SELECT text FROM names WHERE number = key)";
export const END_USER_ID_SQL = `coalesce((SELECT end_users.id FROM end_users WHERE account = end_user),
    (SELECT end_users.id FROM end_users WHERE number = end_user))`;
/** SQL expression: JSON list of the models that may serve a request. */
export const MODELS_SQL = "(SELECT text FROM names WHERE number = models)";
export const REQUEST_MODEL_SQL = "(SELECT text ->> '$.model' FROM names WHERE number = sold)";
const HOLD_COLUMNS = `id, granted, external_id AS externalId, ${END_USER_ID_SQL} AS endUserId,
  ${KEY_ID_SQL} AS keyId, session, tokens, ${MODELS_SQL} AS models, admitted_at AS admittedAt,
  period_day AS periodDay, expires_at AS expiresAt, ${HOLD_PURPOSE_SQL} AS purpose`;
/** A hold as stored in its row, with JSON in the columns `models` and `purpose`. */
type StoredHold<Hold> = Omit<Hold, "period" | "models" | "purpose"> & {
  readonly periodDay: string | null;
  readonly models: string | null;
  readonly purpose: string | null;
};

export function selectOpenHolds(sql: SqlStorage, floorId: string): OpenHold[] {
  return sql
    .exec<StoredHold<OpenHold>>(
      `SELECT ${HOLD_COLUMNS} FROM requests WHERE id >= ? AND state = 'held' ORDER BY id`,
      floorId,
    )
    .toArray()
    .map(holdFromRow);
}

export function selectRequest(sql: SqlStorage, id: string): KnownHold | null {
  const [row] = sql
    .exec<StoredHold<Omit<KnownHold, "failure">> & { failure: string | null }>(
      `SELECT ${HOLD_COLUMNS}, state, least, most, charged, shortfall,
        CASE WHEN state = 'refused' THEN detail END AS failure
      FROM requests WHERE id = ?`,
      id,
    )
    .toArray();
  if (row === undefined) return null;
  const { failure, ...hold } = holdFromRow(row);
  const charged = hold.purpose?.charged ?? hold.charged;
  return { ...hold, charged, failure: failure === null ? null : parseStoredJson<Failure>(failure) };
}

function holdFromRow<
  Row extends StoredHold<{ readonly admittedAt: number; readonly granted: Micros | null }>,
>({ periodDay, ...row }: Row) {
  const purpose = row.purpose === null ? null : parseStoredJson<StoredHoldPurpose>(row.purpose);
  return {
    ...row,
    granted: purpose?.held ?? row.granted,
    models: parseModels(row.models),
    period: periodOfRequest({ periodDay, admittedAt: row.admittedAt }),
    purpose,
  };
}

export function parseModels(text: string | null): readonly string[] | null {
  return text === null ? null : parseStoredJson<readonly string[]>(text);
}

/**
 * Returns the period in which a request counts. After the clock moved back, the period can be later
 * than the admission.
 */
export function periodOfRequest({
  periodDay,
  admittedAt,
}: {
  readonly periodDay: string | null;
  readonly admittedAt: number;
}): Period {
  return periodDay === null ? periodOf(admittedAt) : periodOfDay(periodDay);
}

type NewRequest = {
  readonly key: number;
  readonly state: "held" | "refused" | "voided";
  readonly tokens: number | null;
  readonly failure: Failure | null;
  /** The row number in `names` of the models that the hold covers. */
  readonly models?: number | null;
};
type RequestedHold = Pick<HoldRequest, "id" | "least" | "most"> &
  Partial<Pick<HoldRequest, "idempotency">>;
type OpenedHold = Omit<OpenHold, "id" | "granted" | "keyId" | "purpose"> & {
  readonly granted: Micros | null;
  readonly purpose?: StoredHoldPurpose | null;
};

/** The row number in `names` of each text. */
export type NameRowNumbers = Map<string, number>;

const NAMES_MAX = 2_000;

/** Returns a text's row number in the table `names`. Inserts a new text. */
export function getOrInsertName(sql: SqlStorage, known: NameRowNumbers, text: string): number {
  const before = known.get(text);
  if (before !== undefined) return before;
  const { number } =
    selectName(sql, text) ??
    sql
      .exec<{ number: number }>("INSERT INTO names (text) VALUES (?) RETURNING number", text)
      .one();
  evictOldest(known, NAMES_MAX);
  known.set(text, number);
  return number;
}

function selectName(sql: SqlStorage, text: string): { readonly number: number } | undefined {
  return sql.exec<{ number: number }>("SELECT number FROM names WHERE text = ?", text).toArray()[0];
}

const insertSql = (endUser: string): string =>
  `INSERT INTO requests (id, state, admitted_at, expires_at, least, most, granted, external_id,
    end_user, key, detail, period_day, named, tokens, session, models)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ${endUser}, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`;
const INSERT_SQL = insertSql("?");
const INSERT_FOR_USER_SQL = insertSql(
  "(SELECT coalesce(account, number) FROM end_users WHERE id = ?)",
);

/**
 * Stores a request, whose end user must already have a row. If the ID exists, returns false and
 * changes nothing.
 */
export function insertRequest(
  sql: SqlStorage,
  made: NewRequest,
  requested: RequestedHold,
  opened: OpenedHold,
): boolean {
  const { admittedAt, endUserId, period } = opened;
  return (
    sql.exec(
      endUserId === null ? INSERT_SQL : INSERT_FOR_USER_SQL,
      requested.id,
      made.state,
      admittedAt,
      opened.expiresAt,
      requested.least,
      requested.most,
      opened.granted,
      opened.externalId,
      endUserId,
      made.key,
      jsonOrNull(made.failure ?? opened.purpose ?? null),
      period.day === periodOf(admittedAt).day ? null : period.day,
      (requested.idempotency ?? null) === null ? 0 : 1,
      made.tokens,
      opened.session ?? null,
      made.models ?? null,
    ).rowsWritten > 0
  );
}

function jsonOrNull(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

export function updateHoldExpiry(sql: SqlStorage, id: string, expiresAt: number): void {
  const cursor = sql.exec(
    "UPDATE requests SET expires_at = ? WHERE id = ? AND state = 'held'",
    expiresAt,
    id,
  );
  assert(cursor.rowsWritten === 1, `request ${id} was not open`);
}

type LedgerPosition = { readonly seq: number; readonly balance: Micros; readonly at: number };

const settleSql = (more: string): string =>
  `UPDATE requests SET state = 'settled', charged = ?, cost = ?, shortfall = ?,
  prompt_tokens = ?, completion_tokens = ?, settled_at = ?, detail = ?, sold = ?, ${more}`;
const SETTLE_SQL = settleSql(
  "seq = ?, balance = ?, expires_at = 0 WHERE id = ? AND state = 'held'",
);
const SETTLE_LATE_SQL = settleSql("late = 1 WHERE id = ? AND state = 'expired'");

/**
 * Settles a hold and adds its ledger row. `sold` is the number of the row in
 * `names` with the model, route and price.
 */
export function updateSettledRequest(
  sql: SqlStorage,
  settlement: Settlement,
  {
    posting,
    place,
    sold,
  }: { readonly posting: HoldPosting; readonly place: LedgerPosition; readonly sold: number },
): void {
  const { id, cost, generation } = settlement;
  const changes = [
    posting.charged,
    cost,
    posting.shortfall,
    sumPromptTokens(generation.usage),
    generation.usage.output,
    place.at,
    generationDetailJson(generation),
    sold,
  ];
  const { rowsWritten } = posting.late
    ? sql.exec(SETTLE_LATE_SQL, ...changes, id)
    : sql.exec(SETTLE_SQL, ...changes, place.seq, place.balance, id);
  assert(rowsWritten === 1, `request ${id} was not open`);
}

export function markHoldExpired(sql: SqlStorage, id: string, place: LedgerPosition): void {
  const cursor = sql.exec(
    `UPDATE requests SET state = 'expired', seq = ?, balance = ?, settled_at = ?
    WHERE id = ? AND state = 'held'`,
    place.seq,
    place.balance,
    place.at,
    id,
  );
  assert(cursor.rowsWritten === 1, `request ${id} was not open`);
}

/**
 * A ledger row that isn't a request. `absorbed` is a cost that the operator pays, so the balance
 * doesn't change.
 */
type LedgerEntry = {
  readonly place: LedgerPosition;
  readonly kind: "usage" | "credit" | "shortfall";
  readonly amount: Micros;
  readonly absorbed?: Micros;
  readonly requestId?: string;
  readonly reference?: string;
  readonly held?: Micros;
  readonly openHolds?: number;
};

export function insertLedgerEntry(sql: SqlStorage, entry: LedgerEntry): void {
  sql.exec(
    `INSERT INTO entries (seq, kind, amount, balance, absorbed, created_at, reference, request_id,
      held, open_holds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    entry.place.seq,
    entry.kind,
    entry.amount,
    entry.place.balance,
    entry.absorbed ?? 0,
    entry.place.at,
    entry.reference ?? null,
    entry.requestId ?? null,
    entry.held ?? 0,
    entry.openHolds ?? 0,
  );
}

export function selectIdempotencyHolder(
  sql: SqlStorage,
  name: string,
  nowMs: number,
): IdempotencyHolder | null {
  const [holder] = sql
    .exec<IdempotencyHolder>(
      `SELECT request_id AS id, body, idempotency_keys.admitted_at AS admittedAt, state
      FROM idempotency_keys LEFT JOIN requests ON requests.id = request_id
      WHERE day IN (?, ?) AND name = ? ORDER BY day DESC LIMIT 1`,
      utcDay(nowMs),
      utcDay(nowMs - IDEMPOTENCY_RETENTION_MS),
      name,
    )
    .toArray();
  return holder ?? null;
}

export function insertIdempotencyKey(
  sql: SqlStorage,
  { name, body }: IdempotencyHashes,
  { id, admittedAt }: { readonly id: string; readonly admittedAt: number },
): void {
  const day = utcDay(admittedAt);
  const row = { day, name, body, request_id: id, admitted_at: admittedAt };
  insertRow(sql, "OR REPLACE INTO idempotency_keys", row);
}

export function deleteOldIdempotencyRows(sql: SqlStorage, nowMs: number, rowsMax: number): boolean {
  const { rowsWritten } = sql.exec(
    `DELETE FROM idempotency_keys WHERE (day, name) IN
      (SELECT day, name FROM idempotency_keys WHERE day < ? ORDER BY day, name LIMIT ?)`,
    utcDay(nowMs - IDEMPOTENCY_RETENTION_MS),
    rowsMax,
  );
  return rowsWritten >= rowsMax;
}

export function nextIdempotencyExpiryMs(sql: SqlStorage): number | null {
  const [row] = sql
    .exec<{ day: string }>("SELECT day FROM idempotency_keys ORDER BY day LIMIT 1")
    .toArray();
  return row === undefined ? null : Date.parse(row.day) + 2 * IDEMPOTENCY_RETENTION_MS;
}

/**
 * Sets future times of Idempotency-Keys to `nowMs` after the clock moved back. Keeps the newest use
 * of each key.
 */
export function clampIdempotencyKeyTimes(sql: SqlStorage, nowMs: number): void {
  const today = utcDay(nowMs);
  sql.exec(
    `INSERT OR REPLACE INTO idempotency_keys (day, name, body, request_id, admitted_at)
    SELECT ?1, name, body, request_id, ?2 FROM idempotency_keys WHERE day >= ?1 AND admitted_at > ?2
    ORDER BY day`,
    today,
    nowMs,
  );
  sql.exec("DELETE FROM idempotency_keys WHERE day > ?", today);
}

function utcDay(ms: number): string {
  return periodOf(ms).day;
}

type VoidDetails = {
  readonly at: number;
  /** The provider call whose cost the operator pays. The row stores this cost, or 0 if unknown. */
  readonly absorbed?: Generation | null;
  readonly names: NameRowNumbers;
};

export function markHoldVoided(
  sql: SqlStorage,
  id: string,
  { at, absorbed = null, names }: VoidDetails,
): void {
  const { bought, usage } = absorbed ?? {};
  const cursor = sql.exec(
    `UPDATE requests SET state = 'voided', settled_at = ?1, cost = ?2, shortfall = ?2, sold = ?3,
      detail = coalesce(?4, detail)
    WHERE id = ?5 AND state IN ('held', 'expired')`,
    at,
    bought === undefined || usage === undefined ? 0 : computeCost(bought, usage),
    absorbed === null ? null : getOrInsertName(sql, names, sharedChargeFieldsJson(absorbed)),
    absorbed === null ? null : lostDetail(absorbed),
    id,
  );
  assert(cursor.rowsWritten === 1, `request ${id} was not open`);
}

function lostDetail(absorbed: Generation): string | null {
  const hasLost = absorbed.failed?.some(({ lost }) => lost !== undefined) === true;
  return hasLost ? generationDetailJson({ ...absorbed, tags: {} }) : null;
}
