/**
 * Platform limits that local workerd doesn't enforce: a string, blob or row of SQLite, in an object
 * or D1, has at most 2 MB. Local workerd enforces the others: 100 bound values and 100 KB per
 * statement, 100 columns, and 32 MiB per object call. `test/platform-limits.test.ts` tests all of
 * them.
 */
import { patch } from "../../scripts/workers/replaced.ts";
import type { Method } from "../../scripts/workers/replaced.ts";

/**
 * Maximum bytes of a string, blob or row
 * (developers.cloudflare.com/durable-objects/platform/limits).
 */
export const SQLITE_BYTES_MAX = 2_000_000;

const WRITES = /^\s*(insert|replace|update)\b/i;
const encoder = new TextEncoder();

export function limitStorage({ sql }: DurableObjectStorage): void {
  const owner = Object.getPrototypeOf(sql) as SqlStorage;
  patch(owner, "exec", (real, that, parameters) => {
    const [statement, ...values] = parameters as [string, ...unknown[]];
    checkBound(statement, values);
    return real.apply(that, parameters);
  });
  const cursor = owner.Cursor.prototype as SqlStorageCursor<Record<string, SqlStorageValue>>;
  patch(cursor, "toArray", checkedResult);
  patch(cursor, "one", checkedResult);
}

export function limitDatabase(db: D1Database): void {
  patch(Object.getPrototypeOf(db) as D1Database, "batch", checkedResult);
  const statement = Object.getPrototypeOf(db.prepare("SELECT 1")) as D1PreparedStatement;
  patch(statement, "bind", (real, that, parameters) => {
    checkBound((that as { readonly statement: string }).statement, parameters);
    return real.apply(that, parameters);
  });
  for (const name of ["all", "first", "raw", "run"] as const) patch(statement, name, checkedResult);
}

/** Checks each value, and for a writing statement all values together as one row. */
function checkBound(statement: string, values: readonly unknown[]): void {
  for (const value of values) checkBytes(bytesOf(value));
  if (WRITES.test(statement)) checkBytes(rowBytes(values));
}

function checkedResult(real: Method, that: unknown, parameters: unknown[]): unknown {
  const result = real.apply(that, parameters);
  if (!(result instanceof Promise)) return checkedRows(result);
  return result.then(checkedRows);
}

/** Checks a statement's result: a value, a row, rows or D1's results. */
function checkedRows<T>(result: T): T {
  if (Array.isArray(result)) result.forEach(checkedRows);
  else if (typeof result !== "object" || result === null) checkBytes(bytesOf(result));
  else if ("results" in result) checkedRows(result.results);
  else checkBytes(rowBytes(Object.values(result)));
  return result;
}

function rowBytes(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + bytesOf(value), 0);
}

function bytesOf(value: unknown): number {
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== "string") return 8;
  // Encodes only long strings, because a UTF-16 unit has at most three bytes.
  return value.length * 3 < SQLITE_BYTES_MAX ? value.length : encoder.encode(value).byteLength;
}

function checkBytes(bytes: number): void {
  if (bytes > SQLITE_BYTES_MAX) throw new Error("string or blob too big: SQLITE_TOOBIG");
}
