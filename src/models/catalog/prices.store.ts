import { UNITS } from "../../shared/usage.ts";
import type { Price } from "../../shared/usage.ts";
import type { PriceOrMarkup, PriceRow } from "./price-lists.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";

export type PriceRecord = PriceRow & {
  readonly id: string;
  readonly list: string;
  readonly postedBy: string;
  readonly createdAt: number;
};

type StoredPrice = {
  id: string;
  list: string;
  item: string;
  from_at: number;
  price: string | null;
  percent: number | null;
  posted_by: string;
  created_at: number;
};

/**
 * Maximum ms that a clock can move back. Reads also return rows that applied up to this long ago.
 */
const CLOCK_BACK_MS_MAX = 86_400_000;

/** Returns the current and future rows of a list. Throws if D1 fails. */
export async function readPriceRows(
  db: D1Database,
  list: string,
  nowMs: number,
): Promise<readonly PriceRow[]> {
  const { results } = await db
    .prepare(
      `SELECT item, from_at, price, percent FROM prices WHERE list = ?1 AND from_at >= coalesce(
        (SELECT max(before.from_at) FROM prices AS before
         WHERE before.list = ?1 AND before.item = prices.item AND before.from_at <= ?2), 0)`,
    )
    .bind(list, nowMs - CLOCK_BACK_MS_MAX)
    .all<StoredPrice>();
  return results.map(rowOf);
}

export async function listPrices(
  db: D1Database,
  query: { readonly list: string | null; readonly after: string; readonly limit: number },
): Promise<readonly PriceRecord[]> {
  const { results } = await db
    .prepare(
      `SELECT * FROM prices WHERE (?1 IS NULL OR list = ?1) AND (list, item, from_at) >
        (SELECT list, item, from_at FROM prices WHERE id = ?2 UNION ALL SELECT '', '', 0 LIMIT 1)
       ORDER BY list, item, from_at LIMIT ?3`,
    )
    .bind(query.list, query.after, query.limit)
    .all<StoredPrice>();
  return results.map(priceRecordOf);
}

export async function findPrice(db: D1Database, id: string): Promise<PriceRecord | null> {
  const row = await db.prepare("SELECT * FROM prices WHERE id = ?").bind(id).first<StoredPrice>();
  return row === null ? null : priceRecordOf(row);
}

/**
 * Returns stored rows with the list, item and start time of one of `rows`, keyed by
 * `formatPriceMapKey`.
 */
export async function findExistingPrices(
  db: D1Database,
  rows: readonly Pick<PriceRecord, "list" | "item" | "from">[],
): Promise<ReadonlyMap<string, PriceRecord>> {
  const places = JSON.stringify(rows.map(({ list, item, from }) => [list, item, from]));
  const { results } = await db
    .prepare(
      `SELECT prices.* FROM json_each(?1) AS asked JOIN prices ON prices.list = asked.value ->> 0
        AND prices.item = asked.value ->> 1 AND prices.from_at = asked.value ->> 2`,
    )
    .bind(places)
    .all<StoredPrice>();
  return new Map(results.map(priceRecordOf).map((row) => [formatPriceMapKey(row), row]));
}

export function formatPriceMapKey({
  list,
  item,
  from,
}: Pick<PriceRecord, "list" | "item" | "from">): string {
  return `${list}\n${item}\n${from}`;
}

export async function insertPrices(db: D1Database, rows: readonly PriceRecord[]): Promise<void> {
  const insert = db.prepare(
    `INSERT INTO prices (id, list, item, from_at, price, percent, posted_by, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  await db.batch(
    rows.map(({ id, list, item, from, says, postedBy, createdAt }) => {
      const price = says.price === undefined ? null : priceToJson(says.price);
      return insert.bind(id, list, item, from, price, says.percent ?? null, postedBy, createdAt);
    }),
  );
}

/** Deletes a row. Returns false if the row doesn't exist or is the last row of a list in use. */
export async function deletePrice(db: D1Database, id: string): Promise<boolean> {
  const row = await db
    .prepare(
      `DELETE FROM prices WHERE id = ?1 AND (
        (SELECT count(*) FROM prices AS others WHERE others.list = prices.list) > 1
        OR NOT EXISTS (SELECT 1 FROM organizations WHERE price_list = prices.list)) RETURNING id`,
    )
    .bind(id)
    .first();
  return row !== null;
}

export async function hasPriceListRows(db: D1Database, list: string): Promise<boolean> {
  const row = await db.prepare("SELECT 1 FROM prices WHERE list = ? LIMIT 1").bind(list).first();
  return row !== null;
}

function priceRecordOf(row: StoredPrice): PriceRecord {
  const { id, list, posted_by: postedBy, created_at: createdAt } = row;
  return { id, list, postedBy, createdAt, ...rowOf(row) };
}

function rowOf({ item, from_at: from, price, percent }: StoredPrice): PriceRow {
  return { item, from, says: toPriceOrMarkup(price, percent) };
}

function toPriceOrMarkup(price: string | null, percent: number | null): PriceOrMarkup {
  return price === null ? { percent: percent ?? 0 } : { price: priceFromJson(price) };
}

function priceToJson({ input, cached, cacheWrite, output, units }: Price): string {
  return JSON.stringify({ input, cached, cache_write: cacheWrite, output, ...units });
}

function priceFromJson(text: string): Price {
  const fields = parseStoredJson<Readonly<Record<string, number>>>(text);
  const { input = 0, cached = input, cache_write: cacheWrite = input, output = 0 } = fields;
  const units = UNITS.filter((unit) => fields[unit] !== undefined);
  const prices = Object.fromEntries(units.map((unit) => [unit, fields[unit]]));
  return { input, cached, cacheWrite, output, ...(units.length > 0 && { units: prices }) };
}
