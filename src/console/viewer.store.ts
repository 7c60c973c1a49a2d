import type { Role } from "../shared/caller.ts";
import { parseStoredJson } from "../shared/stored-json.ts";

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
