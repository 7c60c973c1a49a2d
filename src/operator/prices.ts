import * as z from "zod/mini";
import { CATALOG } from "../models/catalog/models.ts";
import { KINDS } from "../shared/kinds.ts";
import type { Kind } from "../shared/kinds.ts";
import {
  deletePrice,
  findExistingPrices,
  findPrice,
  insertPrices,
  listPrices,
  priceKey,
} from "../models/catalog/prices.store.ts";
import type { PriceRecord } from "../models/catalog/prices.store.ts";
import { created } from "../shared/http/endpoint.ts";
import { singleValue, parseFields, parseQuery, wholeNumber } from "../shared/http/parse-body.ts";
import { timestamp } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Refusal, Result } from "../shared/failure.ts";
import { mintId } from "../shared/id.ts";
import type { OperatorCall } from "./operator-context.ts";
import { priceOfFields } from "../shared/usage.ts";
import { newPrices, pricesInput, priceRowView, uncountedUnit } from "./price-fields.ts";
import type { PostedRow } from "./price-fields.ts";

export const pricesQuery = z.object({
  list: z.optional(singleValue.check(z.minLength(1), z.maxLength(40))),
  limit: wholeNumber(1, 500, 100),
  after: z.optional(singleValue),
});

export async function getPrices(call: OperatorCall) {
  const fields = parseQuery(pricesQuery, call.url);
  if (!fields.ok) return fields;
  const { list = null, limit, after = "" } = fields.value;
  const rows = await listPrices(call.db, { list, limit: limit + 1, after });
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return success({
    prices: shown.map(priceRowView),
    lead_seconds: call.priceLeadMs / 1000,
    ...(last !== undefined && { next_after: last.id }),
  });
}

/**
 * Handles `POST /prices`. Stores all rows or none. Each price must start at least the lead time
 * from now.
 */
export async function postPrices(call: OperatorCall) {
  const fields = parseFields(newPrices, [], call.body);
  if (!fields.ok) return fields;
  const rows = priceRows(call, fields.value.rows);
  if (!rows.ok) return rows;
  const known = await findExistingPrices(call.db, rows.value);
  const differs = rows.value.findIndex((row) => {
    const before = known.get(priceKey(row));
    return before !== undefined && !isSame(before, row);
  });
  if (differs !== -1) return exists(differs);
  const fresh = rows.value.filter((row) => !known.has(priceKey(row)));
  if (fresh.length > 0 && !(await inserted(call, fresh))) return exists(0);
  const posted = rows.value.map((row) => known.get(priceKey(row)) ?? row);
  return created({ prices: posted.map(priceRowView) });
}

/** Handles `DELETE /prices/{price_id}`. Rejects a row that isolates may already use. */
export async function removePrice(call: OperatorCall) {
  const { db, now, params, priceLeadMs } = call;
  const row = await findPrice(db, params["price_id"] ?? "");
  if (row === null) return refuse({ kind: "not_found", message: "No such price." });
  if (row.from < now + priceLeadMs) {
    const message = `This price already applies or will soon. Post a new row for ${row.item} instead.`;
    return refuse({ kind: "conflict", message, param: null, code: "price_in_force" });
  }
  if (!(await deletePrice(db, row.id))) {
    const message = `The list '${row.list}' belongs to an organization and can't lose its last row.`;
    return refuse({ kind: "conflict", message, param: null, code: "price_list_in_use" });
  }
  return success({ id: row.id, deleted: true });
}

async function inserted({ db }: OperatorCall, rows: readonly PriceRecord[]): Promise<boolean> {
  try {
    await insertPrices(db, rows);
    return true;
  } catch (error) {
    // A concurrent call inserted the price first.
    if (error instanceof Error && error.message.includes("UNIQUE constraint failed")) return false;
    throw error;
  }
}

function exists(index: number): Refusal {
  const message = `rows[${index}]: the list already has another price of this item at this time.`;
  const param = `rows[${index}].from`;
  return refuse({ kind: "conflict", message, param, code: "price_exists" });
}

function isSame(one: PriceRecord, other: PriceRecord): boolean {
  return (
    JSON.stringify(priceRowView({ ...one, ...STAMP })) ===
    JSON.stringify(priceRowView({ ...other, ...STAMP }))
  );
}
const STAMP = { id: "", postedBy: "", createdAt: 0 };

