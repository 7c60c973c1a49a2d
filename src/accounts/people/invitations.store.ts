import { deriveEventId } from "../../shared/event.ts";
import type { Actor, ChangeContext } from "../../shared/event.ts";
import { insertEventOnce } from "../../shared/events.store.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { createInsertConsoleKeyStatement } from "../keys/console-key.store.ts";
import type { ConsoleKey } from "../keys/console-key.store.ts";
import type { Invitation } from "./invitation.ts";
import { emailAddressOf } from "./person.ts";
import type { Person } from "./person.ts";
import { canGrantRoleSql } from "./rights.ts";

const OPEN_INVITATIONS_MAX = 50;
const HOURLY_INVITATIONS_MAX = 20;

const INVITATION_COLUMNS = `id, org_id AS orgId, role, email, member_id AS memberId, invited_by AS invitedBy,
  created_at AS createdAt, expires_at AS expiresAt`;
const IS_OPEN_SQL = "accepted_at IS NULL AND ended_at IS NULL";

/**
 * Returns an SQL condition: the inviter `by` is active and can grant `role`. A null inviter is an
 * operator.
 */
function canInviteSql(by: string, role: string): string {
  return `(${by} IS NULL OR EXISTS (SELECT 1 FROM members AS inviter WHERE inviter.id = ${by}
    AND inviter.removed_at IS NULL AND ${canGrantRoleSql("inviter.role", role)}))`;
}

function invitedRoleSql(member: string, role: string): string {
  return `coalesce((SELECT role FROM members WHERE id = ${member}), ${role})`;
}

function invitedAddressSql(member: string, email: string): string {
  return `coalesce(${email}, (SELECT email FROM members WHERE id = ${member}))`;
}

/**
 * Creates an invitation or extends an open one. Fails if the inviter can't grant the role, the
 * member is unknown or has a login, or a limit is reached.
 */
export async function insertInvitation(
  db: D1Database,
  invitation: Invitation,
  actor: Actor,
): Promise<Result<Invitation>> {
  const { id, orgId, role, email, memberId, invitedBy, createdAt, expiresAt } = invitation;
  const [extended, inserted, , found] = await db.batch<Invitation & InvitationCheck>([
    db
      .prepare(
        `UPDATE invitations SET expires_at = max(expires_at, ?5), created_at = ?6, invited_by = ?7
         WHERE org_id = ?1 AND ${IS_OPEN_SQL} AND expires_at > ?6 AND member_id IS ?4
           AND role = ${invitedRoleSql("?4", "?2")} AND lower(email) = lower(${invitedAddressSql("?4", "?3")})
           AND ${canInviteSql("?7", "invitations.role")} RETURNING ${INVITATION_COLUMNS}`,
      )
      .bind(orgId, role, email, memberId, expiresAt, createdAt, invitedBy),
    db
      .prepare(
        `INSERT INTO invitations (id, org_id, role, email, member_id, invited_by, created_at, expires_at)
         SELECT ?1, ?2, ${invitedRoleSql("?5", "?3")}, ${invitedAddressSql("?5", "?4")}, ?5, ?6, ?7, ?8
         WHERE changes() = 0 AND ${canInviteSql("?6", invitedRoleSql("?5", "?3"))}
           AND (?5 IS NULL OR EXISTS (SELECT 1 FROM members WHERE id = ?5 AND org_id = ?2
             AND removed_at IS NULL AND id NOT IN (SELECT member_id FROM member_people)))
           AND (SELECT count(*) FROM invitations WHERE org_id = ?2 AND ${IS_OPEN_SQL} AND expires_at > ?7) < ${OPEN_INVITATIONS_MAX}
           AND (SELECT count(*) FROM invitations WHERE org_id = ?2 AND invited_by IS ?6
             AND created_at > ?7 - 36e5) < ${HOURLY_INVITATIONS_MAX}
         RETURNING ${INVITATION_COLUMNS}`,
      )
      .bind(id, orgId, role, email, memberId, invitedBy, createdAt, expiresAt),
    insertEventOnce(
      db,
      {
        type: "invitation.created",
        orgId,
        subject: id,
        data: { role, ...(memberId !== null && { member_id: memberId }) },
      },
      { actor, now: createdAt },
    ),
    db
      .prepare(
        `SELECT ${canInviteSql("?2", invitedRoleSql("?3", "?4"))} AS may,
           EXISTS (SELECT 1 FROM members WHERE id = ?3 AND org_id = ?1 AND removed_at IS NULL) AS isMember,
           EXISTS (SELECT 1 FROM member_people WHERE member_id = ?3) AS isPerson`,
      )
      .bind(orgId, invitedBy, memberId, role),
  ]);
  const row = extended?.results[0] ?? inserted?.results[0];
  if (row !== undefined) return success(row);
  return invitationRefusal(found?.results[0], memberId);
}

