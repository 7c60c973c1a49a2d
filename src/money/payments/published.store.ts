import type { PurchaseRecord } from "../../shared/contracts/payments.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";

/** Stores an organization's purchases in D1, unless D1 has newer records. */
export async function putPurchases(
  db: D1Database,
  orgId: string,
  purchases: readonly PurchaseRecord[],
): Promise<void> {
  const put = db.prepare(
    `INSERT INTO purchases
       (id, org_id, state, returned_micro, session_id, invoice_id, payment_id, record, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
       state = excluded.state, returned_micro = excluded.returned_micro,
       session_id = excluded.session_id, invoice_id = excluded.invoice_id,
       payment_id = excluded.payment_id, record = excluded.record, updated_at = excluded.updated_at
     WHERE excluded.updated_at >= purchases.updated_at`,
  );
  await db.batch(
    purchases.map((one) => {
      const { id, state, returnedMicro, sessionId, invoiceId, paymentId, updatedAt } = one;
      const record = JSON.stringify({ ...one, url: null }); // anyone with the URL can pay
      const named = [sessionId, invoiceId, paymentId];
      return put.bind(id, orgId, state, returnedMicro, ...named, record, updatedAt);
    }),
  );
}

export type PurchaseTotals = {
  readonly purchases: number;
  readonly updatedAt: number;
  readonly returnedMicro: number;
};

export async function purchaseTotals(db: D1Database, orgId: string): Promise<PurchaseTotals> {
  const totals = await db
    .prepare(
      `SELECT count(*) AS purchases, coalesce(sum(updated_at), 0) AS updatedAt,
         coalesce(sum(returned_micro), 0) AS returnedMicro FROM purchases WHERE org_id = ?`,
    )
    .bind(orgId)
    .first<PurchaseTotals>();
  return totals ?? { purchases: 0, updatedAt: 0, returnedMicro: 0 };
}

type PublishedQuery = {
  readonly orgId: string | null;
  /** A state, or `refunded`. */
  readonly state: string | null;
  /** Selects purchases with IDs below this one and from `fromId` on. */
  readonly beforeId: string;
  readonly fromId: string;
  readonly limit: number;
};
type PublishedPurchase = {
  readonly purchase: PurchaseRecord;
  readonly organization: {
    readonly id: string;
    readonly slug: string | null;
    readonly name: string | null;
  };
};

/** Returns up to `limit` + 1 purchases, newest first. */
export async function listPublished(
  db: D1Database,
  { orgId, state, beforeId, fromId, limit }: PublishedQuery,
): Promise<readonly PublishedPurchase[]> {
  const conditions = [
    "p.id < ?1 AND p.id >= ?2 AND ?3 = ?3 AND ?4 = ?4",
    ...(orgId === null ? [] : ["p.org_id = ?3"]),
    ...(state === null ? [] : [state === REFUNDED ? "p.returned_micro > 0" : "p.state = ?4"]),
  ];
  const { results } = await db
    .prepare(
      `SELECT p.record AS record, p.org_id AS id, o.slug AS slug, o.name AS name
       FROM purchases AS p LEFT JOIN organizations AS o ON o.id = p.org_id
       WHERE ${conditions.join(" AND ")} ORDER BY p.id DESC LIMIT ?5`,
    )
    .bind(beforeId, fromId, orgId ?? "", state ?? "", limit + 1)
    .all<{ record: string; id: string; slug: string | null; name: string | null }>();
  return results.map(({ record, ...organization }) => {
    return { purchase: parseStoredJson<PurchaseRecord>(record), organization };
  });
}

export const REFUNDED = "refunded";
