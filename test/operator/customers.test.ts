import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { call, makeOrganization, valueOf, wallets } from "./operator-fixture.ts";

const DAY = 86_400_000;
const day = (ago: number): string => new Date(Date.now() - ago * DAY).toISOString().slice(0, 10);

type Listed = {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly owner_email: string | null;
  readonly balance_micro: number | null;
  readonly spend_30d_micro: number;
  readonly days_left: number | null;
  readonly last_used_at: string | null;
};
async function listed(query: string): Promise<readonly Listed[]> {
  wallets.clear();
  const page = valueOf(await call("GET /orgs", { query: `limit=100&${query}` }));
  expect(wallets.size).toBe(0); // no wallet was called
  return page["organizations"] as readonly Listed[];
}

/**
 * Balance, spend of each of the seven days before today, of today, and of 20 days ago, and days
 * since the last use.
 */
const CUSTOMERS = [
  { balance: 1000, week: 100, today: 5, old: 0, used: 3 },
  { balance: 50, week: 10, today: 0, old: 900, used: null },
  { balance: 7, week: 0, today: 9, old: 1, used: 1 },
  { balance: 0, week: 1, today: 0, old: 0, used: 2 },
  { balance: null, week: 3, today: 0, old: 4000, used: 9 },
] as const;

it("the list of customers can be sorted by name, balance, spend, runway and last use, without a wallet call", async () => {
  const run = `customers ${crypto.randomUUID()}`;
  for (const [n, one] of CUSTOMERS.entries()) {
    const { id: orgId } = (await makeOrganization()).organization;
    const statements = [
      env.DB.prepare("UPDATE organizations SET name = ? WHERE id = ?").bind(
        `${run} ${(n * 3) % 5}`,
        orgId,
      ),
      one.balance === null
        ? env.DB.prepare("DELETE FROM balances WHERE org_id = ?").bind(orgId)
        : env.DB.prepare("UPDATE balances SET credits_micro = ? WHERE org_id = ?").bind(
            one.balance,
            orgId,
          ),
      env.DB.prepare("UPDATE keys SET last_used_at = ? WHERE org_id = ?").bind(
        one.used === null ? null : Date.now() - one.used * DAY,
        orgId,
      ),
      ...[
        ...Array.from({ length: 7 }, (_, ago) => [ago + 1, one.week] as const),
        [0, one.today] as const,
        [20, one.old] as const,
        [40, 77_777] as const,
      ].map(([ago, cost]) =>
        env.DB.prepare(
          `INSERT INTO daily_usage (org_id, day, requests, prompt_tokens, completion_tokens, cost_micro, seq)
             VALUES (?, ?, 1, 1, 1, ?, 1)`,
        ).bind(orgId, day(ago), cost),
      ),
    ];
    await env.DB.batch(statements);
  }
  const q = `q=${encodeURIComponent(run)}`;
  const all = await listed(q);
  const expected = CUSTOMERS.map(({ balance, week, today, old }) => ({
    balance_micro: balance,
    spend_30d_micro: 7 * week + today + old,
    days_left: balance === null || week === 0 ? null : Math.floor(balance / week),
  }));
  expect(all).toMatchObject(expected);
  const sorts: Readonly<Record<string, (one: Listed) => string | number | null>> = {
    name: ({ name }) => name,
    balance: (one) => one.balance_micro,
    spend: (one) => one.spend_30d_micro,
    runway: (one) => one.days_left,
    used: (one) => one.last_used_at,
  };
  for (const [sort, valueOfRow] of Object.entries(sorts)) {
    for (const [order, sign] of [
      ["asc", 1],
      ["desc", -1],
    ] as const) {
      const values = (await listed(`${q}&sort=${sort}&order=${order}`)).map(valueOfRow);
      const known = values.filter((value) => value !== null);
      const right = known.toSorted((a, b) => sign * (Number(a > b) - Number(a < b)));
      expect([sort, order, values]).toEqual([
        sort,
        order,
        [...right, ...values.filter((value) => value === null)],
      ]);
    }
  }
  const ending = await listed(`${q}&ends_within_days=7`);
  expect(ending.map((one) => one.days_left)).toEqual([5, 0]);
  expect(await listed(`${q}&status=suspended`)).toEqual([]);
  expect(all[0]?.owner_email).toContain("@");
});
