/**
 * The limits of the platform that local workerd does not keep: a string, a blob or a row of SQLite, in an
 * object or in D1, has at most 2 MB. The others it keeps itself: 100 bound values and 100 KB a statement,
 * 100 columns, 32 MiB a call of an object. `test/platform-limits.test.ts` holds all of them.
 */
import { patch } from "./replaced.ts";
import type { Method } from "./replaced.ts";

/** Bytes of a string, a blob or a row (developers.cloudflare.com/durable-objects/platform/limits). */
export const SQLITE_BYTES_MAX = 2_000_000;

const WRITES = /^\s*(insert|replace|update)\b/i;
const encoder = new TextEncoder();

/** Applies the platform's limits to every object of this isolate. */
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

/** Applies them to every statement on D1. */
export function limitDatabase(db: D1Database): void {
  patch(Object.getPrototypeOf(db) as D1Database, "batch", checkedResult);
  const statement = Object.getPrototypeOf(db.prepare("SELECT 1")) as D1PreparedStatement;
  patch(statement, "bind", (real, that, parameters) => {
    checkBound((that as { readonly statement: string }).statement, parameters);
    return real.apply(that, parameters);
  });
  for (const name of ["all", "first", "raw", "run"] as const) patch(statement, name, checkedResult);
}

/** A statement that writes is taken to write its values into one row. */
function checkBound(statement: string, values: readonly unknown[]): void {
  for (const value of values) checkBytes(bytesOf(value));
  if (WRITES.test(statement)) checkBytes(rowBytes(values));
}

function checkedResult(real: Method, that: unknown, parameters: unknown[]): unknown {
  const result = real.apply(that, parameters);
  if (!(result instanceof Promise)) return checkedRows(result);
  return result.then(checkedRows);
}

/** Checks a statement's result: a value, a row, rows, or D1's results. */
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
  // At most three bytes a UTF-16 unit: only what could be too much is counted.
  return value.length * 3 < SQLITE_BYTES_MAX ? value.length : encoder.encode(value).byteLength;
}

function checkBytes(bytes: number): void {
  if (bytes > SQLITE_BYTES_MAX) throw new Error("string or blob too big: SQLITE_TOOBIG");
}
