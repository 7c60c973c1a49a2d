import type { PersonSession } from "../../shared/contracts/console-session.ts";
import type { Identity, Membership, Person } from "./person.ts";

const PERSON_COLUMNS = `id, name, email, is_email_proven AS isEmailProven, sessions_from AS sessionsFrom`;
/** SQL condition that an organization requires its company login. */
export const REQUIRES_COMPANY_LOGIN = `EXISTS (SELECT 1 FROM company_issuers
  WHERE company_issuers.org_id = organizations.id AND required_at IS NOT NULL)`;
const MEMBERSHIP_COLUMNS = `members.id AS memberId, members.role, organizations.id AS orgId, organizations.name,
  organizations.slug, organizations.status, organizations.is_personal AS isPersonal,
  ${REQUIRES_COMPANY_LOGIN} AS isCompanys`;
const MEMBERSHIP_TABLES = `FROM member_people JOIN members ON members.id = member_people.member_id
  JOIN organizations ON organizations.id = member_people.org_id`;

/** A person's latest name and address from the issuer. */
export type IssuerProfile = Pick<Person, "name" | "email" | "isEmailProven">;

/** Finds a person by identity and updates their name and address. */
export async function findAndRefreshPerson(
  db: D1Database,
  { realm, issuer, subject }: Identity,
  profile: IssuerProfile,
  nowMs: number,
): Promise<Person | null> {
  const [found] = await db.batch<Person>([
    db
      .prepare(
        `UPDATE people SET name = ?4, email = ?5, is_email_proven = ?6
         WHERE erased_at IS NULL AND id = (SELECT person_id FROM identities
           WHERE realm = ?1 AND issuer = ?2 AND subject = ?3) RETURNING ${PERSON_COLUMNS}`,
      )
      .bind(realm, issuer, subject, profile.name, profile.email, profile.isEmailProven),
    db
      .prepare(
        "UPDATE identities SET used_at = ?4 WHERE realm = ?1 AND issuer = ?2 AND subject = ?3",
      )
      .bind(realm, issuer, subject, nowMs),
  ]);
  return found?.results[0] ?? null;
}

export function findPersonId(
  db: D1Database,
  { realm, issuer, subject }: Identity,
): Promise<string | null> {
  return db
    .prepare(
      "SELECT person_id AS id FROM identities WHERE realm = ?1 AND issuer = ?2 AND subject = ?3",
    )
    .bind(realm, issuer, subject)
    .first<string>("id");
}

export async function insertPersonIfNew(
  db: D1Database,
  person: Person,
  identity: Identity,
): Promise<boolean> {
  try {
    await db.batch([...createInsertPersonStatements(db, person, identity)]);
    return true;
  } catch (error) {
    if (isIdentityInUseError(error)) return false;
    throw error;
  }
}

export function isIdentityInUseError(error: unknown): boolean {
  return (
    error instanceof Error &&
    /UNIQUE constraint failed: (?:identities|personal_organizations)\./.test(error.message)
  );
}

export async function deletePersonWithoutMemberships(
  db: D1Database,
  personId: string,
): Promise<void> {
  const isLone = "NOT EXISTS (SELECT 1 FROM member_people WHERE person_id = ?1)";
  await db.batch([
    db.prepare(`DELETE FROM identities WHERE person_id = ?1 AND ${isLone}`).bind(personId),
    db.prepare(`DELETE FROM people WHERE id = ?1 AND ${isLone}`).bind(personId),
  ]);
}

/**
 * Returns the statements that insert a person and their identity. They fail if the identity is
 * taken.
 */
export function createInsertPersonStatements(
  db: D1Database,
  person: Person,
  identity: Identity,
): readonly D1PreparedStatement[] {
  const { id, name, email, isEmailProven, sessionsFrom } = person;
  return [
    db
      .prepare(
        `INSERT INTO people (id, name, email, is_email_proven, sessions_from, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?5)`,
      )
      .bind(id, name, email, isEmailProven, sessionsFrom),
    insertIdentity(db, identity, id, sessionsFrom),
  ];
}

