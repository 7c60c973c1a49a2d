/** A wallet that publishes to the database although its organization is missing, as after a restore of the database. */
export type LostOrganization = {
  readonly id: string;
  readonly balanceMicro: number;
  readonly updatedAt: number;
};

const LISTED_MAX = 1000;

/** Returns lost organizations with a balance, at most 1,000, by their ID. A failed `POST /orgs` can leave a wallet without one. */
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
