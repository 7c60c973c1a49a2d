import * as z from "zod/mini";
import { CATALOG } from "../models/catalog/models.ts";
import { CALL_KINDS } from "../shared/kinds.ts";
import type { CallKind } from "../shared/kinds.ts";
import {
  deletePrice,
  findExistingPrices,
  findPrice,
  insertPrices,
  listPrices,
  formatPriceMapKey,
} from "../models/catalog/prices.store.ts";
import type { PriceRecord } from "../models/catalog/prices.store.ts";
import { created } from "../shared/http/endpoint.ts";
import {
  singleValueSchema,
  parseFields,
  parseQuery,
  wholeNumberParameterWithDefault,
  timeParameterSchema,
} from "../shared/http/parse-body.ts";
import { timestamp } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Refusal, Result } from "../shared/failure.ts";
import { mintId } from "../shared/id.ts";
import { toPriceEventDetails } from "./operator-events.ts";
import type { OperatorCall, OperatorChange } from "./operator-context.ts";
import { parsePriceFields, fillUnitRecord, UNITS } from "../shared/usage.ts";
import type { Unit } from "../shared/usage.ts";
import { micros, microsOfDollars } from "../shared/money.ts";
import { priceInDollars } from "../shared/cost.ts";

export const pricesQuerySchema = z.object({
  list: z.optional(singleValueSchema.check(z.minLength(1), z.maxLength(40))),
  limit: wholeNumberParameterWithDefault(1, 500, 100),
  after: z.optional(singleValueSchema),
});

/** Handles `GET /prices`. */
export async function getPrices(call: OperatorCall) {
  const fields = parseQuery(pricesQuerySchema, call.url);
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
 * Handles `POST /prices`. Stores all rows or none. Each price must start at least `priceLeadMs`
 * from now.
 */
export async function postPrices(call: OperatorCall) {
  const fields = parseFields(newPricesSchema, [], call.body);
  if (!fields.ok) return fields;
  const rows = priceRows(call, fields.value.rows);
  if (!rows.ok) return rows;
  const existingPrices = await findExistingPrices(call.db, rows.value);
  const differingIndex = rows.value.findIndex((row) => {
    const before = existingPrices.get(formatPriceMapKey(row));
    return before !== undefined && !isSamePrice(before, row);
  });
  if (differingIndex !== -1) return existingPriceRefusal(differingIndex);
  const newRows = rows.value.filter((row) => !existingPrices.has(formatPriceMapKey(row)));
  if (newRows.length > 0 && !(await tryInsert(call, newRows))) return existingPriceRefusal(0);
  const posted = rows.value.map((row) => existingPrices.get(formatPriceMapKey(row)) ?? row);
  return created({ prices: posted.map(priceRowView) });
}

/** Handles `DELETE /prices/{price_id}`. Rejects a row that isolates may already use. */
export async function removePrice(call: OperatorChange) {
  const { db, now, params, priceLeadMs } = call;
  const row = await findPrice(db, params["price_id"] ?? "");
  if (row === null) return refuse({ kind: "not_found", message: "No such price." });
  if (row.from < now + priceLeadMs) {
    const message = `This price already applies or will apply soon. Post a new price for ${row.item} instead.`;
    return refuse({ kind: "conflict", message, param: null, code: "price_in_force" });
  }
  if (!(await deletePrice(db, row.id))) {
    const message = `The price list '${row.list}' is in use, so its last price can't be removed.`;
    return refuse({ kind: "conflict", message, param: null, code: "price_list_in_use" });
  }
  call.noteDetails(toPriceEventDetails([priceRowView(row)]));
  return success({ id: row.id, deleted: true });
}

async function tryInsert({ db }: OperatorCall, rows: readonly PriceRecord[]): Promise<boolean> {
  try {
    await insertPrices(db, rows);
    return true;
  } catch (error) {
    // A concurrent call inserted the price first.
    if (error instanceof Error && error.message.includes("UNIQUE constraint failed")) return false;
    throw error;
  }
}

function existingPriceRefusal(index: number): Refusal {
  const message = `rows[${index}]: the list already has another price of this item at this time.`;
  const param = `rows[${index}].from`;
  return refuse({ kind: "conflict", message, param, code: "price_exists" });
}

function isSamePrice(one: PriceRecord, other: PriceRecord): boolean {
  return (
    JSON.stringify(priceRowView({ ...one, ...EMPTY_STAMP })) ===
    JSON.stringify(priceRowView({ ...other, ...EMPTY_STAMP }))
  );
}
const EMPTY_STAMP = { id: "", postedBy: "", createdAt: 0 };

function priceRows(
  call: OperatorCall,
  rows: readonly NewPriceRow[],
): Result<readonly PriceRecord[]> {
  const records: PriceRecord[] = [];
  const seenKeys = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const path = `rows[${index}]`;
    const refused = refuseTime(call, row, path) ?? refuseItem(call, row, path);
    if (refused !== null) return refused;
    const { list, item, from, percent, price } = row;
    const says =
      price === undefined ? { percent: percent ?? 0 } : { price: parsePriceFields(price) };
    const stamp = {
      id: mintId("prc_", call.now),
      postedBy: call.actor.id ?? "",
      createdAt: call.now,
    };
    const one = { ...stamp, list, item, from, says };
    if (seenKeys.has(formatPriceMapKey(one))) {
      const message = `${path} repeats the list, item and time of an earlier row.`;
      return invalid(message, `${path}.from`);
    }
    seenKeys.add(formatPriceMapKey(one));
    records.push(one);
  }
  return success(records);
}

