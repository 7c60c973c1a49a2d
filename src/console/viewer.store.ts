import type { Role } from "../lib/caller.ts";

/** Whom the holder of a key is shown as. */
export type Viewer = {
  readonly key: { readonly id: string; readonly name: string; readonly prefix: string };
  readonly member: { readonly id: string; readonly email: string; readonly role: Role };
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
    readonly status: "active" | "suspended";
  };
};

type Row = {
  readonly [
    K in "id" | "name" | "prefix" | "member" | "email" | "org_id" | "org_name" | "slug"
  ]: string;
} & { readonly role: Role; readonly status: "active" | "suspended" };

/** A live key with its member and organisation; null when it or its member has ended. Throws when D1 fails. */
export async function findViewer(db: D1Database, keyId: string): Promise<Viewer | null> {
  const row = await db
    .prepare(
      `SELECT keys.id, keys.name, keys.prefix, members.id AS member, members.email, members.role,
         organizations.id AS org_id, organizations.name AS org_name, organizations.slug,
         organizations.status
       FROM keys JOIN members ON members.id = keys.member_id
       JOIN organizations ON organizations.id = keys.org_id
       WHERE keys.id = ? AND keys.revoked_at IS NULL AND members.removed_at IS NULL`,
    )
    .bind(keyId)
    .first<Row>();
  if (row === null) return null;
  const { id, name, prefix, member, email, role, org_id, org_name, slug, status } = row;
  return {
    key: { id, name, prefix },
    member: { id: member, email, role },
    organization: { id: org_id, name: org_name, slug, status },
  };
}
