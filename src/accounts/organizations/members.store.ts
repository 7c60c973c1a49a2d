import type { Member, Role } from "../../shared/caller.ts";
import { derivedEventId, SYSTEM } from "../../shared/event.ts";
import type { Actor } from "../../shared/event.ts";
import { eventIfChanged, eventOfChange } from "../../shared/events.store.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { Key } from "../../shared/key.ts";
import type { StoredMember } from "./organization.ts";

const COLUMNS = "id, org_id AS orgId, email, role, created_at AS createdAt";

/** A member of an organization, as a path names it. */
export type MemberName = { readonly id: string; readonly orgId: string };

type MemberChange = {
  readonly email?: string | undefined;
  readonly role?: Role | undefined;
};

/** A key of a removed member: revoked in the book, and its register is to be told. */
export type EndedKey = Pick<Key, "keyId" | "orgId" | "scope"> & {
  readonly keyHash: string;
  readonly revokedAt: number;
};

/** The other members of the organization ?2 than ?1. */
const OTHERS = `SELECT 1 FROM members AS other
  WHERE other.org_id = ?2 AND other.id <> ?1 AND other.removed_at IS NULL`;
/** In an update of the member ?1: its organization has an owner also without it. */
const OWNER_REMAINS = `(role <> 'owner' OR EXISTS (${OTHERS} AND other.role = 'owner'))`;

/** Whether the member `by`, who asks, lives and gives the role of the member in question; null: an operator asks. */
const mayAct = (
  by: string,
  role: string,
): string => `(${by} IS NULL OR EXISTS (SELECT 1 FROM members AS asking
  WHERE asking.id = ${by} AND asking.org_id = ?2 AND asking.removed_at IS NULL
    AND (asking.role = 'owner' OR (asking.role = 'admin' AND ${role}))))`;

/** Whether the member ?1 of ?2 may get the address ?3 and the role ?4 of the member ?5; null: it keeps its own. */
const MAY_CHANGE = `id = ?1 AND org_id = ?2 AND removed_at IS NULL
  AND ${mayAct("?5", "members.role <> 'owner' AND coalesce(?4, '') <> 'owner'")}
  AND (?4 IS NULL OR ?4 = 'owner' OR ${OWNER_REMAINS})
  AND (?3 IS NULL OR NOT EXISTS (${OTHERS} AND lower(other.email) = lower(?3)))`;

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

/** The members of an organization in the order they came; removed ones are not listed. */
export async function listMembers(db: D1Database, orgId: string): Promise<readonly StoredMember[]> {
  const { results } = await db
    .prepare(
      `SELECT ${COLUMNS} FROM members WHERE org_id = ? AND removed_at IS NULL
       ORDER BY created_at, id`,
    )
    .bind(orgId)
    .all<StoredMember>();
  return results;
}

/** Adds a member; `conflict` when a member of the organization has the address, in whatever case. */
export async function insertMember(
  db: D1Database,
  member: StoredMember,
  actor: Actor = SYSTEM,
): Promise<Result<StoredMember>> {
  const [inserted] = await db.batch<StoredMember>([
    insertMemberStatement(db, member),
    memberCreatedStatement(db, member, actor),
  ]);
  const [row] = inserted?.results ?? [];
  return row === undefined ? emailTaken(member.email) : success(row);
}

