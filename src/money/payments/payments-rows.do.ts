import { insertRow } from "../../shared/tables.do.ts";
import type { IdempotencyHashes } from "../../shared/idempotency.ts";
import type { TableMigrations } from "../../shared/tables.do.ts";
import { isPurchaseEnded, toPurchaseRecord } from "./purchase.ts";
import type { PaymentsState, PaymentRows, Purchase, Payment } from "./purchase.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import type { PurchaseRecord } from "../../shared/contracts/payments.ts";
import type { PurchaseTotalsInD1 } from "./payments.store.ts";

/** Each column `record` contains a complete row as JSON. */
const INITIAL_SCHEMA =
  "CREATE TABLE head (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "record TEXT NOT NULL CHECK (json_valid(record))" +
  ") STRICT;" +
  "CREATE TABLE purchases (" +
  "id TEXT PRIMARY KEY NOT NULL," +
  "created_at INTEGER NOT NULL," +
  "is_open INTEGER NOT NULL CHECK (is_open IN (0, 1))," + // 1: unfinished, or has pending work
  "session_id TEXT," +
  "invoice_id TEXT," +
  "payment_id TEXT," +
  "record TEXT NOT NULL CHECK (json_valid(record))" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE INDEX purchases_open ON purchases (id) WHERE is_open = 1;" +
  "CREATE INDEX purchases_by_age ON purchases (created_at);" +
  "CREATE INDEX purchases_by_session ON purchases (session_id) WHERE session_id IS NOT NULL;" +
  "CREATE INDEX purchases_by_invoice ON purchases (invoice_id) WHERE invoice_id IS NOT NULL;" +
  "CREATE INDEX purchases_by_payment ON purchases (payment_id) WHERE payment_id IS NOT NULL;" +
  "CREATE TABLE payments (" + // rows are never deleted, because refunds can follow years later
  "id TEXT PRIMARY KEY NOT NULL," +
  "record TEXT NOT NULL CHECK (json_valid(record))" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE hints (" +
  "event_id TEXT PRIMARY KEY NOT NULL," +
  "record TEXT NOT NULL CHECK (json_valid(record))" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE heard (" + // hints that must not be processed again
  "event_id TEXT PRIMARY KEY NOT NULL," +
  "at INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE INDEX heard_by_age ON heard (at);" +
  "CREATE TABLE names (" +
  "name TEXT PRIMARY KEY NOT NULL," +
  "body TEXT NOT NULL," +
  "purchase_id TEXT NOT NULL," +
  "created_at INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;";

const PUBLISHED_SCHEMA =
  "CREATE TABLE published (id TEXT PRIMARY KEY NOT NULL, mark TEXT NOT NULL) STRICT, WITHOUT ROWID;";

export const PAYMENT_TABLES: TableMigrations = {
  name: "payments",
  steps: [
    { sql: INITIAL_SCHEMA, readableBy: 1 },
    { sql: PUBLISHED_SCHEMA, readableBy: 1 },
  ],
};

const PROCESSED_HINT_MS = 31 * 86_400_000;
const EMPTY_HEAD: PaymentsState = {
  orgId: "",
  orgName: "",
  customer: null,
  customers: 0,
  card: null,
  reading: 0,
  walletMadeAt: null,
};

type RecordRow = { readonly record: string };

export function createPaymentRows(sql: SqlStorage): PaymentRows {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type
  const one = <T>(query: string, ...values: (string | number)[]): T | null => {
    const [row] = sql.exec<RecordRow>(query, ...values).toArray();
    return row === undefined ? null : parseStoredJson<T>(row.record);
  };
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type
  const all = <T>(query: string, ...values: (string | number)[]): readonly T[] =>
    sql
      .exec<RecordRow>(query, ...values)
      .toArray()
      .map(({ record }) => parseStoredJson<T>(record));
  return {
    head: () => one<PaymentsState>("SELECT record FROM head WHERE id = 1") ?? EMPTY_HEAD,
    setHead: (head) => {
      insertRow(sql, "OR REPLACE INTO head", { id: 1, record: JSON.stringify(head) });
    },
    purchase: (id) => one("SELECT record FROM purchases WHERE id = ?", id),
    purchaseByStripeId: (object) =>
      one(
        "SELECT record FROM purchases WHERE session_id = ?1 OR invoice_id = ?1 OR payment_id = ?1",
        object,
      ),
    putPurchase: (purchase) => putPurchase(sql, purchase),
    openPurchases: () => all("SELECT record FROM purchases WHERE is_open = 1 ORDER BY id"),
    purchasesSince: (ms) =>
      all("SELECT record FROM purchases WHERE created_at >= ? ORDER BY id", ms),
    payment: (id) => one("SELECT record FROM payments WHERE id = ?", id),
    payments: () => all("SELECT record FROM payments ORDER BY id"),
    putPayment: (payment) => {
      const row = { id: payment.id, record: JSON.stringify(payment) };
      insertRow(sql, "OR REPLACE INTO payments", row);
    },
    waitingHints: () => all("SELECT record FROM hints ORDER BY event_id"),
    putWaitingHint: (hint) => {
      const row = { event_id: hint.eventId, record: JSON.stringify(hint) };
      insertRow(sql, "OR REPLACE INTO hints", row);
    },
    markHintProcessed: ({ eventId }, at) => {
      sql.exec("INSERT OR REPLACE INTO heard (event_id, at) VALUES (?, ?)", eventId, at);
      sql.exec("DELETE FROM hints WHERE event_id = ?", eventId);
      sql.exec("DELETE FROM heard WHERE at < ?", at - PROCESSED_HINT_MS);
    },
    isHintProcessed: (eventId) =>
      sql.exec("SELECT 1 FROM heard WHERE event_id = ?", eventId).toArray().length > 0,
  };
}

function putPurchase(sql: SqlStorage, purchase: Purchase): void {
  const isOver = isPurchaseEnded(purchase) && purchase.nextAt === null && purchase.tellAt === null;
  insertRow(sql, "OR REPLACE INTO purchases", {
    id: purchase.id,
    created_at: purchase.createdAt,
    is_open: isOver ? 0 : 1,
    session_id: purchase.sessionId,
    invoice_id: purchase.invoiceId,
    payment_id: purchase.paymentId,
    record: JSON.stringify(purchase),
  });
}

export function selectPurchases(
  sql: SqlStorage,
  limit: number,
  after: string | null,
): readonly Purchase[] {
  return sql
    .exec<RecordRow>(
      "SELECT record FROM purchases WHERE id < ? ORDER BY id DESC LIMIT ?",
      after ?? "~",
      limit + 1,
    )
    .toArray()
    .map(({ record }) => parseStoredJson<Purchase>(record));
}

const IDEMPOTENCY_KEY_MS = 2 * 86_400_000;

export function selectPurchaseByIdempotencyKey(
  sql: SqlStorage,
  name: string,
): { readonly body: string; readonly purchaseId: string } | null {
  const [row] = sql
    .exec<{ body: string; purchase_id: string }>(
      "SELECT body, purchase_id FROM names WHERE name = ?",
      name,
    )
    .toArray();
  return row === undefined ? null : { body: row.body, purchaseId: row.purchase_id };
}

export function insertPurchaseIdempotencyKey(
  sql: SqlStorage,
  { name, body }: IdempotencyHashes,
  made: { readonly purchaseId: string; readonly at: number },
): void {
  const { purchaseId: purchase_id, at: created_at } = made;
  insertRow(sql, "INTO names", { name, body, purchase_id, created_at });
  sql.exec("DELETE FROM names WHERE created_at < ?", made.at - IDEMPOTENCY_KEY_MS);
}

const BATCH = 50;

/**
 * SQL expression for a fingerprint that changes with each published field of a purchase or its
 * payment.
 */
const FINGERPRINT_SQL = `json_extract(purchases.record, '$.updatedAt', '$.state', '$.tries')
  || coalesce(json_extract(payments.record, '$.isCredited', '$.backMicro'), '')`;

type Unpublished = { id: string; mark: string; record: string; payment: string | null };

type PurchaseCopy = {
  readonly put: (purchases: readonly PurchaseRecord[]) => Promise<void>;
  readonly totals: () => Promise<PurchaseTotalsInD1>;
};

/**
 * Writes new and changed purchases to D1. With `mustCompareTotals`, rewrites all purchases if D1
 * lacks changes.
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

function lacksChanges(copy: PurchaseTotalsInD1, own: PurchaseTotalsInD1): boolean {
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
  return toPurchaseRecord(
    parseStoredJson<Purchase>(record),
    payment === null ? null : parseStoredJson<Payment>(payment),
  );
}

function ownTotals(sql: SqlStorage): PurchaseTotalsInD1 {
  return sql
    .exec<PurchaseTotalsInD1>(
      `SELECT count(*) AS purchases,
         coalesce(sum(purchases.record ->> '$.updatedAt'), 0) AS updatedAt,
         coalesce(sum(payments.record ->> '$.backMicro'), 0) AS returnedMicro
       FROM published JOIN purchases ON purchases.id = published.id
       LEFT JOIN payments ON payments.id = purchases.payment_id`,
    )
    .one();
}
