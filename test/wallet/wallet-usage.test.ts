import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import type { UsageReport } from "../../src/shared/contracts/reports.ts";
import { newWallet, pay, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const [FROM, TO] = ["2030-01-01", "2031-01-01"]; // 366 days

/** Adds one request per day for each end user, on this number of days before 2031-01-02. */
async function fill(stub: Stub, users: number, days: number): Promise<void> {
  await runInDurableObject(stub, (_wallet: Wallet, state) => {
    state.storage.sql.exec(
      `WITH RECURSIVE u (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM u WHERE i < ${users}),
        d (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM d WHERE i < ${days - 1})
      INSERT INTO totals SELECT 'user', date('2031-01-01', '-' || d.i || ' days'), printf('u%06d', u.i),
        1, 2, 1, 3, 5, 0 FROM d, u`,
    );
    state.storage.sql.exec(
      `INSERT INTO totals SELECT 'day', day, '', sum(requests), sum(prompt_tokens), sum(cached),
        sum(completion_tokens), sum(cost), 0 FROM totals WHERE dimension = 'user' GROUP BY day`,
    );
  });
}

it("a page of usage by end user reads only the rows that it returns, even with many end users", async () => {
  const { stub } = await newWallet(100);
  await fill(stub, 1000, 60);
  await runInDurableObject(stub, async (wallet: Wallet, state) => {
    const { sql } = state.storage;
    const exec = sql.exec.bind(sql);
    const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
    const watched: typeof sql.exec = (query, ...bindings) => {
      const cursor = exec(query, ...bindings);
      cursors.push(cursor);
      return cursor as never;
    };
    Object.defineProperty(sql, "exec", { value: watched, configurable: true });
    const page = { limit: 10, after: "u000500" };
    const { data, nextAfter } = valueOf(await wallet.usage(FROM, TO, "user", page));
    delete (sql as { exec?: unknown }).exec;
    expect(data).toHaveLength(10);
    expect(data[0]).toMatchObject({ group: "u000501", requests: 60, costMicro: 300 });
    expect(nextAfter).toBe("u000510");
    expect(cursors.reduce((sum, cursor) => sum + cursor.rowsRead, 0)).toBeLessThan(3000);
  });
});

it("usage over many days is returned in smaller pages, which contain every group once", async () => {
  const { stub } = await newWallet(100);
  await fill(stub, 1000, 366);
  await pay(stub, 7, "u000900"); // of today, so it is in no checkpoint and on no page of these days
  const groups: string[] = [];
  let cost = 0;
  let pages = 0;
  for (let after: string | null = null; pages === 0 || after !== null; pages++) {
    const page: UsageReport = valueOf(await stub.usage(FROM, TO, "user", { limit: 10_000, after }));
    expect(page.total).toMatchObject({ requests: 366_000, costMicro: 5 * 366_000 });
    groups.push(...page.data.map(({ group }) => group ?? ""));
    cost += page.data.reduce((sum, one) => sum + one.costMicro, 0);
    after = page.nextAfter;
  }
  expect(pages).toBe(2);
  expect(groups).toEqual(
    Array.from({ length: 1000 }, (_, i) => `u${String(i + 1).padStart(6, "0")}`),
  );
  expect(cost).toBe(5 * 366_000);
});
