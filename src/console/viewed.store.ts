import { derivedEventId } from "../shared/event.ts";
import { eventIfChanged } from "../shared/events.store.ts";
import { HOUR_MS } from "../shared/clock.ts";

/** What an operator looks at, as a session shows it. */
export type ViewedOrganization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly status: "active" | "suspended";
};

/** An organization by its id or slug, or null; no id looks like a slug. Throws when D1 fails, as what follows does. */
export function findViewedOrganization(
  db: D1Database,
  name: string,
): Promise<ViewedOrganization | null> {
  return db
    .prepare("SELECT id, name, slug, status FROM organizations WHERE id = ?1 OR slug = ?1 LIMIT 1")
    .bind(name)
    .first<ViewedOrganization>();
}

/** That an operator looks at it, for the organization's log; told again within the hour it is the same event. */
export async function recordView(
  db: D1Database,
  orgId: string,
  by: { readonly operator: string; readonly nowMs: number },
): Promise<void> {
  const { operator, nowMs } = by;
  await db.batch([
    db.prepare("UPDATE organizations SET id = id WHERE id = ?").bind(orgId),
    eventIfChanged(db, {
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
