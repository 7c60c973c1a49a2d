import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { createOrMigrateTables, migrateExistingTables } from "../../src/shared/tables.do.ts";
import type { TableMigrations } from "../../src/shared/tables.do.ts";
import {
  credit,
  failureOf,
  newWallet,
  rowsOf,
  runAlarm,
  stubOf,
  valueOf,
} from "../wallet/wallet-fixture.ts";

const ONE: TableMigrations = {
  name: "test",
  steps: [{ sql: "CREATE TABLE a (x)", readableBy: 1 }],
};
const TWO = after(ONE, "ALTER TABLE a ADD COLUMN y; CREATE TABLE b (x)", 1);
const THREE = after(TWO, "ALTER TABLE a RENAME COLUMN x TO z", 3);

/** Returns the tables of the next release. */
function after({ name, steps }: TableMigrations, sql: string, readableBy: number): TableMigrations {
  return { name, steps: [...steps, { sql, readableBy }] };
}

/** Runs a function with an empty storage. */
function inStorage<T>(run: (storage: DurableObjectStorage) => T): Promise<T> {
  const stub = stubOf(`tables-${crypto.randomUUID()}`);
  return runInDurableObject(stub, (_wallet, { storage }) => run(storage));
}

function columnsOf({ sql }: DurableObjectStorage): unknown[] {
  const columns = sql.exec("SELECT name FROM pragma_table_info('a')").toArray();
  return columns.map(({ name }) => name);
}

const log: string[] = [];
beforeEach(() => {
  log.length = 0;
  vi.spyOn(console, "error").mockImplementation((line: string) => void log.push(line));
});

describe("a table of a Durable Object", () => {
  it("isn't created when the object checks whether the table exists", async () => {
    await inStorage((storage) => {
      expect(migrateExistingTables(storage, ONE)).toBe(false);
      expect(storage.sql.exec("SELECT name FROM sqlite_master").toArray()).toEqual([]);
      createOrMigrateTables(storage, ONE);
      expect(migrateExistingTables(storage, ONE)).toBe(true);
    });
  });

  it("gets only the missing schema steps, each of them once", async () => {
    await inStorage((storage) => {
      createOrMigrateTables(storage, ONE);
      storage.sql.exec("INSERT INTO a (x) VALUES (1)");
      for (let start = 0; start < 2; start++) {
        expect(migrateExistingTables(storage, TWO)).toBe(true);
        expect(storage.sql.exec("SELECT x, y FROM a").toArray()).toEqual([{ x: 1, y: null }]);
      }
      expect(migrateExistingTables(storage, THREE)).toBe(true);
      expect(columnsOf(storage)).toEqual(["z", "y"]);
    });
  });

  it("remains usable after a rollback to the previous release and a return to the newer release", async () => {
    await inStorage((storage) => {
      createOrMigrateTables(storage, TWO);
      expect(migrateExistingTables(storage, ONE)).toBe(true);
      storage.sql.exec("INSERT INTO a (x) VALUES (1)");
      expect(migrateExistingTables(storage, TWO)).toBe(true);
      expect(storage.sql.exec("SELECT x, y FROM a").toArray()).toEqual([{ x: 1, y: null }]);
    });
  });

  it("stays unchanged if this release can't read the table, which the log reports", async () => {
    await inStorage((storage) => {
      createOrMigrateTables(storage, THREE);
      for (const older of [ONE, TWO]) {
        expect(() => migrateExistingTables(storage, older)).toThrow("version 3");
        expect(() => createOrMigrateTables(storage, older)).toThrow("version 3");
      }
      expect(columnsOf(storage)).toEqual(["z", "y"]);
      expect(migrateExistingTables(storage, THREE)).toBe(true);
    });
    expect(log).toHaveLength(4);
    expect(JSON.parse(log[0] ?? "")).toMatchObject({
      alert: "tables_too_new",
      tables: "test",
      version: 3,
      readable_by: 3,
    });
  });

  it("stays unchanged if a schema step of an upgrade fails", async () => {
    await inStorage((storage) => {
      createOrMigrateTables(storage, ONE);
      const broken = after(TWO, "ALTER TABLE nowhere ADD COLUMN y", 1);
      expect(() => migrateExistingTables(storage, broken)).toThrow("nowhere");
      expect(columnsOf(storage)).toEqual(["x"]);
      expect(migrateExistingTables(storage, TWO)).toBe(true);
    });
  });
});

it("a wallet with tables that this release can't read is blocked, but works in a newer release", async () => {
  const { stub } = await newWallet(100);
  const version = (readableBy: number): Promise<unknown> =>
    runInDurableObject(stub, (_wallet, { storage }) =>
      storage.sql.exec("UPDATE schema_version SET version = 99, readable_by = ?", readableBy),
    );
  await version(99);
  await evictDurableObject(stub);
  expect(failureOf(await stub.balance())).toEqual({ kind: "storage_unavailable" });
  await runAlarm(stub);
  const alarm = await runInDurableObject(stub, (_wallet, { storage }) => storage.getAlarm());
  expect(alarm).toBeGreaterThan(Date.now());
  await version(1);
  await evictDurableObject(stub);
  expect(valueOf(await stub.balance()).creditsMicro).toBe(100);
  await credit(stub, 1);
  expect(await rowsOf(stub, "SELECT version, readable_by FROM schema_version")).toEqual([
    { version: 99, readable_by: 1 },
  ]);
  expect(log.some((line) => line.includes("tables_too_new"))).toBe(true);
});
