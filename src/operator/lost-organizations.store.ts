/** A wallet whose organization is missing, for example after D1 was restored. */
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
