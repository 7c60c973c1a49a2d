import { derivedEventId } from "../shared/event.ts";
import { insertEventIfChanged } from "../shared/events.store.ts";
import { HOUR_MS } from "../shared/clock.ts";

export type ViewedOrganization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly status: "active" | "suspended" | "closed";
};

/** Finds an organization by ID or slug, whose formats differ. Throws if D1 fails. */
export function findViewedOrganization(
  db: D1Database,
  name: string,
): Promise<ViewedOrganization | null> {
  return db
    .prepare(
      `SELECT id, name, slug,
  CASE WHEN EXISTS (SELECT 1 FROM closed_organizations WHERE org_id = id) THEN 'closed' ELSE status END AS status
FROM organizations WHERE id = ?1 OR slug = ?1 LIMIT 1`,
    )
    .bind(name)
    .first<ViewedOrganization>();
}

/** Records that an operator viewed the organization, at most once an hour. */
export async function recordView(
  db: D1Database,
  orgId: string,
  by: { readonly operator: string; readonly nowMs: number },
): Promise<void> {
  const { operator, nowMs } = by;
  await db.batch([
    db.prepare("UPDATE organizations SET id = id WHERE id = ?").bind(orgId),
    insertEventIfChanged(db, {
      id: derivedEventId("operator.viewed", orgId, operator, Math.floor(nowMs / HOUR_MS)),
      orgId,
      type: "operator.viewed",
      actor: { kind: "operator", id: operator },
      subject: orgId,
      data: {},
      createdAt: nowMs,
    }),
  ]);
}
