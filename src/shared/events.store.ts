import { mintEventId, deriveEventId } from "./event.ts";
import type { EventData, NewEvent, ChangeContext } from "./event.ts";

type EventRow = NewEvent & {
  readonly orgId: string;
  readonly createdAt: number;
  /** A derived ID, so that retries record the event once. If absent, the ID is random. */
  readonly id?: string;
};

/** Returns a statement that inserts the event if the batch's previous statement changed a row. */
export function insertEventIfChanged(db: D1Database, event: EventRow): D1PreparedStatement {
  return insertStatement(db, event, { data: "?7", from: "", where: "changes() > 0" });
}

/** Returns an `insertEventIfChanged` statement for an event that a subject can have only once. */
export function insertEventOnce(
  db: D1Database,
  event: Omit<NewEvent, "actor" | "data"> &
    Pick<EventRow, "orgId"> &
    Partial<Pick<NewEvent, "data">>,
  { actor, now }: ChangeContext,
): D1PreparedStatement {
  const id = deriveEventId(event.type, event.subject);
  return insertEventIfChanged(db, { data: {}, ...event, id, actor, createdAt: now });
}

/**
 * Returns an `insertEventIfChanged` statement for an organization's change. Retries record it once.
 */
export function insertOrganizationEvent(
  db: D1Database,
  orgId: string,
  data: EventData,
  { actor, now }: ChangeContext,
): D1PreparedStatement {
  const type = "organization.changed";
  const id = deriveEventId(type, orgId, JSON.stringify(data), now);
  return insertEventIfChanged(db, { id, orgId, type, actor, subject: orgId, data, createdAt: now });
}

type ChangeToRecord = {
  readonly table: string;
  readonly where: string;
  readonly values: readonly (string | number | null)[];
  /** SQL expressions of the new values, by column. */
  readonly columns: Readonly<Record<string, string>>;
  readonly hidden?: readonly string[];
  readonly hiddenWhere?: string;
};

/**
 * Returns a statement that inserts the event if the batch's next statement, an update, will change
 * a value.
 */
export function insertChangeEventStatement(
  db: D1Database,
  event: Omit<EventRow, "data">,
  { table, where, values, columns, hidden = [], hiddenWhere = "1" }: ChangeToRecord,
): D1PreparedStatement {
  const entries = Object.entries(columns);
  const columnSelects = entries.map(
    ([column, to]) =>
      `SELECT '${column}' AS named, ${column} AS was, ${to} AS becomes, ${hidden.includes(column) ? `NOT ${hiddenWhere}` : 1} AS shown`,
  );
  const changes = `SELECT json_group_object(named, json_object('from', iif(shown, was, NULL), 'to', iif(shown, becomes, NULL)))
    FROM (${columnSelects.join(" UNION ALL ")}) WHERE was IS NOT becomes`;
  const hasChanged = entries.map(([column, to]) => `${column} IS NOT ${to}`).join(" OR ");
  return insertStatement(
    db,
    { ...event, data: {} },
    {
      data: `json_object('changes', json((${changes})))`,
      from: `FROM ${table}`,
      where: `?7 IS NOT NULL AND ${where} AND (${hasChanged})`,
      values,
    },
  );
}

function insertStatement(
  db: D1Database,
  event: EventRow,
  insertParts: {
    readonly data: string;
    readonly from: string;
    readonly where: string;
    readonly values?: readonly (string | number | null)[];
  },
): D1PreparedStatement {
  const { actor, createdAt } = event;
  return db
    .prepare(
      `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ${insertParts.data}, ?8 ${insertParts.from} WHERE ${insertParts.where}
       ON CONFLICT (id) DO NOTHING`,
    )
    .bind(
      event.id ?? mintEventId(createdAt),
      event.orgId,
      event.type,
      actor.kind,
      actor.id,
      event.subject,
      JSON.stringify(event.data satisfies EventData),
      createdAt,
      ...(insertParts.values ?? []),
    );
}
