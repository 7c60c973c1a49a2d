import type { PurchaseRecord } from "../../shared/contracts/payments.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { purchaseRecordOf } from "./purchase.ts";
import type { Payment, Purchase } from "./purchase.ts";
import type { PurchaseTotals } from "./payments.store.ts";

const BATCH = 50;

/**
 * SQL for a fingerprint of a purchase and its payment. The fingerprint changes with each published
 * field.
 */
const FINGERPRINT_SQL = `json_extract(purchases.record, '$.updatedAt', '$.state', '$.tries')
  || coalesce(json_extract(payments.record, '$.isCredited', '$.backMicro'), '')`;

type Unpublished = { id: string; mark: string; record: string; payment: string | null };

type PurchaseCopy = {
  readonly put: (purchases: readonly PurchaseRecord[]) => Promise<void>;
  readonly totals: () => Promise<PurchaseTotals>;
};

/**
 * Writes new and changed purchases to D1. With `mustCompareTotals`, rewrites all purchases if D1
 * lacks changes, as after a restore or a late write.
 */
export async function publishPurchases(
  sql: SqlStorage,
  { put, totals }: PurchaseCopy,
  mustCompareTotals: boolean,
): Promise<void> {
  await publishChanged(sql, put);
  if (!mustCompareTotals || !lacksChanges(await totals(), ownTotals(sql))) return;
  sql.exec("DELETE FROM published");
  await publishChanged(sql, put);
}

function lacksChanges(copy: PurchaseTotals, own: PurchaseTotals): boolean {
  if (copy.purchases !== own.purchases) return copy.purchases < own.purchases;
  if (copy.updatedAt !== own.updatedAt) return copy.updatedAt < own.updatedAt;
  return copy.returnedMicro !== own.returnedMicro;
}

async function publishChanged(sql: SqlStorage, put: PurchaseCopy["put"]): Promise<void> {
  for (;;) {
    const rows = selectUnpublished(sql);
    if (rows.length === 0) return;
    await put(rows.map(publishedRecord));
    for (const { id, mark } of rows) {
      sql.exec("INSERT OR REPLACE INTO published (id, mark) VALUES (?, ?)", id, mark);
    }
  }
}

function selectUnpublished(sql: SqlStorage): readonly Unpublished[] {
  return sql
    .exec<Unpublished>(
      `SELECT purchases.id AS id, ${FINGERPRINT_SQL} AS mark, purchases.record AS record,
         payments.record AS payment
       FROM purchases LEFT JOIN payments ON payments.id = purchases.payment_id
       LEFT JOIN published ON published.id = purchases.id
       WHERE published.mark IS NOT ${FINGERPRINT_SQL} LIMIT ${BATCH}`,
    )
    .toArray();
}

function publishedRecord({ record, payment }: Unpublished): PurchaseRecord {
  return purchaseRecordOf(
    parseStoredJson<Purchase>(record),
    payment === null ? null : parseStoredJson<Payment>(payment),
  );
}

function ownTotals(sql: SqlStorage): PurchaseTotals {
  return sql
    .exec<PurchaseTotals>(
      `SELECT count(*) AS purchases,
         coalesce(sum(purchases.record ->> '$.updatedAt'), 0) AS updatedAt,
         coalesce(sum(payments.record ->> '$.backMicro'), 0) AS returnedMicro
       FROM published JOIN purchases ON purchases.id = published.id
       LEFT JOIN payments ON payments.id = purchases.payment_id`,
    )
    .one();
}
