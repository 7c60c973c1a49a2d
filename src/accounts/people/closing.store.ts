import { DAY_MS, timestamp } from "../../shared/clock.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import type { ChangeContext } from "../../shared/event.ts";
import { insertOrganizationEvent } from "../../shared/events.store.ts";
import { CLOSED_ORGANIZATION_SLUG_PREFIX } from "../organizations/organization.ts";
import type { RevokedKey } from "../organizations/members.store.ts";
import { DELETED_ADDRESS_SQL } from "./erasure.store.ts";
import { REQUIRES_COMPANY_LOGIN } from "./people.store.ts";
import type { Membership } from "./person.ts";

/** Ms for which a closed organization can be restored. */
const RESTORABLE_MS = 7 * DAY_MS;

type ClosedPerson = { readonly memberId: string; readonly personId: string };

const CLOSED = "SELECT closed_at FROM closed_organizations WHERE org_id = ?1";
const ERASED_MEMBERS_SQL = `SELECT member_id FROM member_people JOIN people ON people.id = person_id
  WHERE member_people.org_id = ?1 AND erased_at IS NOT NULL`;

/**
 * Suspends an organization, removes its members and ends its invitations. Returns null if the
 * caller can't close it. `memberId` must be an owner, or null for an operator. `isAlone` requires
 * that there are no other members, and prevents restoration.
 */
export async function closeOrganization(
  db: D1Database,
  orgId: string,
  by: ChangeContext & { readonly memberId: string | null; readonly isAlone?: boolean },
): Promise<readonly ClosedPerson[] | null> {
  const { memberId, now: nowMs, isAlone = false } = by;
  const until = isAlone ? nowMs : nowMs + RESTORABLE_MS;
  const restorable = { restorable_until: timestamp(until) };
  const results = await db.batch<{ closed: 0 | 1 } & ClosedPerson>([
    db
      .prepare(
        // `closed_at` is later than all earlier removals, so that a restoration brings back only
        // the members that the closing removed. Once an operator closes the organization, only
        // operators can restore it.
        `INSERT INTO closed_organizations (org_id, closed_at, restorable_until, status, closed_by)
         SELECT id, max(?3, (SELECT coalesce(max(removed_at), 0) FROM members WHERE org_id = ?1) + 1,
           (SELECT coalesce(max(ended_at), 0) FROM invitations WHERE org_id = ?1) + 1), ?5, status, ?2
         FROM organizations
         WHERE id = ?1 AND (?2 IS NULL OR EXISTS (SELECT 1 FROM members WHERE id = ?2 AND org_id = ?1
           AND role = 'owner' AND removed_at IS NULL))
           AND (?4 = 0 OR NOT EXISTS (SELECT 1 FROM members WHERE org_id = ?1 AND id <> ?2 AND removed_at IS NULL))
         ON CONFLICT DO UPDATE SET closed_by = NULL, restorable_until = excluded.restorable_until
           WHERE excluded.closed_by IS NULL AND closed_organizations.closed_by IS NOT NULL
             AND closed_organizations.restorable_until > ?3`,
      )
      .bind(orgId, memberId, nowMs, isAlone ? 1 : 0, until),
    insertOrganizationEvent(db, orgId, { closed: true, ...restorable }, by),
    db
      .prepare(`UPDATE organizations SET status = 'suspended' WHERE id = ?1 AND EXISTS (${CLOSED})`)
      .bind(orgId),
    db
      .prepare(
        `UPDATE members SET removed_at = (${CLOSED})
         WHERE org_id = ?1 AND removed_at IS NULL AND EXISTS (${CLOSED})`,
      )
      .bind(orgId),
    db
      .prepare(
        `UPDATE invitations SET ended_at = (${CLOSED})
         WHERE org_id = ?1 AND ended_at IS NULL AND accepted_at IS NULL AND EXISTS (${CLOSED})`,
      )
      .bind(orgId),
    db
      .prepare(`DELETE FROM personal_organizations WHERE org_id = ?1 AND EXISTS (${CLOSED})`)
      .bind(orgId),
    db.prepare(`SELECT EXISTS (${CLOSED}) AS closed`).bind(orgId),
    db
      .prepare(
        "SELECT member_id AS memberId, person_id AS personId FROM member_people WHERE org_id = ?",
      )
      .bind(orgId),
  ]);
  const [found, persons] = results.slice(-2);
  return found?.results[0]?.closed === 1 ? (persons?.results ?? []) : null;
}

type Restoration = {
  /**
   * Whether the organization was restored. False if the actor can't restore it, or it isn't closed.
   */
  readonly isRestored: boolean;
  readonly keys: readonly RevokedKey[];
};

/**
 * Restores a closed organization with its invitations, status and members, except deleted accounts.
 * A member can't undo an operator's closing, even a concurrent one.
 */
