import { DAY_MS } from "../../shared/clock.ts";
import { DELETED_ADDRESS_SQL } from "./erasure.store.ts";

const INVITATION_ADDRESS_MS = 30 * DAY_MS;
/** Time in ms without a login after which a person without memberships is erased. */
const INACTIVE_PERSON_MS = 90 * DAY_MS;
const BATCH_ROWS = 500;

/**
 * Erases a batch of addresses of ended invitations, and a batch of inactive people without
 * memberships. Members of restorable organizations stay.
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