type InvitationCheck = { readonly may: 0 | 1; readonly isMember: 0 | 1; readonly isPerson: 0 | 1 };

function invitationRefusal(status: InvitationCheck | undefined, memberId: string | null): Refusal {
  if (status?.may !== 1) return refuse({ kind: "role_required", roles: ["owner", "admin"] });
  if (memberId !== null && status.isMember !== 1) {
    return refuse({ kind: "not_found", message: "No such member." });
  }
  if (status.isPerson === 1) return conflict("This member already has a login.", "has_log_in");
  const message = `An organization can't have more than ${OPEN_INVITATIONS_MAX} open invitations, and a person can't send more than ${HOURLY_INVITATIONS_MAX} invitations an hour.`;
  return conflict(message, "too_many_invitations");
}

function conflict(message: string, code: string): Refusal {
  return refuse({ kind: "conflict", message, param: null, code });
}

export type InvitationDetails = Invitation & {
  readonly organization: string;
  readonly isSuspended: 0 | 1;
  readonly inviter: string | null;
  readonly acceptedAt: number | null;
  readonly endedAt: number | null;
  readonly isGiven: 0 | 1;
};

const DETAILS_SQL = `SELECT invitations.id, invitations.org_id AS orgId, invitations.role, invitations.email,
    invitations.member_id AS memberId, invited_by AS invitedBy, invitations.created_at AS createdAt,
    expires_at AS expiresAt, accepted_at AS acceptedAt, ended_at AS endedAt, organizations.name AS organization,
    organizations.status = 'suspended' AS isSuspended, people.name AS inviter,
    ${canInviteSql("invited_by", "invitations.role")} AS isGiven
  FROM invitations JOIN organizations ON organizations.id = invitations.org_id
  LEFT JOIN member_people ON member_people.member_id = invited_by
  LEFT JOIN people ON people.id = member_people.person_id`;

export function findInvitation(db: D1Database, id: string): Promise<InvitationDetails | null> {
  return db.prepare(`${DETAILS_SQL} WHERE invitations.id = ?`).bind(id).first<InvitationDetails>();
}

export async function listInvitations(
  db: D1Database,
  orgId: string,
  nowMs: number,
): Promise<readonly InvitationDetails[]> {
  const { results } = await db
    .prepare(
      `${DETAILS_SQL} WHERE invitations.org_id = ? AND ${IS_OPEN_SQL} AND expires_at > ?
       ORDER BY invitations.created_at DESC LIMIT ${OPEN_INVITATIONS_MAX}`,
    )
    .bind(orgId, nowMs)
    .all<InvitationDetails>();
  return results;
}

export async function endInvitation(
  db: D1Database,
  { id, orgId }: Pick<Invitation, "id" | "orgId">,
  by: ChangeContext,
): Promise<boolean> {
  const [ended] = await db.batch([
    db
      .prepare(
        `UPDATE invitations SET ended_at = ?3 WHERE id = ?1 AND org_id = ?2 AND ${IS_OPEN_SQL} RETURNING id`,
      )
      .bind(id, orgId, by.now),
    insertEventOnce(db, { type: "invitation.ended", orgId, subject: id }, by),
  ]);
  return (ended?.results.length ?? 0) > 0;
}

type Acceptance = {
  readonly person: Person;
  readonly proven: readonly string[];
  readonly memberId: string;
  readonly key: ConsoleKey;
  readonly nowMs: number;
};