export async function restoreOrganization(
  db: D1Database,
  orgId: string,
  by: ChangeContext,
): Promise<Restoration> {
  const { actor, now: nowMs } = by;
  const closedByOwner = actor.kind === "member" ? "AND closed_by IS NOT NULL" : "";
  const restorable = `restorable_until > ?2 ${closedByOwner}`;
  const open = `EXISTS (${CLOSED} AND ${restorable})`;
  const prepareStatement = (sql: string): D1PreparedStatement => db.prepare(sql).bind(orgId, nowMs);
  const results = await db.batch<RevokedKey>([
    prepareStatement(
      `UPDATE organizations SET status = (SELECT status FROM closed_organizations WHERE org_id = ?1)
       WHERE id = ?1 AND ${open}`,
    ),
    prepareStatement(
      `UPDATE members SET removed_at = NULL WHERE org_id = ?1 AND removed_at = (${CLOSED}) AND ${open}
         AND id NOT IN (${ERASED_MEMBERS_SQL})`,
    ),
    prepareStatement(
      `UPDATE keys SET revoked_at = ?2 WHERE org_id = ?1 AND revoked_at IS NULL AND ${open}
         AND member_id IN (${ERASED_MEMBERS_SQL})`,
    ),
    prepareStatement(
      `UPDATE invitations SET ended_at = NULL WHERE org_id = ?1 AND ended_at = (${CLOSED}) AND ${open}`,
    ),
    // A person can have one personal organization. If the person has another one, the restored one
    // becomes a team.
    prepareStatement(
      `INSERT OR IGNORE INTO personal_organizations (person_id, org_id)
       SELECT person_id, member_people.org_id FROM member_people
       JOIN members ON members.id = member_id AND removed_at IS NULL
       JOIN organizations ON organizations.id = member_people.org_id AND is_personal = 1
       WHERE member_people.org_id = ?1 AND ${open} LIMIT 1`,
    ),
    prepareStatement(
      `UPDATE organizations SET is_personal = 0 WHERE id = ?1 AND is_personal = 1 AND ${open}
         AND EXISTS (SELECT 1 FROM member_people WHERE org_id = ?1)
         AND NOT EXISTS (SELECT 1 FROM personal_organizations WHERE org_id = ?1)`,
    ),
    prepareStatement(`DELETE FROM closed_organizations WHERE org_id = ?1 AND ${restorable}`),
    insertOrganizationEvent(db, orgId, { closed: false }, by),
    db
      .prepare(
        `SELECT id AS keyId, hash AS keyHash, org_id AS orgId, scope, revoked_at AS revokedAt FROM keys
         WHERE org_id = ?1 AND revoked_at IS NOT NULL AND member_id IN (${ERASED_MEMBERS_SQL})`,
      )
      .bind(orgId),
  ]);
  return {
    isRestored: (results[6]?.meta.changes ?? 0) > 0,
    keys: results.at(-1)?.results ?? [],
  };
}

/** An organization's status and closing times (Unix ms). */
type OrganizationClosing = {
  readonly status: "active" | "suspended";
  readonly closedAt: number | null;
  /** The latest time for a restoration. Null if the organization isn't closed or was removed. */
  readonly restorableUntil: number | null;
};

export function findOrganizationClosing(
  db: D1Database,
  orgId: string,
): Promise<OrganizationClosing | null> {
  return db
    .prepare(
      `SELECT organizations.status, closed_at AS closedAt, restorable_until AS restorableUntil
       FROM organizations LEFT JOIN closed_organizations ON org_id = id WHERE id = ?`,
    )
    .bind(orgId)
    .first<OrganizationClosing>();
}

export async function isOrganizationClosed(db: D1Database, orgId: string): Promise<boolean> {
  return ((await findOrganizationClosing(db, orgId))?.closedAt ?? null) !== null;
}

/** `restorableUntil` is Unix ms. */
type RestorableOrganization = {
  readonly orgId: string;
  readonly name: string;
  readonly restorableUntil: number;
};

/** SQL clauses that find the organizations that a person owns or owned. */
const OWNED_ORGANIZATIONS_SQL = `FROM member_people
  JOIN members ON members.id = member_id AND role = 'owner'
  JOIN organizations ON organizations.id = members.org_id
  LEFT JOIN closed_organizations AS closed ON closed.org_id = members.org_id
  WHERE person_id = ?1`;
const CLOSED_BY_OWNER_SQL = "closed_by IS NOT NULL AND members.removed_at = closed_at";

/**
 * Returns the organizations that a person can restore, except those that require their company
 * login.
 */
export async function listRestorableOrganizationsOfPerson(
  db: D1Database,
  personId: string,
  nowMs: number,
): Promise<readonly RestorableOrganization[]> {
  const { results } = await db
    .prepare(
      `SELECT organizations.id AS orgId, name, restorable_until AS restorableUntil ${OWNED_ORGANIZATIONS_SQL}
       AND ${CLOSED_BY_OWNER_SQL} AND restorable_until > ?2 AND NOT ${REQUIRES_COMPANY_LOGIN} ORDER BY closed_at DESC LIMIT 100`,
    )
    .bind(personId, nowMs)
    .all<RestorableOrganization>();
  return results;
}

