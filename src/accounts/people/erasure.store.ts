import { DAY_MS } from "../../shared/clock.ts";

/** SQL for the address that replaces an erased one. */
export const DELETED_ADDRESS_SQL = "lower(id) || '@deleted.invalid'";

/**
 * Erases a person's data, except IDs. If the person is still a member of an organization, erases
 * nothing and returns false.
 */
export async function erasePerson(
  db: D1Database,
  personId: string,
  nowMs: number,
): Promise<boolean> {
  const erased = "(SELECT erased_at FROM people WHERE id = ?1) IS NOT NULL";
  const [, , , , found] = await db.batch<{ erased: 0 | 1 }>([
    db
      .prepare(
        `UPDATE people SET name = '', email = NULL, is_email_proven = 0, erased_at = coalesce(erased_at, ?2),
           sessions_from = ?2 + 1
         WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM member_people JOIN members ON members.id = member_id
           WHERE person_id = ?1 AND removed_at IS NULL)`,
      )
      .bind(personId, nowMs),
    db
      .prepare(
        `UPDATE invitations SET email = NULL WHERE ${erased} AND lower(email) IN
           (SELECT lower(members.email) FROM members JOIN member_people ON member_id = members.id WHERE person_id = ?1)`,
      )
      .bind(personId),
    db
      .prepare(
        `UPDATE members SET email = ${DELETED_ADDRESS_SQL} WHERE ${erased}
           AND id IN (SELECT member_id FROM member_people WHERE person_id = ?1)`,
      )
      .bind(personId),
    db.prepare(`DELETE FROM identities WHERE person_id = ?1 AND ${erased}`).bind(personId),
    db.prepare(`SELECT ${erased} AS erased`).bind(personId),
  ]);
  return found?.results[0]?.erased === 1;
}

const EXPORTED_ROWS_MAX = 10_000;

const EXPORT_QUERIES: Readonly<Record<string, string>> = {
  organization: "SELECT * FROM organizations WHERE id = ?1",
  members: "SELECT id, email, role, created_at, removed_at FROM members WHERE org_id = ?1",
  keys: `SELECT id, member_id, name, prefix, scope, rpm_limit, created_at, last_used_at, revoked_at FROM keys
    WHERE org_id = ?1`,
  invitations: `SELECT id, role, email, member_id, invited_by, created_at, expires_at, accepted_at, ended_at
    FROM invitations WHERE org_id = ?1`,
  webhooks: "SELECT id, url, types, disabled_reason, created_at FROM webhooks WHERE org_id = ?1",
  company_domains: `SELECT domain, created_at, proven_at, approved_at, failed_since FROM company_domains
    WHERE org_id = ?1`,
  company_issuers: `SELECT issuer, client_id, created_at, tried_at, required_at FROM company_issuers
    WHERE org_id = ?1`,
  end_users: "SELECT * FROM end_users WHERE org_id = ?1",
  settings: "SELECT * FROM settings WHERE org_id = ?1",
  balance: "SELECT credits_micro, updated_at FROM balances WHERE org_id = ?1",
  credits: "SELECT * FROM credits WHERE org_id = ?1",
  daily_usage: "SELECT * FROM daily_usage WHERE org_id = ?1",
  alerts: "SELECT * FROM alerts WHERE org_id = ?1",
};

/** Returns an organization's rows, at most 10,000 per table, from one transaction. */
export async function exportOrganization(
  db: D1Database,
  orgId: string,
): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const names = Object.keys(EXPORT_QUERIES);
  const results = await db.batch(
    names.map((name) =>
      db.prepare(`${EXPORT_QUERIES[name] ?? ""} LIMIT ${EXPORTED_ROWS_MAX}`).bind(orgId),
    ),
  );
  return Object.fromEntries(names.map((name, at) => [name, results[at]?.results ?? []]));
}

const EXPORT_INTERVAL_MS = 600_000;

/**
 * Returns 0 if the person can export data now, else the wait in ms. Allows one export in ten
 * minutes.
 */
