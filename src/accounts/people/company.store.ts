import { SYSTEM_ACTOR } from "../../shared/event.ts";
import type { ChangeContext } from "../../shared/event.ts";
import { insertEventOnce, insertOrganizationEvent } from "../../shared/events.store.ts";
import { createInsertConsoleKeyStatement } from "../keys/console-key.store.ts";
import type { ConsoleKey } from "../keys/console-key.store.ts";
import { emailAddressOf } from "./person.ts";
import type { Person } from "./person.ts";
import { DAY_MS } from "../../shared/clock.ts";
import { createLinkMemberStatement } from "./people.store.ts";

/** A domain of an organization. Times are Unix ms. */
export type CompanyDomain = {
  readonly domain: string;
  readonly orgId: string;
  readonly nonce: string;
  readonly tenant: string | null;
  readonly createdAt: number;
  readonly provenAt: number | null;
  readonly approvedAt: number | null;
  readonly failedSince: number | null;
};

const DOMAIN_COLUMNS = `domain, org_id AS orgId, nonce, tenant, created_at AS createdAt, proven_at AS provenAt,
  approved_at AS approvedAt, failed_since AS failedSince`;
const DOMAINS_MAX = 10;
/**
 * Maximum ms that a domain's TXT record can be missing. Afterwards, people can't join by the
 * domain, and other organizations can verify it.
 */
const RECORD_MISSING_MAX_MS = 7 * DAY_MS;

/**
 * Returns the organization's row for a domain, created if needed, or null if the organization has
 * ten domains.
 */
export async function insertDomain(
  db: D1Database,
  {
    domain,
    orgId,
    nonce,
    tenant,
    createdAt,
  }: Omit<CompanyDomain, "provenAt" | "approvedAt" | "failedSince">,
): Promise<CompanyDomain | null> {
  const [, found] = await db.batch<CompanyDomain>([
    db
      .prepare(
        `INSERT INTO company_domains (domain, org_id, nonce, tenant, created_at) SELECT ?1, ?2, ?3, ?4, ?5
         WHERE (SELECT count(*) FROM company_domains WHERE org_id = ?2) < ${DOMAINS_MAX}
         ON CONFLICT (domain, org_id) DO NOTHING`,
      )
      .bind(domain, orgId, nonce, tenant, createdAt),
    db
      .prepare(`SELECT ${DOMAIN_COLUMNS} FROM company_domains WHERE domain = ? AND org_id = ?`)
      .bind(domain, orgId),
  ]);
  return found?.results[0] ?? null;
}

export async function listDomains(
  db: D1Database,
  orgId: string,
): Promise<readonly CompanyDomain[]> {
  const { results } = await db
    .prepare(
      `SELECT ${DOMAIN_COLUMNS} FROM company_domains WHERE org_id = ? ORDER BY domain LIMIT ${DOMAINS_MAX}`,
    )
    .bind(orgId)
    .all<CompanyDomain>();
  return results;
}

/**
 * Marks a domain as verified, unless another organization verified it and that organization's TXT
 * record was found in the last week.
 */
export async function markDomainVerified(
  db: D1Database,
  at: Pick<CompanyDomain, "domain" | "orgId">,
  change: ChangeContext,
): Promise<"proven" | "taken"> {
  const { domain, orgId } = at;
  const [, proven] = await db.batch<{ domain: string }>([
    db
      .prepare(
        `UPDATE company_domains SET proven_at = NULL, approved_at = NULL
         WHERE domain = ?1 AND org_id <> ?2 AND failed_since < ?3`,
      )
      .bind(domain, orgId, change.now - RECORD_MISSING_MAX_MS),
    db
      .prepare(
        `UPDATE company_domains SET proven_at = coalesce(proven_at, ?3), checked_at = ?3, failed_since = NULL
         WHERE domain = ?1 AND org_id = ?2 AND NOT EXISTS (SELECT 1 FROM company_domains AS other
           WHERE other.domain = ?1 AND other.org_id <> ?2 AND other.proven_at IS NOT NULL) RETURNING domain`,
      )
      .bind(domain, orgId, change.now),
    insertOrganizationEvent(db, at.orgId, { company_domain: at.domain, proven: true }, change),
  ]);
  return (proven?.results.length ?? 0) > 0 ? "proven" : "taken";
}

export async function approveDomain(
  db: D1Database,
  at: Pick<CompanyDomain, "domain" | "orgId">,
  change: ChangeContext,
): Promise<boolean> {
  const [approved] = await db.batch<{ domain: string }>([
    db
      .prepare(
        `UPDATE company_domains SET approved_at = coalesce(approved_at, ?3)
         WHERE domain = ?1 AND org_id = ?2 AND proven_at IS NOT NULL RETURNING domain`,
      )
      .bind(at.domain, at.orgId, change.now),
    insertOrganizationEvent(db, at.orgId, { company_domain: at.domain, approved: true }, change),
  ]);
  return (approved?.results.length ?? 0) > 0;
}