/**
 * Returns the person's membership if they can restore the organization, else null. They must have
 * been an owner when an owner closed it. Current owners can retry a restoration.
 */
export function findRestoringOwner(
  db: D1Database,
  orgId: string,
  personId: string,
): Promise<Pick<Membership, "memberId" | "orgId" | "isCompanys"> | null> {
  return db
    .prepare(
      `SELECT members.id AS memberId, members.org_id AS orgId, ${REQUIRES_COMPANY_LOGIN} AS isCompanys ${OWNED_ORGANIZATIONS_SQL}
       AND members.org_id = ?2 AND (members.removed_at IS NULL OR (${CLOSED_BY_OWNER_SQL}))`,
    )
    .bind(personId, orgId)
    .first();
}

const REMOVALS_MAX = 100;

export async function listRestorableOrganizations(db: D1Database): Promise<readonly string[]> {
  const { results } = await db
    .prepare(
      `SELECT org_id AS id FROM closed_organizations WHERE restorable_until IS NOT NULL
       ORDER BY closed_at DESC LIMIT 1000`,
    )
    .all<{ id: string }>();
  return results.map(({ id }) => id);
}

export async function listOrganizationsToRemove(
  db: D1Database,
  nowMs: number,
): Promise<readonly string[]> {
  const { results } = await db
    .prepare(
      `SELECT org_id AS id FROM closed_organizations WHERE restorable_until <= ?
       ORDER BY restorable_until LIMIT ${REMOVALS_MAX}`,
    )
    .bind(nowMs)
    .all<{ id: string }>();
  return results.map(({ id }) => id);
}

/**
 * Erases a closed organization's names and addresses, revokes its keys and deletes its webhooks.
 * Returns the revoked keys, also on a retry, or null while the organization can be restored.
 */
export async function eraseOrganization(
  db: D1Database,
  orgId: string,
  nowMs: number,
): Promise<readonly RevokedKey[] | null> {
  const isDue = `EXISTS (${CLOSED} AND coalesce(restorable_until, 0) <= ?2)`;
  const prepareStatement = (sql: string): D1PreparedStatement => db.prepare(sql).bind(orgId, nowMs);
  const results = await db.batch<RevokedKey & { isDue: 0 | 1 }>([
    prepareStatement(`SELECT ${isDue} AS isDue`),
    db
      .prepare(
        `UPDATE organizations SET status = 'suspended', name = 'Closed',
           slug = iif(slug GLOB ?3 || '*' AND length(slug) = 31, slug, ?3 || lower(hex(randomblob(12))))
         WHERE id = ?1 AND ${isDue}`,
      )
      .bind(orgId, nowMs, CLOSED_ORGANIZATION_SLUG_PREFIX),
    prepareStatement(
      `UPDATE keys SET revoked_at = ?2, name = 'Closed' WHERE org_id = ?1 AND revoked_at IS NULL AND ${isDue}`,
    ),
    prepareStatement(
      `UPDATE members SET removed_at = coalesce(removed_at, ?2), email = ${DELETED_ADDRESS_SQL}
       WHERE org_id = ?1 AND ${isDue}`,
    ),
    prepareStatement(
      `UPDATE invitations SET email = NULL, ended_at = coalesce(ended_at, ?2) WHERE org_id = ?1 AND ${isDue}`,
    ),
    ...["company_domains", "company_issuers", "webhooks", "personal_organizations"].map((table) =>
      prepareStatement(`DELETE FROM ${table} WHERE org_id = ?1 AND ${isDue}`),
    ),
    prepareStatement(`DELETE FROM identities WHERE realm = ?1 AND ${isDue}`),
    prepareStatement(
      `SELECT id AS keyId, hash AS keyHash, org_id AS orgId, scope, revoked_at AS revokedAt FROM keys
       WHERE org_id = ?1 AND revoked_at >= (${CLOSED}) AND ${isDue}`,
    ),
  ]);
  return results[0]?.results[0]?.isDue === 1 ? (results.at(-1)?.results ?? []) : null;
}

export async function recordOrganizationRemoval(
  db: D1Database,
  orgId: string,
  nowMs: number,
): Promise<void> {
  await db.batch([
    db
      .prepare(
        "UPDATE closed_organizations SET restorable_until = NULL WHERE org_id = ?1 AND restorable_until <= ?2",
      )
      .bind(orgId, nowMs),
    insertOrganizationEvent(
      db,
      orgId,
      { closed: true, removed: true },
      { actor: SYSTEM_ACTOR, now: nowMs },
    ),
  ]);
}