function priceRows(call: OperatorCall, rows: readonly PostedRow[]): Result<readonly PriceRecord[]> {
  const records: PriceRecord[] = [];
  const places = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const refused = refuseRow(call, row, `rows[${index}]`);
    if (refused !== null) return refused;
    const { list, item, from, percent, price } = row;
    const says = price === undefined ? { percent: percent ?? 0 } : { price: priceOfFields(price) };
    const stamp = {
      id: mintId("prc_", call.now),
      postedBy: call.actor.id ?? "",
      createdAt: call.now,
    };
    const one = { ...stamp, list, item, from, says };
    if (places.has(priceKey(one))) {
      return invalid(
        `rows[${index}] repeats the list, item and time of an earlier row.`,
        `rows[${index}].from`,
      );
    }
    places.add(priceKey(one));
    records.push(one);
  }
  return success(records);
}

function refuseRow(call: OperatorCall, row: PostedRow, at: string): Refusal | null {
  return refuseTime(call, row, at) ?? refuseItem(call, row, at);
}

function refuseTime(
  { now, priceLeadMs }: OperatorCall,
  { from }: PostedRow,
  at: string,
): Refusal | null {
  if (from >= now + priceLeadMs) return null;
  const param = `${at}.from`;
  if (from <= now) return invalid(`${param} must be in the future.`, param);
  const earliest = timestamp(now + priceLeadMs);
  return invalid(
    `${param} must be at least ${priceLeadMs / 1000} s ahead: ${earliest} or later.`,
    param,
  );
}

/**
 * Rejects an invalid item. A model needs a price or a percentage, and `*` or an author needs a
 * percentage.
 */
function refuseItem(
  call: OperatorCall,
  { item, percent, price }: PostedRow,
  at: string,
): Refusal | null {
  const isMany = item === "*" || item.endsWith("/*");
  const kind = isMany ? null : kindOf(call, item);
  if (isMany ? item !== "*" && !isAuthor(call, item) : kind === null) {
    return invalid(`${at}.item: no model is '${item}'.`, `${at}.item`);
  }
  if ((price === undefined) === (percent === undefined)) {
    return invalid(`${at} must have a price or a percent, one of them.`, `${at}.price`);
  }
  return price === undefined ? null : refusePrice({ item, kind, price }, at);
}

function refusePrice(
  {
    item,
    kind,
    price,
  }: Pick<PostedRow, "item"> & {
    readonly kind: Kind | null;
    readonly price: NonNullable<PostedRow["price"]>;
  },
  at: string,
): Refusal | null {
  if (kind === null) {
    return invalid(`${at}.price requires one model. Send percent for '${item}'.`, `${at}.price`);
  }
  const { hasOutput } = KINDS[kind];
  if (hasOutput && price.output === undefined) {
    return invalid(
      `${at}.price.output is missing, because '${item}' has output.`,
      `${at}.price.output`,
    );
  }
  if (!hasOutput && price.output !== undefined) {
    return invalid(`${at}.price.output: '${item}' has no output.`, `${at}.price.output`);
  }
  return refuseUnits({ item, kind, price }, `${at}.price`);
}

export function refuseUnits(
  {
    item,
    kind,
    price,
  }: {
    readonly item: string;
    readonly kind: Kind;
    readonly price: NonNullable<PostedRow["price"]>;
  },
  at: string,
): Refusal | null {
  if (!pricesInput(price, kind)) {
    return invalid(`${at}.input is missing, because '${item}' is billed by input.`, `${at}.input`);
  }
  const unit = uncountedUnit(price, kind);
  if (unit === null) return null;
  const message = `${at}.${unit} is not supported: requests to '${item}' aren't billed by ${unit}.`;
  return invalid(message, `${at}.${unit}`);
}

export function kindOf({ models }: OperatorCall, id: string): Kind | null {
  return models.get(id)?.kind ?? CATALOG.find((entry) => entry.id === id)?.kind ?? null;
}

function isAuthor({ models }: OperatorCall, item: string): boolean {
  const author = item.slice(0, -1);
  return [...models.keys(), ...CATALOG.map(({ id }) => id)].some((id) => id.startsWith(author));
}
