import { deriveEventId } from "../shared/event.ts";
import { insertEventIfChanged } from "../shared/events.store.ts";
import { HOUR_MS } from "../shared/clock.ts";
import type { Role } from "../shared/caller.ts";
import { parseStoredJson } from "../shared/stored-json.ts";

export type ViewedOrganization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly status: "active" | "suspended" | "closed";
};

/** Finds an organization by ID or slug. Throws if D1 fails. */
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

/** Records an operator's view of the organization, at most once an hour. */
export async function recordView(
  db: D1Database,
  orgId: string,
  by: { readonly operator: string; readonly nowMs: number },
): Promise<void> {
  const { operator, nowMs } = by;
  await db.batch([
    db.prepare("UPDATE organizations SET id = id WHERE id = ?").bind(orgId),
    insertEventIfChanged(db, {
      id: deriveEventId("operator.viewed", orgId, operator, Math.floor(nowMs / HOUR_MS)),
      orgId,
      type: "operator.viewed",
      actor: { kind: "operator", id: operator },
      subject: orgId,
      data: {},
      createdAt: nowMs,
    }),
  ]);
}

type Viewer = {
  readonly key: { readonly id: string; readonly name: string; readonly prefix: string };
  readonly member: { readonly id: string; readonly email: string; readonly role: Role };
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
    readonly status: "active" | "suspended";
  };
};

/** Returns an active key with its member and organization, or null. Throws if D1 fails. */
export async function findViewer(db: D1Database, keyId: string): Promise<Viewer | null> {
  const viewer = await db
    .prepare(
      `SELECT json_object('key', json_object('id', k.id, 'name', k.name, 'prefix', k.prefix),
  'member', json_object('id', m.id, 'email', email, 'role', role),
  'organization', json_object('id', o.id, 'name', o.name, 'slug', slug, 'status', status)) AS viewer
FROM keys k JOIN members m ON m.id = member_id JOIN organizations o ON o.id = k.org_id
WHERE k.id = ? AND revoked_at IS NULL AND removed_at IS NULL`,
    )
    .bind(keyId)
    .first<string>("viewer");
  return viewer === null ? null : parseStoredJson<Viewer>(viewer);
}
