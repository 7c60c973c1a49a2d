import { insertRow } from "../../../shared/tables.do.ts";
import {
  EVENT_LOG_PARTITIONS,
  SYSTEM_ACTOR,
  deriveEventId,
  eventFromRow,
  truncateEventData,
  mintEventId,
  eventLogPartitionOf,
} from "../../../shared/event.ts";
import { HOUR_MS, timestamp } from "../../../shared/clock.ts";
import type {
  Actor,
  EventRecord,
  EventType,
  NewEvent,
  StoredEvent,
} from "../../../shared/event.ts";
import { logAlert } from "../../../shared/log.ts";
import type { Tx } from "./memory.do.ts";
import type { EventPage, EventQuery } from "../../../shared/contracts/wallet.ts";

const EVENTS_MAX = 100_000;
const YEAR_MS = 366 * 86_400_000;
const DELETED_PER_BATCH_MAX = 100;

/** An event to record. The default actor is the system. */
export type WalletEvent = Omit<NewEvent, "actor"> & { readonly actor?: Actor | undefined };

/**
 * Stores an event. Returns false if an event with the same `once` exists or the actor is at its
 * hourly maximum.
 */
export function addEvent(
  tx: Tx,
  event: WalletEvent,
  once?: readonly (string | number | null)[],
): boolean {
  const { nowMs } = tx;
  const id = once === undefined ? mintEventId(nowMs) : deriveEventId(event.type, ...once);
  return storeEvent(tx, { ...event, actor: event.actor ?? SYSTEM_ACTOR, id, createdAt: nowMs });
}

/** Stores an event. Shortens overlong data, because a rejected event would block later ones. */
export function storeEvent(tx: Tx, event: EventRecord): boolean {
  const { sql } = tx;
  if (selectEventPosition(sql, event.id) !== null) return false;
  if (!takeHourlySlot(tx, event)) return false;
  const data = truncateEventData(event.data);
  const room = eventLogPartitionOf(event);
  sql.exec(
    `INSERT INTO events (id, type, actor_kind, actor_id, subject, data, created_at, room, place)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
        (SELECT coalesce(max(place), 0) + 1 FROM events WHERE room = ?8))`,
    event.id,
    event.type,
    event.actor.kind,
    event.actor.id,
    event.subject,
    JSON.stringify(data),
    event.createdAt,
    room,
  );
  if (data !== event.data) {
    const { id, type } = event;
    logAlert("event_cut", { org_id: tx.memory.row.orgId, id, type });
  }
  tx.memory.hasUndelivered = true;
  tx.memory.hasChanges = true; // if the delivery is lost, the next publish retries it
  deleteExcessEvents(tx);
  return true;
}

function deleteExcessEvents({ sql, nowMs }: Tx): void {
  const rooms = sql
    .exec<{ room: string; first: number; size: number }>(
      `SELECT room, first, last - first + 1 AS size FROM (SELECT value AS room,
        coalesce((SELECT min(place) FROM events WHERE room = value), 1) AS first,
        coalesce((SELECT max(place) FROM events WHERE room = value), 0) AS last FROM json_each(?))`,
      JSON.stringify(EVENT_LOG_PARTITIONS),
    )
    .toArray();
  const over = rooms.reduce((sum, { size }) => sum + size, 0) - EVENTS_MAX;
  const [most] = rooms.toSorted((one, other) => other.size - one.size);
  const beyond =
    over <= 0 || most === undefined
      ? []
      : sql
          .exec<{ at: number }>(
            "DELETE FROM events WHERE room = ? AND place < ? RETURNING created_at AS at",
            most.room,
            most.first + over,
          )
          .toArray();
  if (beyond.length > 0) {
    sql.exec(
      `UPDATE event_log SET dropped = dropped + ?, dropped_until = max(coalesce(dropped_until, 0), ?)`,
      beyond.length,
      Math.max(...beyond.map(({ at }) => at)),
    );
  }
  deleteOldEvents(sql, nowMs);
}

/** Maximum events per hour, type and actor. Operators and the system are exempt. */
const HOURLY_EVENTS_MAX = 100;
const HOURLY_REVOKED_MAX = 1000;
const COUNTS_PER_FLUSH_MAX = 1000;

type HourCount = { actor: string; type: EventType; hour: number; told: number; left_out: number };

