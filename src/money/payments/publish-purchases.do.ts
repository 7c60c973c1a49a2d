import type { PurchaseRecord } from "../../shared/contracts/payments.ts";
import { storedJson } from "../../shared/stored-json.ts";
import { recordOf } from "./purchase.ts";
import type { Payment, Purchase } from "./purchase.ts";

const BATCH = 50;

/** SQL of a text that changes with each published field of a purchase and its payment. */
const MARK = `json_extract(purchases.record, '$.updatedAt', '$.state', '$.tries')
  || coalesce(json_extract(payments.record, '$.isCredited', '$.backMicro'), '')`;

type Unpublished = { id: string; mark: string; record: string; payment: string | null };

type Published = {
  readonly put: (purchases: readonly PurchaseRecord[]) => Promise<void>;
  readonly count: () => Promise<number>;
};

/**
 * Writes new and changed purchases to D1. With `isWhole`, first compares the numbers of rows, and
 * writes all if D1 was restored to an earlier time.
 */
export async function publishPurchases(
  sql: SqlStorage,
  { put, count }: Published,
  isWhole: boolean,
): Promise<void> {
  if (isWhole && (await count()) < countPublished(sql)) sql.exec("DELETE FROM published");
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
      `SELECT purchases.id AS id, ${MARK} AS mark, purchases.record AS record,
         payments.record AS payment
       FROM purchases LEFT JOIN payments ON payments.id = purchases.payment_id
       LEFT JOIN published ON published.id = purchases.id
       WHERE published.mark IS NOT ${MARK} LIMIT ${BATCH}`,
    )
    .toArray();
}

function publishedRecord({ record, payment }: Unpublished): PurchaseRecord {
  return recordOf(
    storedJson<Purchase>(record),
    payment === null ? null : storedJson<Payment>(payment),
  );
}

function countPublished(sql: SqlStorage): number {
  return sql.exec<{ rows: number }>("SELECT count(*) AS rows FROM published").one().rows;
}