function insertIdentity(
  db: D1Database,
  { realm, issuer, subject }: Identity,
  personId: string,
  nowMs: number,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO identities (realm, issuer, subject, person_id, created_at, used_at)
       VALUES (?1, ?2, ?3, ?4, ?5, ?5)`,
    )
    .bind(realm, issuer, subject, personId, nowMs);
}

/** Returns false if the identity belongs to another person. */
export async function linkIdentity(
  db: D1Database,
  { realm, issuer, subject }: Identity,
  personId: string,
  nowMs: number,
): Promise<boolean> {
  const [, found] = await db.batch<{ personId: string }>([
    db
      .prepare(
        `INSERT INTO identities (realm, issuer, subject, person_id, created_at, used_at)
         SELECT ?1, ?2, ?3, id, ?5, ?5 FROM people WHERE id = ?4 AND erased_at IS NULL
         ON CONFLICT DO NOTHING`,
      )
      .bind(realm, issuer, subject, personId, nowMs),
    db
      .prepare(
        `SELECT person_id AS personId FROM identities
         WHERE realm = ?1 AND issuer = ?2 AND subject = ?3`,
      )
      .bind(realm, issuer, subject),
  ]);
  return found?.results[0]?.personId === personId;
}

/**
 * Unlinks an identity. Returns false if it is the person's last one or belongs to another person.
 */
export async function unlinkIdentity(
  db: D1Database,
  { issuer, subject }: Pick<Identity, "issuer" | "subject">,
  personId: string,
): Promise<boolean> {
  const row = await db
    .prepare(
      `DELETE FROM identities WHERE person_id = ?1 AND issuer = ?2 AND subject = ?3
         AND (realm <> '' OR (SELECT count(*) FROM identities WHERE person_id = ?1 AND realm = '') > 1)
       RETURNING person_id`,
    )
    .bind(personId, issuer, subject)
    .first();
  return row !== null;
}

type OwnIdentity = Identity & { readonly createdAt: number; readonly usedAt: number };

export async function listIdentities(
  db: D1Database,
  personId: string,
): Promise<readonly OwnIdentity[]> {
  const { results } = await db
    .prepare(
      `SELECT realm, issuer, subject, created_at AS createdAt, used_at AS usedAt FROM identities
       WHERE person_id = ? ORDER BY created_at LIMIT 100`,
    )
    .bind(personId)
    .all<OwnIdentity>();
  return results;
}

export function createLinkMemberStatement(
  db: D1Database,
  of: { readonly memberId: string; readonly personId: string; readonly cameBy: string },
  nowMs: number,
): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO member_people (member_id, org_id, person_id, came_by, seen_at, created_at)
       SELECT id, org_id, ?2, ?3, ?4, ?4 FROM members WHERE id = ?1`,
    )
    .bind(of.memberId, of.personId, of.cameBy, nowMs);
}

const LISTED_MEMBERSHIPS_MAX = 200;

export async function listMemberships(
  db: D1Database,
  personId: string,
): Promise<readonly Membership[]> {
  const { results } = await db
    .prepare(
      `SELECT ${MEMBERSHIP_COLUMNS} ${MEMBERSHIP_TABLES} WHERE person_id = ? AND removed_at IS NULL
       ORDER BY member_people.seen_at DESC, members.id LIMIT ${LISTED_MEMBERSHIPS_MAX}`,
    )
    .bind(personId)
    .all<Membership>();
  return results;
}

export async function recordMemberActivity(
  db: D1Database,
  memberId: string,
  nowMs: number,
): Promise<void> {
  await db
    .prepare("UPDATE member_people SET seen_at = ? WHERE member_id = ?")
    .bind(nowMs, memberId)
    .run();
}

/** A person and their current membership. */
export type ActingPerson = {
  readonly person: Person;
  readonly as: (Membership & { readonly keyHash: string; readonly email: string }) | null;
};

type ActingRow = Person &
  Omit<Membership, "memberId" | "name"> & {
    readonly memberId: string | null;
    readonly memberEmail: string;
    readonly orgName: string;
    readonly hasRealm: 0 | 1;
    readonly keyHash: string | null;
  };

/** Returns a session's person and their current membership. */
export async function findActingPerson(
  db: D1Database,
  session: Pick<PersonSession, "personId" | "memberId" | "openedAt" | "realm" | "connection">,
): Promise<ActingPerson | null> {
  const row = await db
    .prepare(
      `SELECT people.id, people.name, people.email, is_email_proven AS isEmailProven, sessions_from AS sessionsFrom,
         members.id AS memberId, members.role, members.email AS memberEmail, organizations.id AS orgId,
         organizations.name AS orgName, slug, status, is_personal AS isPersonal, keys.hash AS keyHash,
         ${REQUIRES_COMPANY_LOGIN} AS isCompanys, EXISTS (SELECT 1 FROM company_issuers WHERE company_issuers.id = ?4 AND org_id = members.org_id) AS hasRealm
       FROM people
       LEFT JOIN member_people ON member_people.member_id = ?2 AND member_people.person_id = people.id
       LEFT JOIN members ON members.id = member_people.member_id AND members.removed_at IS NULL
       LEFT JOIN organizations ON organizations.id = members.org_id
       LEFT JOIN keys ON keys.member_id = members.id AND is_console = 1 AND keys.revoked_at IS NULL
       WHERE people.id = ?1 AND erased_at IS NULL AND sessions_from <= ?3`,
    )
    .bind(session.personId, session.memberId, session.openedAt, session.connection ?? null)
    .first<ActingRow>();
  if (row === null || !canActIn(row, session.realm)) return null;
  const { id, name, email, isEmailProven, sessionsFrom } = row;
  const person = { id, name, email, isEmailProven, sessionsFrom };
  if (session.memberId === null) return { person, as: null };
  if (row.memberId === null || row.keyHash === null) return null;
  const { memberId, role, orgId, slug, status, isPersonal, isCompanys, keyHash } = row;
  const membership = { memberId, role, orgId, slug, status, isPersonal, isCompanys };
  return { person, as: { ...membership, name: row.orgName, keyHash, email: row.memberEmail } };
}

/**
 * Reports whether a session can act in the organization. A session of a company's issuer is limited
 * to that company. A company can reject other sessions.
 */
function canActIn(
  row: Pick<ActingRow, "orgId" | "isCompanys" | "hasRealm">,
  realm: string | undefined,
): boolean {
  if (realm === undefined) return row.isCompanys === 0;
  return row.orgId === realm && row.hasRealm === 1;
}

export async function endSessionsOfPerson(
  db: D1Database,
  personId: string,
  nowMs: number,
): Promise<void> {
  await db
    .prepare("UPDATE people SET sessions_from = max(sessions_from, ?) WHERE id = ?")
    .bind(nowMs, personId)
    .run();
}