export async function takeExportSlot(
  db: D1Database,
  personId: string,
  nowMs: number,
): Promise<number> {
  const [taken, found] = await db.batch<{ exportedAt: number | null }>([
    db
      .prepare(
        `UPDATE people SET exported_at = ?2 WHERE id = ?1 AND coalesce(exported_at, 0) <= ?2 - ${EXPORT_INTERVAL_MS}`,
      )
      .bind(personId, nowMs),
    db.prepare("SELECT exported_at AS exportedAt FROM people WHERE id = ?").bind(personId),
  ]);
  if ((taken?.meta.changes ?? 0) > 0) return 0;
  const last = found?.results[0]?.exportedAt ?? nowMs;
  return Math.min(EXPORT_INTERVAL_MS, Math.max(1, last + EXPORT_INTERVAL_MS - nowMs));
}

type Rows = readonly object[];

export async function exportPerson(
  db: D1Database,
  personId: string,
): Promise<{
  readonly memberships: Rows;
  readonly invitations: Rows;
  readonly members: readonly { readonly memberId: string; readonly orgId: string }[];
}> {
  const [memberships, invitations] = await db.batch<Record<string, unknown>>([
    db
      .prepare(
        `SELECT members.id AS member_id, members.org_id AS organization_id, members.email, role, came_by,
           seen_at, members.created_at, removed_at,
           (SELECT types FROM notification_preferences WHERE member_id = members.id) AS notification_types
         FROM member_people JOIN members ON members.id = member_id WHERE person_id = ?
         ORDER BY members.created_at DESC LIMIT ${EXPORTED_ROWS_MAX}`,
      )
      .bind(personId),
    db
      .prepare(
        `SELECT id, org_id AS organization_id, role, created_at, expires_at, accepted_at, ended_at FROM invitations
         WHERE invited_by IN (SELECT member_id FROM member_people WHERE person_id = ?) LIMIT ${EXPORTED_ROWS_MAX}`,
      )
      .bind(personId),
  ]);
  const rows = memberships?.results ?? [];
  const members = rows.map((row) => ({
    memberId: String(row["member_id"]),
    orgId: String(row["organization_id"]),
  }));
  return { memberships: rows, invitations: invitations?.results ?? [], members };
}

const INVITATION_ADDRESS_MS = 30 * DAY_MS;
/** Time (ms) without a login after which a person without memberships is erased. */
const INACTIVE_PERSON_MS = 90 * DAY_MS;
const BATCH_ROWS = 500;

/**
 * Erases addresses of ended invitations, and inactive people without memberships, at most 500 of
 * each. Keeps members of restorable organizations.
 */
export async function eraseStalePeople(db: D1Database, nowMs: number): Promise<void> {
  const erasedPeopleSql = `SELECT id FROM people WHERE erased_at IS NOT NULL AND erased_at = ?1`;
  await db.batch([
    db
      .prepare(
        `UPDATE invitations SET email = NULL WHERE id IN (SELECT id FROM invitations WHERE email IS NOT NULL
           AND min(expires_at, coalesce(accepted_at, expires_at), coalesce(ended_at, expires_at)) < ?1 LIMIT ${BATCH_ROWS})`,
      )
      .bind(nowMs - INVITATION_ADDRESS_MS),
    db
      .prepare(
        `UPDATE people SET name = '', email = NULL, is_email_proven = 0, erased_at = ?1, sessions_from = ?1 + 1
         WHERE id IN (SELECT id FROM people WHERE erased_at IS NULL AND created_at < ?2
           AND NOT EXISTS (SELECT 1 FROM identities WHERE person_id = people.id AND used_at >= ?2)
           AND NOT EXISTS (SELECT 1 FROM member_people JOIN members ON members.id = member_id
             LEFT JOIN closed_organizations ON closed_organizations.org_id = members.org_id
             WHERE person_id = people.id AND (removed_at IS NULL
               OR (removed_at = closed_at AND restorable_until IS NOT NULL))) LIMIT ${BATCH_ROWS})`,
      )
      .bind(nowMs, nowMs - INACTIVE_PERSON_MS),
    db
      .prepare(
        `UPDATE members SET email = ${DELETED_ADDRESS_SQL}
         WHERE id IN (SELECT member_id FROM member_people WHERE person_id IN (${erasedPeopleSql}))`,
      )
      .bind(nowMs),
    db.prepare(`DELETE FROM identities WHERE person_id IN (${erasedPeopleSql})`).bind(nowMs),
  ]);
}