export async function removeDomain(
  db: D1Database,
  at: Pick<CompanyDomain, "domain" | "orgId">,
  change: ChangeContext,
): Promise<boolean> {
  const [removed] = await db.batch<{ domain: string }>([
    db
      .prepare("DELETE FROM company_domains WHERE domain = ? AND org_id = ? RETURNING domain")
      .bind(at.domain, at.orgId),
    insertOrganizationEvent(db, at.orgId, { company_domain: at.domain, removed: true }, change),
  ]);
  return (removed?.results.length ?? 0) > 0;
}

/**
 * Returns an SQL condition: people can join by a domain at the time `now`. `approved` is 1 if
 * operators must approve domains.
 */
const joinableSql = (now: string, approved: string): string => `proven_at IS NOT NULL
  AND (${approved} = 0 OR approved_at IS NOT NULL) AND (failed_since IS NULL OR failed_since > ${now} - ${RECORD_MISSING_MAX_MS})`;

export function findJoinableDomain(
  db: D1Database,
  domain: string,
  { nowMs, needsApproval }: { readonly nowMs: number; readonly needsApproval: boolean },
): Promise<CompanyDomain | null> {
  return db
    .prepare(
      `SELECT ${DOMAIN_COLUMNS} FROM company_domains WHERE domain = ?1 AND ${joinableSql("?2", "?3")}`,
    )
    .bind(domain, nowMs, needsApproval ? 1 : 0)
    .first<CompanyDomain>();
}

/**
 * Adds a member by their company domain. Returns false if the domain doesn't allow joining, the
 * organization isn't an active team, the person was ever a member, or the address is taken.
 */
export async function insertMemberByDomain(
  db: D1Database,
  { domain, orgId }: Pick<CompanyDomain, "domain" | "orgId">,
  newMember: {
    readonly person: Person;
    readonly memberId: string;
    readonly key: ConsoleKey;
    readonly nowMs: number;
    readonly needsApproval: boolean;
  },
): Promise<boolean> {
  const { person, memberId, key, nowMs, needsApproval } = newMember;
  const [joined] = await db.batch<{ id: string }>([
    db
      .prepare(
        `INSERT INTO members (id, org_id, email, role, created_at) SELECT ?1, ?2, ?3, 'member', ?4
         FROM company_domains WHERE domain = ?5 AND org_id = ?2 AND ${joinableSql("?4", "?6")}
           AND EXISTS (SELECT 1 FROM organizations WHERE id = ?2 AND status = 'active' AND is_personal = 0)
           AND NOT EXISTS (SELECT 1 FROM member_people WHERE org_id = ?2 AND person_id = ?7)
           AND NOT EXISTS (SELECT 1 FROM members AS other WHERE other.org_id = ?2 AND other.removed_at IS NULL
             AND lower(other.email) = lower(?3)) RETURNING id`,
      )
      .bind(
        memberId,
        orgId,
        emailAddressOf(person),
        nowMs,
        domain,
        needsApproval ? 1 : 0,
        person.id,
      ),
    insertEventOnce(
      db,
      {
        type: "member.created",
        orgId,
        subject: memberId,
        data: { role: "member", company_domain: domain },
      },
      { actor: { kind: "member", id: memberId }, now: nowMs },
    ),
    createLinkMemberStatement(db, { memberId, personId: person.id, cameBy: "company" }, nowMs),
    createInsertConsoleKeyStatement(db, key, memberId, nowMs),
  ]);
  return (joined?.results.length ?? 0) > 0;
}

export async function listDomainsToCheck(
  db: D1Database,
  nowMs: number,
): Promise<readonly CompanyDomain[]> {
  const { results } = await db
    .prepare(
      `SELECT ${DOMAIN_COLUMNS} FROM company_domains WHERE proven_at IS NOT NULL AND coalesce(checked_at, 0) < ?
       ORDER BY checked_at LIMIT 100`,
    )
    .bind(nowMs - DAY_MS)
    .all<CompanyDomain>();
  return results;
}

/**
 * Records a check of a domain's TXT record. If the record has just gone missing, adds an event and
 * returns true.
 */
export async function recordDomainCheck(
  db: D1Database,
  at: Pick<CompanyDomain, "domain" | "orgId">,
  { isThere, nowMs }: { readonly isThere: boolean; readonly nowMs: number },
): Promise<boolean> {
  const { domain, orgId } = at;
  const [lost] = await db.batch<{ domain: string }>([
    db
      .prepare(
        `UPDATE company_domains SET failed_since = ?3
         WHERE domain = ?1 AND org_id = ?2 AND ?4 = 0 AND failed_since IS NULL AND proven_at IS NOT NULL RETURNING domain`,
      )
      .bind(domain, orgId, nowMs, isThere ? 1 : 0),
    insertOrganizationEvent(
      db,
      orgId,
      { company_domain: domain, lost: true },
      { actor: SYSTEM_ACTOR, now: nowMs },
    ),
    db
      .prepare(
        `UPDATE company_domains SET checked_at = ?3, failed_since = iif(?4, NULL, failed_since)
         WHERE domain = ?1 AND org_id = ?2`,
      )
      .bind(domain, orgId, nowMs, isThere ? 1 : 0),
  ]);
  return (lost?.results.length ?? 0) > 0;
}
