import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { Account } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";

const CREDITS = 1_000_000;
const PUBLISHED = ["balances", "end_users", "settings", "daily_usage", "alerts"];
const TABLES = [...PUBLISHED, "keys", "members", "organizations"];

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

const open = (): Promise<Account> => Account.open(() => regions.eu, { credits: CREDITS });

/** Sends chats and embeddings with and without three end users. Returns their cost. */
async function traffic(account: Account, count: number): Promise<number> {
  const costs = await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const user = ["ann", "bob", "cy", undefined][i % 4];
      const response =
        i % 3 === 0
          ? await account.call("/embeddings", { model: "sandbox/embed", input: "a b", user })
          : await account.chat({
              model: "sandbox/echo",
              messages: [{ role: "user", content: "word ".repeat(1 + (i % 7)) }],
              user,
            });
      await response.text();
      expect(response.status).toBe(200);
      return Number(response.headers.get("x-cost-micro"));
    }),
  );
  return costs.reduce((sum, cost) => sum + cost, 0);
}

async function onDatabase(statements: readonly string[]): Promise<void> {
  const db = await regions.eu.miniflare.getD1Database("DB", "turnpike-eu");
  await db.batch(statements.map((statement) => db.prepare(statement)));
}

/**
 * Checks that the published balance, end users and daily usage equal the wallet's and add up to the
 * spend.
 */
async function expectEqual(account: Account, spent: number): Promise<void> {
  const book = await account.published();
  const wallet = await account.wallet();
  const users = await wallet.listEndUsers(100, 0);
  const usage = await wallet.usage("2020-01-01", "2090-01-01", "day");
  if (!users.ok || !usage.ok) throw new Error("the wallet did not answer");
  expect(book.balance).toBe(CREDITS - spent);
  expect(await account.balance()).toBe(CREDITS - spent);
  const byName = users.value.endUsers.toSorted((a, b) => (a.externalId < b.externalId ? -1 : 1));
  expect(book.endUsers).toEqual(
    byName.map((one) => ({
      external_id: one.externalId,
      daily_spend_micro: one.dailySpendMicro,
      monthly_spend_micro: one.monthlySpendMicro,
    })),
  );
  expect(book.days).toEqual(
    usage.value.data.map((one) => ({
      day: one.group,
      requests: one.requests,
      prompt_tokens: one.promptTokens,
      completion_tokens: one.completionTokens,
      cost_micro: one.costMicro,
    })),
  );
  expect(usage.value.total.costMicro).toBe(spent);
  expect(await account.differences()).toEqual([]);
}

describe("the database", () => {
  it("contains the wallet's balance, end users and daily usage after traffic", async () => {
    const account = await open();
    let spent = await traffic(account, 40);
    await expectEqual(account, spent);
    spent += await traffic(account, 20);
    await expectEqual(account, spent);
    expect((await account.book()).endUsers).toHaveLength(3);
  });

  it("receives the wallet's changes automatically", async () => {
    const account = await open();
    const spent = await traffic(account, 1);
    await expect
      .poll(async () => (await account.book()).balance, { timeout: 100_000, interval: 100 })
      .toBe(CREDITS - spent);
  });

  it("receives each change once after an outage, during which completions continue", async () => {
    const account = await open();
    let spent = await traffic(account, 8);
    await expectEqual(account, spent);
    const wallet = await account.wallet();
    await onDatabase(TABLES.map((table) => `ALTER TABLE ${table} RENAME TO ${table}_away`));
    try {
      for (let round = 0; round < 5; round++) {
        spent += await traffic(account, 40);
        await wallet.poke();
      }
      await expect.poll(() => JSON.stringify(regions.eu.log)).toContain("publish_failed");
      const db = await regions.eu.miniflare.getD1Database("DB", "turnpike-eu");
      const away = db.prepare("SELECT requests FROM daily_usage_away WHERE org_id = ?");
      expect((await away.bind(account.orgId).all()).results).toEqual([{ requests: 8 }]);
      expect(await account.balance()).toBe(CREDITS - spent);
    } finally {
      await onDatabase(TABLES.map((table) => `ALTER TABLE ${table}_away RENAME TO ${table}`));
    }
    await expectEqual(account, spent);
    const [day] = (await account.book()).days;
    expect(day?.["requests"]).toBe(208);
  });

  it("receives all rows again at the next publish if they were deleted", async () => {
    const account = await open();
    let spent = await traffic(account, 20);
    await expectEqual(account, spent);
    await onDatabase(PUBLISHED.map((table) => `DROP TABLE ${table}`));
    spent += await traffic(account, 3);
    const statements = readMigrations().flatMap(({ queries }) => queries);
    await onDatabase(
      statements.filter((one) => PUBLISHED.some((table) => one.includes(` TABLE ${table} `))),
    );
    await expectEqual(account, spent);
    expect((await account.book()).endUsers).toHaveLength(3);
  });
});
