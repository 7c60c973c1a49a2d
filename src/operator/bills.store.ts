import { HOUR_MS } from "../shared/clock.ts";

/** Maximum ms by which an organization's stored last use is too early. */
export const USED_DELAY_MS = HOUR_MS;

/** A provider's bill, as an operator entered it. */
export type Bill = {
  readonly provider: string;
  readonly day: string;
  readonly billedMicro: number;
};

/** Stores bills. A bill replaces an earlier one of its provider and day. */
export async function storeBills(
  db: D1Database,
  bills: readonly Bill[],
  by: { readonly name: string; readonly nowMs: number },
): Promise<void> {
  const statement = db.prepare(
    `INSERT INTO provider_bills (provider, day, billed_micro, imported_by, imported_at)
     VALUES (?, ?, ?, ?, ?) ON CONFLICT (provider, day) DO UPDATE SET
     billed_micro = excluded.billed_micro, imported_by = excluded.imported_by, imported_at = excluded.imported_at`,
  );
  await db.batch(
    bills.map(({ provider, day, billedMicro }) =>
      statement.bind(provider, day, billedMicro, by.name, by.nowMs),
    ),
  );
}

export async function readProviderBills(
  db: D1Database,
  days: { readonly from: string; readonly to: string },
): Promise<readonly Bill[]> {
  const { results } = await db
    .prepare(
      `SELECT provider, day, billed_micro AS billedMicro FROM provider_bills
       WHERE day BETWEEN ? AND ? ORDER BY day, provider`,
    )
    .bind(days.from, days.to)
    .all<Bill>();
  return results;
}

export async function listOrganizationsActiveSince(
  db: D1Database,
  sinceMs: number,
  limit: number,
): Promise<readonly { readonly id: string; readonly slug: string }[]> {
  const { results } = await db
    .prepare(
      "SELECT id, slug FROM organizations WHERE used_at >= ? ORDER BY used_at DESC, id LIMIT ?",
    )
    .bind(sinceMs, limit)
    .all<{ id: string; slug: string }>();
  return results;
}

export async function countOrganizationsActiveSince(
  db: D1Database,
  sinceMs: number,
): Promise<number> {
  const count = await db
    .prepare("SELECT count(*) AS active FROM organizations WHERE used_at >= ?")
    .bind(sinceMs)
    .first<number>("active");
  return count ?? 0;
}