function takeHourlySlot(tx: Tx, { type, actor }: NewEvent): boolean {
  if (actor.kind === "operator" || actor.kind === "system") return true;
  const count = readHourCount(tx, `${actor.kind} ${actor.id}`, type);
  const fits = count.told < (type === "key.revoked" ? HOURLY_REVOKED_MAX : HOURLY_EVENTS_MAX);
  insertRow(tx.sql, "OR REPLACE INTO event_counts", {
    ...count,
    told: count.told + (fits ? 1 : 0),
    left_out: count.left_out + (fits ? 0 : 1),
  });
  return fits;
}

function readHourCount(tx: Tx, actor: string, type: EventType): HourCount {
  const hour = tx.nowMs - (tx.nowMs % HOUR_MS);
  const [known] = tx.sql
    .exec<HourCount>("SELECT * FROM event_counts WHERE actor = ? AND type = ?", actor, type)
    .toArray();
  if (known !== undefined && known.hour >= hour) return known;
  if (known !== undefined) emitSuppressedEvents(tx, known);
  return { actor, type, hour, told: 0, left_out: 0 };
}

function emitSuppressedEvents(tx: Tx, { actor, type, hour, left_out: leftOut }: HourCount): void {
  if (leftOut === 0) return;
  const [kind, id] = actor.split(" ");
  const data = { actor: { kind, id }, type, from: timestamp(hour), left_out: leftOut };
  const subject = tx.memory.row.orgId;
  addEvent(tx, { type: "organization.events_left_out", subject, data }, [actor, type, hour]);
}

/** Records one summary event per actor, type and finished hour. */
export function flushSuppressedEvents(tx: Tx): void {
  const { sql, nowMs } = tx;
  const over = sql
    .exec<HourCount>(
      `SELECT * FROM event_counts WHERE hour <= ? LIMIT ${COUNTS_PER_FLUSH_MAX}`,
      nowMs - HOUR_MS,
    )
    .toArray();
  for (const count of over) {
    emitSuppressedEvents(tx, count);
    sql.exec("DELETE FROM event_counts WHERE actor = ? AND type = ?", count.actor, count.type);
  }
}

/** Deletes a batch of events older than a year. Returns true if more may remain. */
export function deleteOldEvents(sql: SqlStorage, nowMs: number): boolean {
  const gone = sql
    .exec(
      `DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE created_at < ?
        ORDER BY created_at, seq LIMIT ${DELETED_PER_BATCH_MAX}) RETURNING seq`,
      nowMs - YEAR_MS,
    )
    .toArray();
  return gone.length >= DELETED_PER_BATCH_MAX;
}

type LoggedEvent = StoredEvent & { seq: number };

/**
 * SQL condition for events by the given members and `member.*` events about them. Each query of the
 * UNION uses an index.
 */
const OF_MEMBERS_SQL = `seq IN (
  SELECT seq FROM events WHERE actor_kind = 'member' AND actor_id IN (SELECT value FROM json_each(?6))
  UNION SELECT seq FROM events WHERE type GLOB 'member.*' AND subject IN (SELECT value FROM json_each(?6)))`;
const COLUMNS = "seq, id, type, actor_kind, actor_id, subject, data, created_at";

/** Returns events, newest first, or null if the event `after` doesn't exist. */
export function selectEventPage({ sql, nowMs }: Tx, query: EventQuery): EventPage | null {
  const last = query.after === null ? null : selectEventPosition(sql, query.after);
  if (query.after !== null && last === null) return null;
  const from = Math.max(query.from ?? 0, nowMs - YEAR_MS);
  const to = query.to ?? Number.MAX_SAFE_INTEGER;
  const place = last ?? { at: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };
  const { ofType, ofMembers, members } = conditionsOf(query);
  const rows = sql
    .exec<LoggedEvent>(
      `SELECT ${COLUMNS} FROM events WHERE created_at >= ?1 AND created_at < ?2
        AND (created_at, seq) < (?3, ?4) AND ${ofType} AND ${ofMembers}
      ORDER BY created_at DESC, seq DESC LIMIT ?7`,
      from,
      to,
      place.at,
      place.seq,
      query.type,
      members,
      query.limit + 1,
    )
    .toArray();
  const events = rows.slice(0, query.limit).map(eventFromRow);
  const nextAfter = rows.length > query.limit ? (events.at(-1)?.id ?? null) : null;
  return { events, nextAfter, dropped: selectDropped(sql) };
}

function conditionsOf({ type, memberIds }: EventQuery) {
  const ofType = type === null ? "?5 IS NULL" : "type = ?5";
  if (memberIds === undefined) return { ofType, ofMembers: "?6 IS NULL", members: null };
  return { ofType, ofMembers: OF_MEMBERS_SQL, members: JSON.stringify(memberIds) };
}

