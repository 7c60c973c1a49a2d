import type { Member, Role } from "../../shared/caller.ts";
import type { Actor, ChangeContext } from "../../shared/event.ts";
import { insertChangeEventStatement, insertEventOnce } from "../../shared/events.store.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { Key } from "../../shared/key.ts";
import type { StoredMember } from "./organization.ts";

const MEMBER_COLUMNS = "id, org_id AS orgId, email, role, created_at AS createdAt";

export type MemberIds = { readonly id: string; readonly orgId: string };

type MemberChange = {
  readonly email?: string | undefined;
  readonly role?: Role | undefined;
};

export type RevokedKey = Pick<Key, "keyId" | "orgId" | "scope"> & {
  readonly keyHash: string;
  readonly revokedAt: number;
};

/** SQL query for the members of organization ?2 except ?1. */
const OTHER_MEMBERS_SQL = `SELECT 1 FROM members AS other
  WHERE other.org_id = ?2 AND other.id <> ?1 AND other.removed_at IS NULL`;
/** SQL condition that the organization has an owner other than ?1. */
const OWNER_REMAINS_SQL = `(role <> 'owner' OR EXISTS (${OTHER_MEMBERS_SQL} AND other.role = 'owner'))`;

/**
 * Returns an SQL condition: the actor `by` is an active owner, or an admin with permission. A null
 * `by` means an operator.
 */
const canActSql = (
  by: string,
  role: string,
): string => `(${by} IS NULL OR EXISTS (SELECT 1 FROM members AS asking
  WHERE asking.id = ${by} AND asking.org_id = ?2 AND asking.removed_at IS NULL
    AND (asking.role = 'owner' OR (asking.role = 'admin' AND ${role}))))`;

/**
 * SQL condition: actor ?5 can give member ?1 of organization ?2 the address ?3 and the role ?4. A
 * null ?3 or ?4 keeps the current value.
 */
const CAN_CHANGE_SQL = `id = ?1 AND org_id = ?2 AND removed_at IS NULL
  AND ${canActSql("?5", "members.role <> 'owner' AND coalesce(?4, '') <> 'owner'")}
  AND (?4 IS NULL OR ?4 = 'owner' OR ${OWNER_REMAINS_SQL})
  AND (?3 IS NULL OR NOT EXISTS (${OTHER_MEMBERS_SQL} AND lower(other.email) = lower(?3)))`;

