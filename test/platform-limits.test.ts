import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { SQLITE_BYTES_MAX } from "./workers/platform-limits.ts";

const LARGEST = "x".repeat(SQLITE_BYTES_MAX);
const HALF = "x".repeat(SQLITE_BYTES_MAX / 2);
const MANY = Array.from({ length: 101 }, () => 1);
const MANY_BOUND = `SELECT 1 IN (${MANY.map(() => "?").join(", ")})`;
const LONG = `SELECT '${"x".repeat(100_000)}'`;
/** A string of two million and one bytes, created in the statement. */
const GENERATED_SQL = `SELECT hex(zeroblob(${SQLITE_BYTES_MAX / 2})) || 'x' AS made`;

const storage = env.WALLET.getByName("platform-limits");

function inStorage<T>(run: (sql: SqlStorage) => T): Promise<T> {
  return runInDurableObject(storage, (_wallet, state) => {
    state.storage.sql.exec("CREATE TABLE IF NOT EXISTS platform_limits (a, b)");
    return run(state.storage.sql);
  });
}

test.each([
  ["a string over 2 MB", "SELECT length(?)", [`${LARGEST}x`]],
  ["a string of wide characters", "SELECT length(?)", [`${HALF}${"é".repeat(500_001)}`]],
  ["a blob over 2 MB", "SELECT length(?)", [new Uint8Array(SQLITE_BYTES_MAX + 1).buffer]],
  ["a row over 2 MB", "INSERT INTO platform_limits VALUES (?, ?)", [HALF, `${HALF}x`]],
  ["a result over 2 MB", GENERATED_SQL, []],
  ["a statement over 100 KB", LONG, []],
])("a Durable Object rejects %s", async (_what, statement, values) => {
  const run = inStorage((sql) => sql.exec(statement, ...values).toArray());
  await expect(run).rejects.toThrow("SQLITE_TOOBIG");
  const one = inStorage((sql) => sql.exec(statement, ...values).one());
  await expect(one).rejects.toThrow("SQLITE_TOOBIG");
});

test("a Durable Object rejects a statement with 101 bound values", async () => {
  const run = inStorage((sql) => sql.exec(MANY_BOUND, ...MANY).toArray());
  await expect(run).rejects.toThrow("too many SQL variables");
});

test("a Durable Object stores a string of 2 MB, and rows that are larger in total", async () => {
  const rows = await inStorage((sql) => {
    sql.exec(
      "INSERT INTO platform_limits VALUES (?, NULL), (?, NULL)",
      HALF.slice(8),
      HALF.slice(8),
    );
    sql.exec("INSERT INTO platform_limits VALUES (?, NULL)", LARGEST.slice(16));
    return sql.exec("SELECT a, length(a) AS bytes FROM platform_limits").toArray().length;
  });
  expect(rows).toBe(3);
});

function bound(statement: string, ...values: unknown[]): D1PreparedStatement {
  return env.DB.prepare(statement).bind(...values);
}

test("D1 rejects the statements that a Durable Object rejects", async () => {
  await env.DB.exec("CREATE TABLE IF NOT EXISTS platform_limits (a, b)");
  expect(() => bound("SELECT length(?)", `${LARGEST}x`)).toThrow("SQLITE_TOOBIG");
  expect(() => bound("INSERT INTO platform_limits VALUES (?, ?)", HALF, `${HALF}x`)).toThrow(
    "SQLITE_TOOBIG",
  );
  const statement = env.DB.prepare(GENERATED_SQL);
  const runs = [
    statement.all(),
    statement.first(),
    statement.first("made"),
    statement.run(),
    statement.raw(),
  ];
  await Promise.all(runs.map((run) => expect(run).rejects.toThrow("SQLITE_TOOBIG")));
  await expect(env.DB.batch([statement])).rejects.toThrow("SQLITE_TOOBIG");
  await expect(env.DB.prepare(LONG).all()).rejects.toThrow("SQLITE_TOOBIG");
  await expect(bound(MANY_BOUND, ...MANY).all()).rejects.toThrow("too many SQL variables");
  await env.DB.exec("DROP TABLE platform_limits");
});

test("a call to a Durable Object carries at most 32 MiB", async () => {
  const stub = env.KEY_REGISTER.getByName("platform-limits") as unknown as {
    authorize(credential: string): Promise<unknown>;
  };
  const refused = await stub.authorize("x".repeat(32 * 1024 * 1024)).then(() => "taken", String);
  expect(refused).toContain("limited to 32MiB");
});
