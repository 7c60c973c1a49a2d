import type { StoredMember } from "../organizations/organization.ts";

type TeamMember = Omit<StoredMember, "orgId"> & {
  /** The name, or null for a member who has only API keys. */
  readonly name: string | null;
  readonly personId: string | null;
  readonly seenAt: number | null;
  readonly keys: number;
};

const LISTED_MEMBERS_MAX = 1000;
const EMAILED_OWNERS_MAX = 20;

export async function listTeam(db: D1Database, orgId: string): Promise<readonly TeamMember[]> {
  const { results } = await db
    .prepare(
      `SELECT members.id, members.email, role, members.created_at AS createdAt, people.name, people.id AS personId,
         nullif(max(coalesce(seen_at, 0), coalesce((SELECT max(last_used_at) FROM keys
           WHERE keys.member_id = members.id AND keys.org_id = ?1), 0)), 0) AS seenAt,
         (SELECT count(*) FROM keys INDEXED BY live_keys_by_organization WHERE org_id = ?1 AND revoked_at IS NULL
           AND member_id = members.id AND is_console IS NULL) AS keys
       FROM members LEFT JOIN member_people ON member_people.member_id = members.id
       LEFT JOIN people ON people.id = person_id
       WHERE members.org_id = ?1 AND removed_at IS NULL
       GROUP BY members.id ORDER BY members.created_at, members.id LIMIT ${LISTED_MEMBERS_MAX}`,
    )
    .bind(orgId)
    .all<TeamMember>();
  return results;
}

export async function listOwnersToEmail(
  db: D1Database,
  orgId: string,
): Promise<readonly { readonly email: string; readonly organization: string }[]> {
  const { results } = await db
    .prepare(
      `SELECT people.email, organizations.name AS organization FROM members
       JOIN organizations ON organizations.id = members.org_id
       JOIN member_people ON member_people.member_id = members.id JOIN people ON people.id = person_id
       WHERE members.org_id = ? AND role = 'owner' AND removed_at IS NULL
         AND is_email_proven = 1 AND people.email IS NOT NULL ORDER BY members.id LIMIT ${EMAILED_OWNERS_MAX}`,
    )
    .bind(orgId)
    .all<{ email: string; organization: string }>();
  return results;
}
