import { DAY_MS } from "../shared/clock.ts";
import { lowestIdAt } from "../shared/id.ts";
import { parseStoredJson } from "../shared/stored-json.ts";

export const OPERATOR_EVENT_ID_PREFIX = "opev_";
const RETENTION_MS = 366 * DAY_MS;

export type OperatorEvent = {
  readonly id: string;
  readonly operator: string;
  /** The method and path of the call. */
  readonly act: string;
  readonly orgId: string | null;
  /** The path's parameters except the organization's ID. */
  readonly target: Readonly<Record<string, string>>;
  /**
   * The amounts, limits and reasons of the change, or null. Absent in events of earlier releases.
   */
  readonly details: Readonly<Record<string, unknown>> | null;
  readonly requestId: string;
};
export type ListedOperatorEvent = OperatorEvent & {
  readonly slug: string | null;
  readonly name: string | null;
  readonly keyName: string | null;
  readonly memberEmail: string | null;
};

export async function insertOperatorEvent(db: D1Database, event: OperatorEvent): Promise<void> {
  const { id, operator, act, orgId, target, details, requestId } = event;
  const stored = details === null ? null : JSON.stringify(details);
  await db
    .prepare(
      `INSERT INTO operator_events (id, operator, act, org_id, target, request_id, details)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .bind(id, operator, act, orgId, JSON.stringify(target), requestId, stored)
    .run();
}

type OperatorEventQuery = {
  readonly orgId: string | null;
  readonly operator: string | null;
  readonly beforeId: string;
  readonly fromId: string;
  readonly limit: number;
};

type StoredJson = { readonly target: string; readonly details: string | null };

/** Returns up to `limit` + 1 events, newest first. */
export async function listOperatorEvents(
  db: D1Database,
  { orgId, operator, beforeId, fromId, limit }: OperatorEventQuery,
): Promise<readonly ListedOperatorEvent[]> {
  const { results } = await db
    .prepare(
      `SELECT e.id, operator, act, org_id AS orgId, target, details, request_id AS requestId,
         slug, name,
         (SELECT name FROM keys WHERE id = e.target ->> '$.key_id') AS keyName,
         (SELECT email FROM members WHERE id = e.target ->> '$.member_id') AS memberEmail
       FROM operator_events AS e LEFT JOIN organizations AS o ON o.id = org_id
       WHERE e.id < ?1 AND e.id >= ?2 AND ${orgId === null ? "?3 IS NULL" : "org_id = ?3"}
         AND (?4 IS NULL OR operator = ?4)
       ORDER BY e.id DESC LIMIT ?5`,
    )
    .bind(beforeId, fromId, orgId, operator, limit + 1)
    .all<Omit<ListedOperatorEvent, "target" | "details"> & StoredJson>();
  return results.map((row) =>
    Object.assign(row, {
      target: parseStoredJson<OperatorEvent["target"]>(row.target),
      details: parseStoredJson<OperatorEvent["details"]>(row.details ?? "null"),
    }),
  );
}

type Suspension = {
  readonly id: string;
  readonly operator: string;
  readonly reason: string | null;
};

/**
 * Returns the event that suspended an organization. Null if it isn't suspended, its sign-up waits
 * for approval, or an earlier release suspended it.
 */
export function findSuspension(db: D1Database, orgId: string): Promise<Suspension | null> {
  return db
    .prepare(
      `SELECT id, operator, reason FROM (
         SELECT id, operator, details ->> '$.reason' AS reason, details ->> '$.status' AS status
         FROM operator_events
         WHERE org_id = ? AND act = 'PATCH /orgs/:id' AND details ->> '$.status' IS NOT NULL
         ORDER BY id DESC LIMIT 1)
       WHERE status = 'suspended'`,
    )
    .bind(orgId)
    .first<Suspension>();
}

export async function deleteOldOperatorEvents(db: D1Database, nowMs: number): Promise<void> {
  const beforeId = lowestIdAt(OPERATOR_EVENT_ID_PREFIX, nowMs - RETENTION_MS);
  await db.prepare("DELETE FROM operator_events WHERE id < ?").bind(beforeId).run();
}
