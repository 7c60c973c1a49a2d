import { mintEventId } from "./event.ts";
import type { EventData, NewEvent } from "./event.ts";

/** An event that waits in the book for its organization's wallet, whose log takes it over. */
type BookEvent = NewEvent & {
  readonly orgId: string;
  readonly createdAt: number;
  /** Left out: a new one. Derived: told again it is the same event. */
  readonly id?: string;
};

/**
 * For a batch, right after the statement whose change it tells: inserted when that one changed a row. So the
 * change and its event are there together or neither is, and a repeat that changes nothing tells nothing.
 */
export function eventIfChanged(db: D1Database, event: BookEvent): D1PreparedStatement {
  return inserted(db, event, { data: "?7", from: "", where: "changes() > 0" });
}

/** Where the rows stand that an update is about to change. `where` may name ?9 and on, the `values`. */
type Changing = {
  readonly table: string;
  readonly where: string;
  readonly values: readonly (string | number | null)[];
  /** Column to what it is set to; null there: it stays. */
  readonly columns: Readonly<Record<string, string>>;
  /** Of which it is told that they change, and not what from or to. */
  readonly hidden?: readonly string[];
  /** Of which rows; left out: of all. */
  readonly hiddenWhere?: string;
};

/**
 * For a batch, right before an update with the same conditions: inserted when the update will make a
 * difference, with `{ changes: { column: { from, to } } }` as the row is then.
 */
export function eventOfChange(
  db: D1Database,
  event: Omit<BookEvent, "data">,
  { table, where, values, columns, hidden = [], hiddenWhere = "1" }: Changing,
): D1PreparedStatement {
  const entries = Object.entries(columns);
  const sides = entries.map(
    ([column, to]) =>
      `SELECT '${column}' AS named, ${column} AS was, ${to} AS becomes, ${hidden.includes(column) ? `NOT ${hiddenWhere}` : 1} AS shown`,
  );
  const changes = `SELECT json_group_object(named, json_object('from', iif(shown, was, NULL), 'to', iif(shown, becomes, NULL)))
    FROM (${sides.join(" UNION ALL ")}) WHERE was IS NOT becomes`;
  const differs = entries.map(([column, to]) => `${column} IS NOT ${to}`).join(" OR ");
  return inserted(
    db,
    { ...event, data: {} },
    {
      data: `json_object('changes', json((${changes})))`,
      from: `FROM ${table}`,
      where: `?7 IS NOT NULL AND ${where} AND (${differs})`,
      values,
    },
  );
}

function inserted(
  db: D1Database,
  event: BookEvent,
  how: {
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
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ${how.data}, ?8 ${how.from} WHERE ${how.where}
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
      ...(how.values ?? []),
    );
}
