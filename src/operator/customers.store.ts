import { DAY_MS } from "../shared/clock.ts";
import type { StoredOrganization } from "../accounts/organizations/organization.ts";
import { ORGANIZATION_COLUMNS } from "../accounts/organizations/organizations.store.ts";
import { periodOf } from "../shared/period.ts";

export type CustomerOrganization = StoredOrganization & {
  readonly ownerEmail: string | null;
  readonly balanceMicro: number | null;
  readonly spend30dMicro: number;
  /** Days that the balance lasts at the spend of the last seven full days. */
  readonly daysLeft: number | null;
  readonly lastUsedAt: number | null;
};

const BALANCE_SQL = "(SELECT credits_micro FROM balances WHERE org_id = organizations.id)";
const LAST_USED_SQL = "(SELECT max(last_used_at) FROM keys WHERE org_id = organizations.id)";
const dayAt = (ms: number): string => periodOf(ms).day;

const spendSql = (from: string, before = "'9999'"): string =>
  `(SELECT coalesce(sum(cost_micro), 0) FROM daily_usage
    WHERE org_id = organizations.id AND day >= ${from} AND day < ${before})`;
/** SQL expression for a week's spend. ?2 is today, and ?3 seven days before. */
const WEEK_SPEND_SQL = spendSql("?3", "?2");
const RUNWAY_SQL = `iif(${WEEK_SPEND_SQL} > 0, ${BALANCE_SQL} / ((${WEEK_SPEND_SQL} + 6) / 7), NULL)`;
const MONTH_SPEND_SQL = spendSql("?6");

export const CUSTOMER_SORT_FIELDS = [
  "created",
  "name",
  "balance",
  "spend",
  "runway",
  "used",
] as const;
type Sort = (typeof CUSTOMER_SORT_FIELDS)[number];
const SORTS: Readonly<Record<Sort, readonly [by: string, way: "asc" | "desc"]>> = {
  created: ["created_at", "asc"],
  name: ["lower(name)", "asc"],
  balance: [BALANCE_SQL, "asc"],
  spend: [MONTH_SPEND_SQL, "desc"],
  runway: [RUNWAY_SQL, "asc"],
  used: [LAST_USED_SQL, "desc"],
};
export const CUSTOMER_SORT_ORDERS = ["asc", "desc"] as const;

/**
 * SQL condition: ?1 is null, or matches an organization's name, slug or ID, or one of its keys,
 * members or domains.
 */
const MATCHES_QUERY_SQL = `(?1 IS NULL OR id = ?1 OR instr(slug, lower(?1)) > 0 OR instr(lower(name), lower(?1)) > 0
  OR EXISTS (SELECT 1 FROM members WHERE org_id = organizations.id AND removed_at IS NULL
    AND instr(lower(email), lower(?1)) > 0)
  OR id IN (SELECT org_id FROM keys WHERE keys.id = ?1 OR prefix = ?1)
  OR id IN (SELECT org_id FROM members WHERE members.id = ?1)
  OR id IN (SELECT org_id FROM company_domains WHERE domain = lower(?1)))`;

type CustomersQuery = {
  readonly q: string | null;
  readonly status: StoredOrganization["status"] | null;
  readonly endsWithinDays: number | null;
  readonly sort: Sort;
  readonly order: (typeof CUSTOMER_SORT_ORDERS)[number] | null;
  readonly limit: number;
  readonly offset: number;
};

/** Returns a page of sorted customers, and the total count. Unknown values come last. */
export async function listCustomers(
  db: D1Database,
  { q, status, endsWithinDays, sort, order, limit, offset }: CustomersQuery,
  nowMs: number,
): Promise<{ readonly rows: readonly CustomerOrganization[]; readonly total: number }> {
  const where = `${MATCHES_QUERY_SQL} AND (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR ${RUNWAY_SQL} <= ?5)`;
  const requested = [q, dayAt(nowMs), dayAt(nowMs - 7 * DAY_MS), status, endsWithinDays];
  const [by, way] = SORTS[sort];
  const [rows, counts] = await db.batch<CustomerOrganization & { readonly total: number }>([
    db
      .prepare(
        `SELECT ${ORGANIZATION_COLUMNS}, (SELECT email FROM members WHERE org_id = organizations.id AND role = 'owner'
            AND removed_at IS NULL ORDER BY created_at, id LIMIT 1) AS ownerEmail,
          ${BALANCE_SQL} AS balanceMicro, ${MONTH_SPEND_SQL} AS spend30dMicro, ${RUNWAY_SQL} AS daysLeft, ${LAST_USED_SQL} AS lastUsedAt
         FROM organizations WHERE id IN (SELECT id FROM organizations WHERE ${where}
           ORDER BY ${by} IS NULL, ${by} ${order ?? way}, id LIMIT ?7 OFFSET ?8)
         ORDER BY ${by} IS NULL, ${by} ${order ?? way}, id`,
      )
      .bind(...requested, dayAt(nowMs - 29 * DAY_MS), limit, offset),
    db.prepare(`SELECT count(*) AS total FROM organizations WHERE ${where}`).bind(...requested),
  ]);
  return { rows: rows?.results ?? [], total: counts?.results[0]?.total ?? 0 };
}

/** A wallet without an organization, for example after D1 was restored. */
type LostOrganization = {
  readonly id: string;
  readonly balanceMicro: number;
  readonly updatedAt: number;
};

const LISTED_MAX = 1000;

/**
 * Returns at most 1,000 wallets without an organization. Excludes wallets without a balance, which
 * a failed `POST /orgs` can leave.
 */
export async function listLostOrganizations(db: D1Database): Promise<readonly LostOrganization[]> {
  const { results } = await db
    .prepare(
      `SELECT org_id AS id, credits_micro AS balanceMicro, updated_at AS updatedAt FROM balances
       WHERE credits_micro > 0 AND NOT EXISTS (SELECT 1 FROM organizations WHERE id = org_id)
       ORDER BY org_id LIMIT ${LISTED_MAX}`,
    )
    .all<LostOrganization>();
  return results;
}