export function selectEventsSince(
  { sql, nowMs }: Tx,
  sinceMs: number,
  limit: number,
): EventRecord[] {
  return sql
    .exec<LoggedEvent>(
      `SELECT ${COLUMNS} FROM events WHERE created_at >= ? ORDER BY created_at, seq LIMIT ?`,
      Math.max(sinceMs, nowMs - YEAR_MS),
      limit,
    )
    .toArray()
    .map(eventFromRow);
}

export function selectUndeliveredEvents(
  sql: SqlStorage,
  limit: number,
): { readonly events: readonly EventRecord[]; readonly lastSeq: number } {
  const rows = sql
    .exec<LoggedEvent>(
      `SELECT ${COLUMNS} FROM events WHERE seq > (SELECT told_seq FROM event_log) ORDER BY seq LIMIT ?`,
      limit,
    )
    .toArray();
  return { events: rows.map(eventFromRow), lastSeq: rows.at(-1)?.seq ?? 0 };
}

export function markEventsDelivered(sql: SqlStorage, lastSeq: number): void {
  sql.exec("UPDATE event_log SET told_seq = max(told_seq, ?)", lastSeq);
}

const CHANGED_NAME_PATHS = ["$.changes.end_user.from", "$.changes.end_user.to"] as const;

/**
 * Replaces an end user's external ID with the internal ID in all events. Marks these events for
 * webhooks.
 */
export function eraseExternalId(
  { sql, memory }: Tx,
  { id, externalId }: { readonly id: string; readonly externalId: string },
): void {
  sql.exec(
    "UPDATE events SET subject = ?, renamed = 1 WHERE room = 'end_user' AND subject = ?",
    id,
    externalId,
  );
  sql.exec(
    `UPDATE events SET data = json_replace(data, '$.end_user', ?), renamed = 1
    WHERE data ->> '$.end_user' = ?`,
    id,
    externalId,
  );
  for (const path of CHANGED_NAME_PATHS) {
    sql.exec(
      `UPDATE events SET data = json_replace(data, ?1, ?2), renamed = 1
      WHERE type = 'key.changed' AND data ->> ?1 = ?3`,
      path,
      id,
      externalId,
    );
  }
  if (selectRenamedEvents(sql, 1).length === 0) return;
  memory.hasUndelivered = true;
  memory.hasChanges = true;
}

const ERASED_PATHS = ["name", "slug", "host", "company_domain", "end_user"]
  .flatMap((field) => [`'$.${field}'`, `'$.changes.${field}'`])
  .join();

/** Erases names and domains from all events. */
export function eraseEventNames({ sql }: Tx): void {
  sql.exec(`UPDATE events SET data = json_remove(data, ${ERASED_PATHS})
    WHERE data <> json_remove(data, ${ERASED_PATHS})`);
}

/** Returns events that webhooks must receive again after a rename. */
export function selectRenamedEvents(sql: SqlStorage, limit: number): readonly EventRecord[] {
  return sql
    .exec<LoggedEvent>(
      `SELECT ${COLUMNS} FROM events WHERE renamed = 1 ORDER BY seq LIMIT ?`,
      limit,
    )
    .toArray()
    .map(eventFromRow);
}

/**
 * Clears the `renamed` flags of events that webhooks have received, unless an event changed again.
 */
export function clearRenamedFlags(sql: SqlStorage, sent: readonly EventRecord[]): void {
  const texts = new Set(sent.map((event) => JSON.stringify(event)));
  const current = sql
    .exec<LoggedEvent>(
      `SELECT ${COLUMNS} FROM events WHERE id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(sent.map(({ id }) => id)),
    )
    .toArray()
    .map(eventFromRow);
  const unchanged = current.filter((event) => texts.has(JSON.stringify(event)));
  const ids = JSON.stringify(unchanged.map(({ id }) => id));
  sql.exec("UPDATE events SET renamed = 0 WHERE id IN (SELECT value FROM json_each(?))", ids);
}

function selectEventPosition(
  sql: SqlStorage,
  id: string,
): { readonly at: number; readonly seq: number } | null {
  const [row] = sql
    .exec<{ at: number; seq: number }>("SELECT created_at AS at, seq FROM events WHERE id = ?", id)
    .toArray();
  return row ?? null;
}

function selectDropped(sql: SqlStorage): EventPage["dropped"] {
  const { events, until } = sql
    .exec<{ events: number; until: number | null }>(
      "SELECT dropped AS events, dropped_until AS until FROM event_log",
    )
    .one();
  return until === null ? null : { events, until };
}