export async function findMemberByKeyId(db: D1Database, keyId: string): Promise<Member | null> {
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

export function findMemberById(
  db: D1Database,
  { id, orgId }: MemberIds,
): Promise<StoredMember | null> {
  return db
    .prepare(
      `SELECT ${MEMBER_COLUMNS} FROM members WHERE id = ? AND org_id = ? AND removed_at IS NULL`,
    )
    .bind(id, orgId)
    .first<StoredMember>();
}

export async function listMembers(db: D1Database, orgId: string): Promise<readonly StoredMember[]> {
  const { results } = await db
    .prepare(
      `SELECT ${MEMBER_COLUMNS} FROM members WHERE org_id = ? AND removed_at IS NULL
       ORDER BY created_at, id`,
    )
    .bind(orgId)
    .all<StoredMember>();
  return results;
}

export async function insertMember(
  db: D1Database,
  member: StoredMember,
  actor: Actor,
): Promise<Result<StoredMember>> {
  const [inserted] = await db.batch<StoredMember>([
    createInsertMemberStatement(db, member),
    createMemberCreatedEventStatement(db, member, actor),
  ]);
  const [row] = inserted?.results ?? [];
  return row === undefined ? emailTaken(member.email) : success(row);
}

export function createInsertMemberStatement(
  db: D1Database,
  { id, orgId, email, role, createdAt }: StoredMember,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO members (id, org_id, email, role, created_at) SELECT ?1, ?2, ?3, ?4, ?5
       WHERE NOT EXISTS (${OTHER_MEMBERS_SQL} AND lower(other.email) = lower(?3))
       RETURNING ${MEMBER_COLUMNS}`,
    )
    .bind(id, orgId, email, role, createdAt);
}

export function createMemberCreatedEventStatement(
  db: D1Database,
  { id, orgId, role, createdAt }: StoredMember,
  actor: Actor,
): D1PreparedStatement {
  // The event omits the address, because events outlive addresses.
  const data = { role };
  return insertEventOnce(
    db,
    { type: "member.created", orgId, subject: id, data },
    { actor, now: createdAt },
  );
}

/** The actor of a change. `memberId` is absent for an operator. */
export type MemberChangeActor = ChangeContext & { readonly memberId?: string | null };

/**
 * Changes a member in one batch, and ends invitations that the new role can't grant. Fails with
 * `not_found`, or with `conflict` for a taken address or the last owner (`last_owner`).
 */
export async function updateMember(
  db: D1Database,
  member: MemberIds,
  change: MemberChange,
  { actor, now, memberId: by = null }: MemberChangeActor,
): Promise<Result<StoredMember>> {
  const { email = null, role = null } = change;
  const event = { type: "member.changed", actor, subject: member.id, orgId: member.orgId } as const;
  const results = await db.batch<StoredMember & UpdateCheck>([
    insertChangeEventStatement(
      db,
      { ...event, createdAt: now },
      {
        table: "members",
        where: CAN_CHANGE_SQL.replaceAll(/\?(\d)/g, (_, n) => `?${8 + Number(n)}`),
        values: [member.id, member.orgId, email, role, by],
        columns: { email: "coalesce(?11, email)", role: "coalesce(?12, role)" },
        hidden: ["email"],
      },
    ),
    db
      .prepare(
        `UPDATE members SET email = coalesce(?3, email), role = coalesce(?4, role)
         WHERE ${CAN_CHANGE_SQL} RETURNING ${MEMBER_COLUMNS}`,
      )
      .bind(member.id, member.orgId, email, role, by),
    ...(role === null ? [] : endInvitationsStatements(db, member, now)),
    db
      .prepare(
        `SELECT EXISTS (${OTHER_MEMBERS_SQL} AND lower(other.email) = lower(?3)) AS isEmailTaken,
           ${canActSql("?5", "members.role <> 'owner' AND coalesce(?4, '') <> 'owner'")} AS may FROM members
         WHERE id = ?1 AND org_id = ?2 AND removed_at IS NULL`,
      )
      .bind(member.id, member.orgId, email, role, by),
  ]);
  const [row] = results[1]?.results ?? [];
  return row === undefined ? updateRefusal(results.at(-1)?.results[0], email) : success(row);
}

function updateRefusal(check: UpdateCheck | undefined, email: string | null): Refusal {
  if (check === undefined) return noSuchMember();
  if (check.may !== 1) return roleRefusal();
  return check.isEmailTaken === 1 && email !== null ? emailTaken(email) : lastOwner("role");
}

type UpdateCheck = { readonly isEmailTaken: 0 | 1; readonly may: 0 | 1 };

export type RemovedMember = {
  readonly keys: readonly RevokedKey[];
  readonly personId: string | null;
  readonly email: string | null;
};
type RemovedRow = RevokedKey & {
  readonly removedAt: number | null;
  readonly personId: string | null;
  readonly email: string | null;
  readonly may: 0 | 1;
};

/**
 * Removes a member, revokes their keys and ends their invitations in one batch. A retry returns the
 * same keys. Fails with `not_found`, `role_required`, or `conflict` for the last owner
 * (`last_owner`).
 */
export async function removeMember(
  db: D1Database,
  member: MemberIds,
  change: MemberChangeActor,
): Promise<Result<RemovedMember>> {
  const { now, memberId: by = null } = change;
  const may = `(?3 = ?1 OR ${canActSql("?3", "members.role <> 'owner'")})`;
  const [, , , , , ended, found] = await db.batch<RemovedRow>([
    db
      .prepare(
        `UPDATE members SET removed_at = ?4
         WHERE id = ?1 AND org_id = ?2 AND removed_at IS NULL AND ${may} AND ${OWNER_REMAINS_SQL}`,
      )
      .bind(member.id, member.orgId, by, now),
    insertEventOnce(
      db,
      { type: "member.removed", orgId: member.orgId, subject: member.id },
      change,
    ),
    ...endInvitationsStatements(db, member, now),
    db
      .prepare(
        `UPDATE keys SET revoked_at = ?3 WHERE org_id = ?2 AND member_id = ?1 AND revoked_at IS NULL
           AND (SELECT removed_at FROM members WHERE id = ?1) IS NOT NULL`,
      )
      .bind(member.id, member.orgId, now),
    db
      .prepare(
        `SELECT id AS keyId, hash AS keyHash, org_id AS orgId, scope, revoked_at AS revokedAt FROM keys WHERE org_id = ?2 AND member_id = ?1
           AND revoked_at >= (SELECT removed_at FROM members WHERE id = ?1)`,
      )
      .bind(member.id, member.orgId),
    db
      .prepare(
        `SELECT removed_at AS removedAt, ${may} AS may,
           (SELECT person_id FROM member_people WHERE member_id = ?1) AS personId,
           (SELECT people.email FROM member_people JOIN people ON people.id = person_id
             WHERE member_id = ?1 AND is_email_proven = 1) AS email
         FROM members WHERE id = ?1 AND org_id = ?2`,
      )
      .bind(member.id, member.orgId, by),
  ]);
  const [row] = found?.results ?? [];
  if (row === undefined) return noSuchMember();
  if (row.removedAt === null) return row.may === 1 ? lastOwner(null) : roleRefusal();
  return success({ keys: ended?.results ?? [], personId: row.personId, email: row.email });
}

function endInvitationsStatements(
  db: D1Database,
  member: MemberIds,
  nowMs: number,
): readonly D1PreparedStatement[] {
  const endedInvitations = `invited_by = ?1 AND accepted_at IS NULL AND ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM members AS inviter WHERE inviter.id = ?1 AND inviter.removed_at IS NULL
      AND (inviter.role = 'owner' OR (inviter.role = 'admin' AND invitations.role <> 'owner')))`;
  return [
    db
      .prepare(
        `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
         SELECT 'evt_' || substr(id, 5), org_id, 'invitation.ended', 'system', NULL, id, '{}', ?2
         FROM invitations WHERE ${endedInvitations} ON CONFLICT (id) DO NOTHING`,
      )
      .bind(member.id, nowMs),
    db
      .prepare(`UPDATE invitations SET ended_at = ?2 WHERE ${endedInvitations}`)
      .bind(member.id, nowMs),
  ];
}

function roleRefusal(): Refusal {
  return refuse({ kind: "role_required", roles: ["owner", "admin"] });
}

function noSuchMember(): Refusal {
  return refuse({ kind: "not_found", message: "No such member." });
}

function emailTaken(email: string): Refusal {
  const message = `'${email}' is already a member of this organization.`;
  return refuse({ kind: "conflict", message, param: "email" });
}

function lastOwner(param: "role" | null): Refusal {
  const message =
    "This member is the organization's last owner. Make another member an owner first.";
  return refuse({ kind: "conflict", message, param, code: "last_owner" });
}
