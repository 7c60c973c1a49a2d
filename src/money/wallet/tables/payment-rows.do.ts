import { insertRow } from "../../../shared/tables.do.ts";
import type { Micros } from "../../../shared/money.ts";
import { NO_DEBTS } from "../rules/debts.ts";
import type { CreditedPayment, Debts } from "../rules/debts.ts";
import { INITIAL_TOP_UP_STATE } from "../rules/top-up.ts";
import type { TopUpState } from "../rules/top-up.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";

export const PAYMENTS_TABLES_SQL =
  "CREATE TABLE payments (" +
  "id TEXT PRIMARY KEY NOT NULL," + // Stripe payment ID (pi_...)
  "purchase_id TEXT NOT NULL," +
  "credited INTEGER NOT NULL CHECK (credited > 0)," +
  "back INTEGER NOT NULL CHECK (back BETWEEN 0 AND credited)," + // refunded or disputed amount
  "reading INTEGER NOT NULL," + // number of the last read from Stripe; only later reads change `back`
  "changed INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE debts (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "owed INTEGER NOT NULL CHECK (owed >= 0)," +
  "taken INTEGER NOT NULL CHECK (taken >= 0)," +
  "forgiven INTEGER NOT NULL CHECK (forgiven >= 0)," +
  "changed INTEGER NOT NULL" +
  ") STRICT;" +
  "CREATE TABLE forgiven (" +
  "reference TEXT PRIMARY KEY NOT NULL," +
  "amount INTEGER NOT NULL CHECK (amount > 0)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE top_up (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "state TEXT NOT NULL CHECK (json_valid(state))" +
  ") STRICT;";

export function selectPayment(sql: SqlStorage, id: string): CreditedPayment | null {
  const [payment] = sql.exec<CreditedPayment>(
    `SELECT id, purchase_id AS purchaseId, credited, back AS refunded, reading FROM payments
    WHERE id = ?`,
    id,
  );
  return payment ?? null;
}

export function putPayment(sql: SqlStorage, payment: CreditedPayment, changed: number): void {
  const { id, purchaseId: purchase_id, credited, refunded: back, reading } = payment;
  const row = { id, purchase_id, credited, back, reading, changed };
  insertRow(sql, "OR REPLACE INTO payments", row);
}

export function selectDebts(sql: SqlStorage): Debts {
  const [debts] = sql.exec<Debts>("SELECT owed, taken, forgiven FROM debts WHERE id = 1");
  return debts ?? NO_DEBTS;
}

export function putDebts(sql: SqlStorage, { owed, taken, forgiven }: Debts, changed: number): void {
  insertRow(sql, "OR REPLACE INTO debts", { id: 1, owed, taken, forgiven, changed });
}

export function selectRefundedTotal(sql: SqlStorage): number {
  return sql.exec<{ n: number }>("SELECT coalesce(sum(back), 0) AS n FROM payments").one().n;
}

export function selectTopUp(sql: SqlStorage): TopUpState {
  const [row] = sql.exec<{ state: string }>("SELECT state FROM top_up WHERE id = 1").toArray();
  return row === undefined ? INITIAL_TOP_UP_STATE : parseStoredJson<TopUpState>(row.state);
}

export function putTopUp(sql: SqlStorage, state: TopUpState): void {
  sql.exec("INSERT OR REPLACE INTO top_up (id, state) VALUES (1, ?)", JSON.stringify(state));
}

export function selectForgivenDebt(sql: SqlStorage, reference: string): Micros | null {
  const [row] = sql.exec<{ amount: Micros }>(
    "SELECT amount FROM forgiven WHERE reference = ?",
    reference,
  );
  return row?.amount ?? null;
}

export function insertForgivenDebt(sql: SqlStorage, reference: string, amount: Micros): void {
  sql.exec("INSERT INTO forgiven (reference, amount) VALUES (?, ?)", reference, amount);
}
