import { eventFromRow } from "../../shared/event.ts";
import type { EventRecord, StoredEvent } from "../../shared/event.ts";

export const WAITING_EVENTS_PER_PAGE = 50;

/** Returns events in D1 that the wallet hasn't logged yet. */
export async function readWaitingEvents(
  db: D1Database,
  orgId: string,
): Promise<readonly EventRecord[]> {
  const { results } = await db
    .prepare(
      `SELECT id, type, actor_kind, actor_id, subject, data, created_at FROM events
       WHERE org_id = ? ORDER BY created_at, id LIMIT ${WAITING_EVENTS_PER_PAGE}`,
    )
    .bind(orgId)
    .all<StoredEvent>();
  return results.map(eventFromRow);
}

export async function deleteWaitingEvents(
  db: D1Database,
  events: readonly EventRecord[],
): Promise<void> {
  await db
    .prepare("DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))")
    .bind(JSON.stringify(events.map(({ id }) => id)))
    .run();
}
