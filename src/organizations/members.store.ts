import type { Member, Role } from "../lib/caller.ts";

/**
 * Whom a live key acts as; null when the key is revoked or unknown, or its member was removed.
 * Throws when D1 fails.
 */
export async function findMember(db: D1Database, keyId: string): Promise<Member | null> {
  const row = await db
    .prepare(
      `SELECT members.id, members.role, organizations.status FROM keys
       JOIN members ON members.id = keys.member_id
       JOIN organizations ON organizations.id = keys.org_id
       WHERE keys.id = ? AND keys.revoked_at IS NULL AND members.removed_at IS NULL`,
    )
    .bind(keyId)
    .first<{ id: string; role: Role; status: string }>();
  if (row === null) return null;
  return { id: row.id, role: row.role, suspended: row.status === "suspended" };
}
