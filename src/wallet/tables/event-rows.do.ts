import { derivedEventId, fittingData, mintEventId } from "../../lib/event.ts";
import type { Actor, EventRecord, EventType, NewEvent } from "../../lib/event.ts";
import { logAlert } from "../../lib/log.ts";
import type { Desk } from "../object/memory.do.ts";
import type { EventPage, EventQuery } from "../wallet-contract.ts";

/** An organisation's newest events are kept, none longer than a year. */
export const EVENTS_MAX = 100_000;
const YEAR_MS = 366 * 86_400_000;
/** So many that are too old go with one that comes. */
const GONE_MAX = 100;

/**
 * Writes down what has just been decided, in the deciding transaction. `once`: words that say which of all
 * things of this type it was; told again it adds nothing. False when it was there.
 */
export function addEvent(
  desk: Desk,
  event: NewEvent,
  once?: readonly (string | number | null)[],
): boolean {
  const { nowMs } = desk;
  const id = once === undefined ? mintEventId(nowMs) : derivedEventId(event.type, ...once);
  return takeEvent(desk, { ...event, id, createdAt: nowMs });
}

/**
 * The same for one that has its id already: the book's. Data that is too long is cut, and an operator told: an event
 * that could not be taken would stop all that wait behind it. The oldest make room for it.
 */
export function takeEvent(desk: Desk, event: EventRecord): boolean {
  const { sql } = desk;
  const data = fittingData(event.data);
  const [row] = sql
    .exec<{ seq: number }>(
      `INSERT INTO events (id, type, actor_kind, actor_id, subject, data, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING seq`,
      event.id,
      event.type,
      event.actor.kind,
      event.actor.id,
      event.subject,
      JSON.stringify(data),
      event.createdAt,
    )
    .toArray();
  if (row === undefined) return false;
  if (data !== event.data) {
    const { id, type } = event;
    logAlert("event_cut", { org_id: desk.memory.row.orgId, id, type });
  }
  desk.memory.isUntold = true;
  desk.memory.changed = true; // should the telling be lost, the next publish tells
  dropOld(desk, row.seq);
  return true;
}

/** Removes what is beyond the bound, with a note of it, and what is older than a year. */
function dropOld({ sql, nowMs }: Desk, newestSeq: number): void {
  const beyond = sql
    .exec<{ at: number }>(
      "DELETE FROM events WHERE seq <= ? RETURNING created_at AS at",
      newestSeq - EVENTS_MAX,
    )
    .toArray();
  if (beyond.length > 0) {
    sql.exec(
      `UPDATE event_log SET dropped = dropped + ?, dropped_until = max(coalesce(dropped_until, 0), ?)`,
      beyond.length,
      Math.max(...beyond.map(({ at }) => at)),
    );
  }
  forgetOldEvents(sql, nowMs);
}

/** Removes a batch of the events that are older than a year; true when there may be more. */
export function forgetOldEvents(sql: SqlStorage, nowMs: number): boolean {
  const gone = sql
    .exec(
      `DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE created_at < ?
        ORDER BY created_at, seq LIMIT ${GONE_MAX}) RETURNING seq`,
      nowMs - YEAR_MS,
    )
    .toArray();
  return gone.length >= GONE_MAX;
}

type Row = {
  seq: number;
  id: string;
  type: EventType;
  actor_kind: Actor["kind"];
  actor_id: string | null;
  subject: string;
  data: string;
  created_at: number;
};

const COLUMNS = "seq, id, type, actor_kind, actor_id, subject, data, created_at";

/** Newest first, from after the event with the id `after`; null when there is no such event. */
export function selectEventPage({ sql, nowMs }: Desk, query: EventQuery): EventPage | null {
  const last = query.after === null ? null : placeOf(sql, query.after);
  if (query.after !== null && last === null) return null;
  const from = Math.max(query.from ?? 0, nowMs - YEAR_MS);
  const to = query.to ?? Number.MAX_SAFE_INTEGER;
  const place = last ?? { at: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };
  const ofType = query.type === null ? "?5 IS NULL" : "type = ?5";
  const rows = sql
    .exec<Row>(
      `SELECT ${COLUMNS} FROM events WHERE created_at >= ?1 AND created_at < ?2
        AND (created_at, seq) < (?3, ?4) AND ${ofType}
      ORDER BY created_at DESC, seq DESC LIMIT ?6`,
      from,
      to,
      place.at,
      place.seq,
      query.type,
      query.limit + 1,
    )
    .toArray();
  const events = rows.slice(0, query.limit).map(recordOf);
  const nextAfter = rows.length > query.limit ? (events.at(-1)?.id ?? null) : null;
  return { events, nextAfter, dropped: selectDropped(sql) };
}

/** From a time on (Unix ms), oldest first. */
export function selectEventsSince(
  { sql, nowMs }: Desk,
  sinceMs: number,
  limit: number,
): EventRecord[] {
  return sql
    .exec<Row>(
      `SELECT ${COLUMNS} FROM events WHERE created_at >= ? ORDER BY created_at, seq LIMIT ?`,
      Math.max(sinceMs, nowMs - YEAR_MS),
      limit,
    )
    .toArray()
    .map(recordOf);
}

/** The next events that the webhooks' object does not have, in the log's order, and the place of the last. */
export function selectUntold(
  sql: SqlStorage,
  limit: number,
): { readonly events: readonly EventRecord[]; readonly lastSeq: number } {
  const rows = sql
    .exec<Row>(
      `SELECT ${COLUMNS} FROM events WHERE seq > (SELECT told_seq FROM event_log) ORDER BY seq LIMIT ?`,
      limit,
    )
    .toArray();
  return { events: rows.map(recordOf), lastSeq: rows.at(-1)?.seq ?? 0 };
}

/** The webhooks' object has all up to here. */
export function updateTold(sql: SqlStorage, seq: number): void {
  sql.exec("UPDATE event_log SET told_seq = max(told_seq, ?)", seq);
}

function placeOf(
  sql: SqlStorage,
  id: string,
): { readonly at: number; readonly seq: number } | null {
  const [row] = sql
    .exec<{ at: number; seq: number }>("SELECT created_at AS at, seq FROM events WHERE id = ?", id)
    .toArray();
  return row ?? null;
}

function selectDropped(sql: SqlStorage): EventPage["dropped"] {
  const { dropped, until } = sql
    .exec<{ dropped: number; until: number | null }>(
      "SELECT dropped, dropped_until AS until FROM event_log",
    )
    .one();
  return until === null ? null : { events: dropped, until };
}

function recordOf(row: Row): EventRecord {
  const actor = { kind: row.actor_kind, id: row.actor_id } as Actor;
  return {
    id: row.id,
    type: row.type,
    createdAt: row.created_at,
    actor,
    subject: row.subject,
    data: JSON.parse(row.data) as EventRecord["data"],
  };
}