function refuseTime(
  { now, priceLeadMs }: OperatorCall,
  { from }: NewPriceRow,
  rowPath: string,
): Refusal | null {
  if (from >= now + priceLeadMs) return null;
  const param = `${rowPath}.from`;
  const earliest = timestamp(now + priceLeadMs);
  return invalid(
    `${param} must be at least ${priceLeadMs / 1000} s in the future: ${earliest} or later.`,
    param,
  );
}

/**
 * Rejects an invalid item. A model needs a price or a percentage. `*` and `author/*` need a
 * percentage.
 */
function refuseItem(
  call: OperatorCall,
  { item, percent, price }: NewPriceRow,
  rowPath: string,
): Refusal | null {
  const coversManyModels = item === "*" || item.endsWith("/*");
  const kind = coversManyModels ? null : findCallKindOfModel(call, item);
  if (coversManyModels ? item !== "*" && !isAuthor(call, item) : kind === null) {
    return invalid(`${rowPath}.item: no model is '${item}'.`, `${rowPath}.item`);
  }
  if ((price === undefined) === (percent === undefined)) {
    return invalid(`${rowPath} must have either a price or a percent.`, `${rowPath}.price`);
  }
  return price === undefined ? null : refusePrice({ item, kind, price }, rowPath);
}

function refusePrice(
  {
    item,
    kind,
    price,
  }: Pick<NewPriceRow, "item"> & {
    readonly kind: CallKind | null;
    readonly price: NonNullable<NewPriceRow["price"]>;
  },
  rowPath: string,
): Refusal | null {
  if (kind === null) {
    return invalid(
      `${rowPath}.price requires one model. Send percent for '${item}'.`,
      `${rowPath}.price`,
    );
  }
  const { hasOutput } = CALL_KINDS[kind];
  if (hasOutput && price.output === undefined) {
    return invalid(
      `${rowPath}.price.output is required, because '${item}' has output.`,
      `${rowPath}.price.output`,
    );
  }
  if (!hasOutput && price.output !== undefined) {
    return invalid(`${rowPath}.price.output: '${item}' has no output.`, `${rowPath}.price.output`);
  }
  return refusePriceUnits({ item, kind, price }, `${rowPath}.price`);
}

/** Rejects a price that lacks a required unit or has a unit that isn't billed. */
export function refusePriceUnits(
  {
    item,
    kind,
    price,
  }: {
    readonly item: string;
    readonly kind: CallKind;
    readonly price: NonNullable<NewPriceRow["price"]>;
  },
  rowPath: string,
): Refusal | null {
  if (!hasInputPrice(price, kind)) {
    return invalid(
      `${rowPath}.input is required, because '${item}' is billed by input.`,
      `${rowPath}.input`,
    );
  }
  const unit = findUncountedUnit(price, kind);
  if (unit === null) return null;
  const message = `${rowPath}.${unit} is not supported: requests to '${item}' aren't billed by ${unit}.`;
  return invalid(message, `${rowPath}.${unit}`);
}

export function findCallKindOfModel({ models }: OperatorCall, id: string): CallKind | null {
  return models.get(id)?.kind ?? CATALOG.find((entry) => entry.id === id)?.kind ?? null;
}

function isAuthor({ models }: OperatorCall, item: string): boolean {
  const author = item.slice(0, -1);
  return [...models.keys(), ...CATALOG.map(({ id }) => id)].some((id) => id.startsWith(author));
}

export const priceListNameSchema = z
  .string()
  .check(z.regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lowercase letters, digits and hyphens"));

const ROWS_MAX = 500;
const DOLLARS_MAX = 1000;
const PERCENT_MAX = 1000;

const dollarsSchema = z.pipe(
  z.number().check(
    z.refine((value) => value > 0, "must be above 0"),
    z.maximum(DOLLARS_MAX),
    z.refine((value) => microsOfDollars(value) !== null, "must have at most 6 decimals"),
  ),
  z.transform((value) => microsOfDollars(value) ?? micros(0)),
);
export const priceFieldsSchema = z.object({
  input: z.optional(dollarsSchema),
  cached: z.optional(dollarsSchema),
  cache_write: z.optional(dollarsSchema),
  output: z.optional(dollarsSchema),
  ...fillUnitRecord(UNITS, z.optional(dollarsSchema)),
});
type PriceFields = z.infer<typeof priceFieldsSchema>;

const rowSchema = z.object({
  list: z._default(priceListNameSchema, "default"),
  item: z.string().check(z.minLength(1), z.maxLength(256)),
  from: timeParameterSchema,
  price: z.optional(priceFieldsSchema),
  percent: z.optional(z.int().check(z.minimum(0), z.maximum(PERCENT_MAX))),
});
export type NewPriceRow = z.infer<typeof rowSchema>;

export const newPricesSchema = z.object({
  rows: z.array(rowSchema).check(z.minLength(1), z.maxLength(ROWS_MAX)),
});

export function hasInputPrice(fields: PriceFields, kind: CallKind): boolean {
  if (fields.input !== undefined) return true;
  return !CALL_KINDS[kind].hasOutput && UNITS.some((unit) => fields[unit] !== undefined);
}

/** Returns a priced unit that isn't counted for this kind of call, or null. */
export function findUncountedUnit(fields: PriceFields, kind: CallKind): Unit | "input" | null {
  const counted: readonly Unit[] = CALL_KINDS[kind].units;
  if (!CALL_KINDS[kind].hasInput && fields.input !== undefined) return "input";
  return UNITS.find((unit) => fields[unit] !== undefined && !counted.includes(unit)) ?? null;
}

export function priceRowView({ id, list, item, from, says, postedBy, createdAt }: PriceRecord) {
  return {
    id,
    list,
    item,
    from: timestamp(from),
    price: says.price === undefined ? null : priceInDollars(says.price),
    percent: says.percent ?? null,
    posted_by: postedBy,
    created_at: timestamp(createdAt),
  };
}