/** For a batch: the member, unless another one of the organization has the address. */
export function insertMemberStatement(
  db: D1Database,
  { id, orgId, email, role, createdAt }: StoredMember,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO members (id, org_id, email, role, created_at) SELECT ?1, ?2, ?3, ?4, ?5
       WHERE NOT EXISTS (${OTHERS} AND lower(other.email) = lower(?3))
       RETURNING ${COLUMNS}`,
    )
    .bind(id, orgId, email, role, createdAt);
}

/** For a batch, right after the member: that it was added. */
export function memberCreatedStatement(
  db: D1Database,
  { id, orgId, role, createdAt }: StoredMember,
  actor: Actor,
): D1PreparedStatement {
  return eventIfChanged(db, {
    id: derivedEventId("member.created", id),
    orgId,
    type: "member.created",
    actor,
    subject: id,
    data: { role }, // no address: the log outlives it
    createdAt,
  });
}

/** Who changes a member, and when (Unix ms); `memberId`: the member who asks, left out for an operator. */
export type MemberChangeActor = {
  readonly actor: Actor;
  readonly nowMs: number;
  readonly memberId?: string | null;
};

/**
 * Sets what the change names, all or nothing; invitations that the new role may not give end. Refusals: `not_found` for whoever is no member (any
 * more), `conflict` for another member's address and, code `last_owner`, where no owner would be left.
 */
export async function updateMember(
  db: D1Database,
  member: MemberName,
  change: MemberChange,
  { actor, nowMs, memberId: by = null }: MemberChangeActor,
): Promise<Result<StoredMember>> {
  const { email = null, role = null } = change;
  const event = { type: "member.changed", actor, subject: member.id, orgId: member.orgId } as const;
  const results = await db.batch<StoredMember & UpdateCheck>([
    eventOfChange(
      db,
      { ...event, createdAt: nowMs },
      {
        table: "members",
        where: MAY_CHANGE.replaceAll(/\?(\d)/g, (_, n) => `?${8 + Number(n)}`),
        values: [member.id, member.orgId, email, role, by],
        columns: { email: "coalesce(?11, email)", role: "coalesce(?12, role)" },
        hidden: ["email"], // the log outlives it
      },
    ),
    db
      .prepare(
        `UPDATE members SET email = coalesce(?3, email), role = coalesce(?4, role)
         WHERE ${MAY_CHANGE} RETURNING ${COLUMNS}`,
      )
      .bind(member.id, member.orgId, email, role, by),
    ...(role === null ? [] : invitationsEnded(db, member, nowMs)),
    // What stood in the way, in the same moment.
    db
      .prepare(
        `SELECT EXISTS (${OTHERS} AND lower(other.email) = lower(?3)) AS isEmailTaken,
           ${mayAct("?5", "members.role <> 'owner' AND coalesce(?4, '') <> 'owner'")} AS may FROM members
         WHERE id = ?1 AND org_id = ?2 AND removed_at IS NULL`,
      )
      .bind(member.id, member.orgId, email, role, by),
  ]);
  const [row] = results[1]?.results ?? [];
  return row === undefined ? whyNotUpdated(results.at(-1)?.results[0], email) : success(row);
}

function whyNotUpdated(check: UpdateCheck | undefined, email: string | null): Refusal {
  if (check === undefined) return noSuchMember();
  if (check.may !== 1) return mayNot();
  return check.isEmailTaken === 1 && email !== null ? emailTaken(email) : lastOwner("role");
}

type UpdateCheck = { readonly isEmailTaken: 0 | 1; readonly may: 0 | 1 };

/** A member that is out: the keys whose registers are to be told, and who it was. */
export type RemovedMember = {
  readonly keys: readonly EndedKey[];
  readonly personId: string | null;
  /** The person's, which their issuer confirms; null: none. */
  readonly email: string | null;
};
type RemovedRow = EndedKey & {
  readonly removedAt: number | null;
  readonly personId: string | null;
  readonly email: string | null;
  readonly may: 0 | 1;
};

/**
 * Removes a member, revokes its live keys and ends the invitations that it gave, in one batch, and answers with those keys,
 * so that their registers can be told; again: the same answer. A key that was revoked before is not among them: its
 * register was told before the book was. Everybody may leave. Refusals: `not_found`, `role_required`, `conflict` with
 * code `last_owner`.
 */
export async function removeMember(
  db: D1Database,
  member: MemberName,
  { actor, nowMs: now, memberId: by = null }: MemberChangeActor,
): Promise<Result<RemovedMember>> {
  const may = `(?3 = ?1 OR ${mayAct("?3", "members.role <> 'owner'")})`;
  const [, , , , , ended, found] = await db.batch<RemovedRow>([
    db
      .prepare(
        `UPDATE members SET removed_at = ?4
         WHERE id = ?1 AND org_id = ?2 AND removed_at IS NULL AND ${may} AND ${OWNER_REMAINS}`,
      )
      .bind(member.id, member.orgId, by, now),
    eventIfChanged(db, {
      id: derivedEventId("member.removed", member.id),
      orgId: member.orgId,
      type: "member.removed",
      actor,
      subject: member.id,
      data: {},
      createdAt: now,
    }),
    ...invitationsEnded(db, member, now),
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
  if (row.removedAt === null) return row.may === 1 ? lastOwner(null) : mayNot();
  return success({ keys: ended?.results ?? [], personId: row.personId, email: row.email });
}

/**
 * For a batch, after a member was changed or removed: the open invitations that it gave and may not give any more end,
 * with an event each.
 */
function invitationsEnded(
  db: D1Database,
  member: MemberName,
  nowMs: number,
): readonly D1PreparedStatement[] {
  const ends = `invited_by = ?1 AND accepted_at IS NULL AND ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM members AS inviter WHERE inviter.id = ?1 AND inviter.removed_at IS NULL
      AND (inviter.role = 'owner' OR (inviter.role = 'admin' AND invitations.role <> 'owner')))`;
  return [
    db
      .prepare(
        `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
         SELECT 'evt_' || substr(id, 5), org_id, 'invitation.ended', 'system', NULL, id, '{}', ?2
         FROM invitations WHERE ${ends} ON CONFLICT (id) DO NOTHING`,
      )
      .bind(member.id, nowMs),
    db.prepare(`UPDATE invitations SET ended_at = ?2 WHERE ${ends}`).bind(member.id, nowMs),
  ];
}

function mayNot(): Refusal {
  return refuse({ kind: "role_required", roles: ["owner", "admin"] });
}

function noSuchMember(): Refusal {
  return refuse({ kind: "not_found", message: "No such member." });
}

function emailTaken(email: string): Refusal {
  const message = `'${email}' is a member of this organization already.`;
  return refuse({ kind: "conflict", message, param: "email" });
}

function lastOwner(param: "role" | null): Refusal {
  const message = "This member is the organization's last owner; make another member owner first.";
  return refuse({ kind: "conflict", message, param, code: "last_owner" });
}
