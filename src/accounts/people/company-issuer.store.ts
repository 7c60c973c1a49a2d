import type { Actor, ChangeContext } from "../../shared/event.ts";
import { insertOrganizationEvent } from "../../shared/events.store.ts";
import type { Person } from "./person.ts";
import type { Identity } from "./person.ts";

/** An organization's identity provider. Times are Unix ms. */
export type CompanyIssuer = {
  readonly orgId: string;
  readonly id: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly createdAt: number;
  /** Time of an owner's first login with this issuer. Null for a draft. */
  readonly triedAt: number | null;
  /** Time from which members must log in with the issuer, or null. */
  readonly requiredAt: number | null;
};

const ISSUER_COLUMNS = `company_issuers.org_id AS orgId, company_issuers.id, issuer, client_id AS clientId,
  client_secret AS clientSecret, company_issuers.created_at AS createdAt, tried_at AS triedAt, required_at AS requiredAt`;

export function findCompanyIssuer(db: D1Database, orgId: string): Promise<CompanyIssuer | null> {
  return db
    .prepare(`SELECT ${ISSUER_COLUMNS} FROM company_issuers WHERE org_id = ?`)
    .bind(orgId)
    .first<CompanyIssuer>();
}

/**
 * Returns the issuer for a verified domain. Ignores slugs, because anyone can choose another
 * company's name. With `needsApproval`, an operator must have approved the domain.
 */
export function findIssuerByDomain(
  db: D1Database,
  typedDomain: string,
  needsApproval: boolean,
): Promise<CompanyIssuer | null> {
  return db
    .prepare(
      `SELECT ${ISSUER_COLUMNS} FROM company_issuers
       JOIN company_domains ON company_domains.org_id = company_issuers.org_id
       WHERE tried_at IS NOT NULL AND proven_at IS NOT NULL AND (?2 = 0 OR approved_at IS NOT NULL)
         AND domain = ?1`,
    )
    .bind(typedDomain, needsApproval ? 1 : 0)
    .first<CompanyIssuer>();
}

/** Stores an issuer as a draft. Returns false without a verified domain. */
export async function storeIssuerDraft(
  db: D1Database,
  row: Omit<CompanyIssuer, "triedAt" | "requiredAt">,
  actor: Actor,
): Promise<boolean> {
  const { orgId, id, issuer, clientId, clientSecret, createdAt } = row;
  const [inserted] = await db.batch<{ id: string }>([
    db
      .prepare(
        `INSERT OR REPLACE INTO company_issuers (org_id, id, issuer, client_id, client_secret, created_at)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM company_domains
           WHERE org_id = ?1 AND proven_at IS NOT NULL) RETURNING id`,
      )
      .bind(orgId, id, issuer, clientId, clientSecret, createdAt),
    insertOrganizationEvent(db, orgId, { company_issuer: issuer }, { actor, now: createdAt }),
  ]);
  return (inserted?.results.length ?? 0) > 0;
}

/** Records an owner's first login with a new issuer. */
export async function markIssuerTested(
  db: D1Database,
  { orgId, id, issuer }: Pick<CompanyIssuer, "orgId" | "id" | "issuer">,
  by: ChangeContext & { readonly memberId: string },
): Promise<void> {
  await db.batch([
    db
      .prepare(
        `UPDATE company_issuers SET tried_at = ?3 WHERE org_id = ?1 AND id = ?2 AND tried_at IS NULL
           AND EXISTS (SELECT 1 FROM members WHERE id = ?4 AND org_id = ?1 AND role = 'owner' AND removed_at IS NULL)`,
      )
      .bind(orgId, id, by.now, by.memberId),
    insertOrganizationEvent(db, orgId, { company_issuer: issuer, required: false }, by),
  ]);
}

export async function setIssuerRequired(
  db: D1Database,
  orgId: string,
  isRequired: boolean,
  change: ChangeContext,
): Promise<boolean> {
  const issuer = await findCompanyIssuer(db, orgId);
  if (issuer === null) return false;
  const [changed] = await db.batch<{ id: string }>([
    db
      .prepare(
        `UPDATE company_issuers SET required_at = ?3 WHERE org_id = ?1 AND id = ?2 AND tried_at IS NOT NULL
         RETURNING id`,
      )
      .bind(orgId, issuer.id, isRequired ? change.now : null),
    insertOrganizationEvent(
      db,
      orgId,
      { company_issuer: issuer.issuer, required: isRequired },
      change,
    ),
  ]);
  return (changed?.results.length ?? 0) > 0;
}

export async function removeIssuer(
  db: D1Database,
  orgId: string,
  change: ChangeContext,
): Promise<boolean> {
  const [removed] = await db.batch<{ id: string }>([
    db.prepare("DELETE FROM company_issuers WHERE org_id = ? RETURNING id").bind(orgId),
    insertOrganizationEvent(db, orgId, { company_issuer: null }, change),
  ]);
  return (removed?.results.length ?? 0) > 0;
}

export async function findPersonByIdentity(
  db: D1Database,
  { realm, issuer, subject }: Identity,
  nowMs: number,
): Promise<Person | null> {
  const [, found] = await db.batch<Person>([
    db
      .prepare(
        "UPDATE identities SET used_at = ?4 WHERE realm = ?1 AND issuer = ?2 AND subject = ?3",
      )
      .bind(realm, issuer, subject, nowMs),
    db
      .prepare(
        `SELECT people.id, name, email, is_email_proven AS isEmailProven, sessions_from AS sessionsFrom
         FROM identities JOIN people ON people.id = person_id
         WHERE realm = ?1 AND issuer = ?2 AND subject = ?3 AND erased_at IS NULL`,
      )
      .bind(realm, issuer, subject),
  ]);
  return found?.results[0] ?? null;
}

export async function listIssuersWithOutdatedSecrets(
  db: D1Database,
  secretId: string,
): Promise<readonly CompanyIssuer[]> {
  const { results } = await db
    .prepare(
      `SELECT ${ISSUER_COLUMNS} FROM company_issuers WHERE instr(client_secret, ?1 || '.') <> 1 LIMIT 100`,
    )
    .bind(secretId)
    .all<CompanyIssuer>();
  return results;
}

export async function storeReencryptedSecret(
  db: D1Database,
  { id, clientSecret }: Pick<CompanyIssuer, "id" | "clientSecret">,
  reencrypted: string,
): Promise<void> {
  await db
    .prepare("UPDATE company_issuers SET client_secret = ?3 WHERE id = ?1 AND client_secret = ?2")
    .bind(id, clientSecret, reencrypted)
    .run();
}
