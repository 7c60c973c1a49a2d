import type { Counts } from "./counts.ts";
import { patch, proxyOf } from "./replaced.ts";
import { replacedDatabase } from "./replaced-book.ts";
import type { Method } from "./replaced.ts";

export function countedNamespace<T extends Rpc.DurableObjectBranded | undefined>(
  namespace: DurableObjectNamespace<T>,
  counts: Counts,
): DurableObjectNamespace<T> {
  return proxyOf(namespace, (property, real) => {
    if (property === "get" || property === "getByName") {
      return (...parameters: unknown[]) =>
        countedStub((real as Method).apply(namespace, parameters) as object, counts);
    }
    if (property !== "jurisdiction") return undefined;
    return (...parameters: unknown[]) =>
      countedNamespace(
        (real as Method).apply(namespace, parameters) as DurableObjectNamespace<T>,
        counts,
      );
  });
}

function countedStub(stub: object, counts: Counts): object {
  return proxyOf(stub, (_property, real) => {
    if (typeof real !== "function") return undefined;
    return (...parameters: unknown[]) => {
      counts.objectCalls++;
      // `real.apply` would be a remote call, like every property of an RPC method.
      return Reflect.apply(real, stub, parameters);
    };
  });
}

/**
 * Counts rows of all statements in this isolate's objects, and each setAlarm as one written row.
 */
export function countStorage(storage: DurableObjectStorage, counts: Counts): void {
  const sql = Object.getPrototypeOf(storage.sql) as SqlStorage;
  patch(sql, "exec", (real, that, parameters) => {
    const cursor = real.apply(that, parameters) as SqlStorageCursor<Record<string, never>>;
    // The caller has read its rows by then, because it reads them synchronously.
    queueMicrotask(() => {
      counts.objectRowsWritten += cursor.rowsWritten;
      counts.objectRowsRead += cursor.rowsRead;
    });
    return cursor;
  });
  patch(Object.getPrototypeOf(storage) as DurableObjectStorage, "setAlarm", (real, that, given) => {
    counts.objectRowsWritten++;
    return real.apply(that, given);
  });
}

export function countedD1(db: D1Database, counts: Counts): D1Database {
  return replacedDatabase(db, {
    statement: async (run) => {
      counts.d1Queries++;
      const result = await run();
      // Only the results of `run` and `all` have `meta`.
      countRows(counts, (result as { meta?: D1Meta } | null)?.meta);
      return result;
    },
    batch: async (run) => {
      const results = (await run()) as readonly D1Result[];
      counts.d1Queries += results.length;
      for (const { meta } of results) countRows(counts, meta);
      return results;
    },
  });
}

function countRows(counts: Counts, meta: D1Meta | undefined): void {
  counts.d1RowsWritten += meta?.rows_written ?? 0;
  counts.d1RowsRead += meta?.rows_read ?? 0;
}

/** Counts the lines that the Worker logs, and still logs them. */
export function countLog(counts: Counts): void {
  for (const level of ["debug", "error", "info", "log", "warn"] as const) {
    patch(console, level, (real, that, parameters) => {
      counts.logLines++;
      return real.apply(that, parameters);
    });
  }
}