const NOT_A_MEMBER_SQL = `NOT EXISTS (SELECT 1 FROM member_people JOIN members AS own ON own.id = member_people.member_id
  WHERE member_people.org_id = invitations.org_id AND person_id = ?3 AND own.removed_at IS NULL)`;

const NOT_REMOVED_SINCE_SQL = `NOT EXISTS (SELECT 1 FROM member_people JOIN members AS gone ON gone.id = member_people.member_id
  WHERE member_people.org_id = invitations.org_id AND person_id = ?3 AND gone.removed_at > invitations.created_at)`;

/**
 * Accepts an invitation in one batch and returns the member's ID. Returns null if the invitation,
 * inviter, organization or person doesn't qualify.
 */
export async function acceptInvitation(
  db: D1Database,
  id: string,
  { person, proven, memberId, key, nowMs }: Acceptance,
): Promise<string | null> {
  const email = emailAddressOf(person);
  const memberSql = `(SELECT coalesce(member_id, ?2) FROM invitations WHERE id = ?1 AND accepted_by = ?2)`;
  const [accepted] = await db.batch<{ memberId: string }>([
    db
      .prepare(
        `UPDATE invitations SET accepted_at = ?4, accepted_by = ?2
         WHERE id = ?1 AND ${IS_OPEN_SQL} AND expires_at > ?4 AND ${NOT_A_MEMBER_SQL} AND ${NOT_REMOVED_SINCE_SQL}
           AND EXISTS (SELECT 1 FROM organizations WHERE id = invitations.org_id AND status = 'active')
           AND ${canInviteSql("invited_by", "invitations.role")}
           AND (email IS NULL OR lower(email) IN (SELECT lower(value) FROM json_each(?5)))
           AND iif(member_id IS NULL,
             NOT EXISTS (SELECT 1 FROM members AS other WHERE other.org_id = invitations.org_id
               AND other.removed_at IS NULL AND lower(other.email) = lower(?6)),
             EXISTS (SELECT 1 FROM members AS own WHERE own.id = invitations.member_id
               AND own.removed_at IS NULL AND own.role = invitations.role
               AND own.id NOT IN (SELECT member_id FROM member_people)))
         RETURNING coalesce(member_id, ?2) AS memberId`,
      )
      .bind(id, memberId, person.id, nowMs, JSON.stringify(proven), email),
    db
      .prepare(
        `INSERT INTO members (id, org_id, email, role, created_at)
         SELECT ?2, org_id, ?3, role, ?4 FROM invitations
         WHERE id = ?1 AND accepted_by = ?2 AND member_id IS NULL`,
      )
      .bind(id, memberId, email, nowMs),
    db
      .prepare(
        `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
         SELECT ?4, org_id, iif(member_id IS NULL, 'member.created', 'member.changed'), 'member', ${memberSql},
           ${memberSql}, json_object('role', role, 'invitation_id', id), ?3
         FROM invitations WHERE id = ?1 AND accepted_by = ?2`,
      )
      .bind(id, memberId, nowMs, deriveEventId("member.created", memberId)),
    db
      .prepare(
        `INSERT INTO member_people (member_id, org_id, person_id, came_by, seen_at, created_at)
         SELECT id, org_id, ?3, 'invitation', ?4, ?4 FROM members WHERE id = ${memberSql}`,
      )
      .bind(id, memberId, person.id, nowMs),
    createInsertConsoleKeyStatement(db, key, { invitation: id, acceptedBy: memberId }, nowMs),
  ]);
  return accepted?.results[0]?.memberId ?? null;
}

export async function wasRemovedSinceInvitation(
  db: D1Database,
  invitationId: string,
  personId: string,
): Promise<boolean> {
  const row = await db
    .prepare(
      `SELECT ${NOT_REMOVED_SINCE_SQL.replace("NOT EXISTS", "EXISTS")} AS was FROM invitations WHERE id = ?1`,
    )
    .bind(invitationId, null, personId)
    .first<{ was: 0 | 1 }>();
  return row?.was === 1;
}
