import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { pay, setClock } from "../wallet/wallet-fixture.ts";
import type { Wallet } from "../../src/index.ts";
import { chat, errorOf, openAccount, send, walletsWith, addMember } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});
afterEach(() => setClock(null));

type Report = {
  readonly from: string;
  readonly to: string;
  readonly group_by: string;
  readonly data: readonly Record<string, unknown>[];
  readonly total: Record<string, unknown>;
  readonly next_after?: string;
};
const read = (query = "", key = account.key): Promise<Response> =>
  send(`/v1/usage${query}`, { key });
async function report(query = "", key = account.key): Promise<Report> {
  const response = await read(query, key);
  expect(response.status).toBe(200);
  return response.json<Report>();
}
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const DAY = 86_400_000;
const NOON = Date.UTC(2033, 1, 20, 12);

describe("GET /v1/usage", () => {
  it("returns all fields per day, by default for the last 30 days", async () => {
    const own = await openAccount();
    setClock(NOON);
    expect(await report("", own.key)).toEqual({
      from: "2033-01-22",
      to: "2033-02-20",
      group_by: "day",
      data: [],
      total: {
        requests: 0,
        prompt_tokens: 0,
        cached_tokens: 0,
        completion_tokens: 0,
        cost_micro: 0,
      },
    });
    const response = await chat(own.key);
    const { usage } = await response.json<{ usage: Record<string, number> }>();
    const amounts = {
      requests: 1,
      prompt_tokens: usage["prompt_tokens"],
      cached_tokens: 0,
      completion_tokens: usage["completion_tokens"],
      cost_micro: Number(response.headers.get("x-cost-micro")),
    };
    expect(amounts.cost_micro).toBeGreaterThan(0);
    expect(await report("", own.key)).toMatchObject({
      data: [{ group: "2033-02-20", ...amounts }],
      total: amounts,
    });
  });

  it("includes all requested days, and no other days", async () => {
    const own = await openAccount();
    const wallet = env.WALLET.getByName(own.orgId);
    for (const [offset, cost] of [1, 10, 100, 1000, 10_000].entries()) {
      setClock(NOON + offset * DAY);
      await pay(wallet, cost);
    }
    const [first, second, third] = [NOON, NOON + DAY, NOON + 2 * DAY].map(dayOf);
    const costOf = async (query: string): Promise<unknown> =>
      (await report(query, own.key)).total["cost_micro"];
    expect(await costOf(`?from=${second}&to=${third}`)).toBe(110);
    expect(await costOf(`?from=${second}&to=${second}`)).toBe(10);
    expect(await costOf(`?to=${third}`)).toBe(111); // the last 30 days
    expect(await costOf(`?from=${third}`)).toBe(11_100); // up to today
    expect(await costOf(`?from=${first}`)).toBe(11_111);
  });

  it("counts a request on the day of its admission, even if it ends on the next day", async () => {
    const own = await openAccount();
    setClock(Date.UTC(2033, 1, 20, 23, 59, 30));
    const response = await chat(own.key, { model: "sandbox/slow-stream", stream: true });
    setClock(Date.UTC(2033, 1, 21, 0, 1));
    await response.text();
    const { data } = await report("", own.key);
    expect(data).toMatchObject([{ group: "2033-02-20", requests: 1 }]);
  });

  it("groups requests without an end user under null, separately from the end user with the ID 'null'", async () => {
    const own = await openAccount();
    await Promise.all([chat(own.key), ...["null", "", "a"].map((user) => chat(own.key, { user }))]);
    const { data } = await report("?group_by=user", own.key);
    expect(data.map(({ group, requests }) => [group, requests])).toEqual([
      [null, 1],
      ["a", 1],
      ["null", 1],
    ]);
  });

  it("returns each group once in ordered pages, including data not yet published to the database", async () => {
    const own = await openAccount();
    const wallet = env.WALLET.getByName(own.orgId);
    const sorted = ["a", "b", "b b", "ä", "\u{ffee}", "\u{10000}", "\u{1f600}", "\u{1f600}x"];
    const inTables = ["\u{1f600}", "\u{ffee}", "b", "a"];
    await runInDurableObject(wallet, (_wallet: Wallet, { storage }) => {
      const rows = [...inTables.map((name) => ["user", name, 1]), ["day", "", inTables.length]];
      for (const row of rows) {
        for (const day of ["2020-01-01", dayOf(Date.now())]) {
          const values = "VALUES (?1, ?4, ?2, ?3, 0, 0, 0, 7 * ?3, 0)";
          storage.sql.exec(`INSERT INTO totals ${values}`, ...row, day);
        }
      }
    });
    const payers = [...sorted.filter((name) => name !== "b"), null];
    for (const payer of payers) await pay(wallet, 10, payer);
    const fullReport = await report("?group_by=user", own.key);
    const costs = sorted.map((name) => (name === "b" ? 0 : 10) + (inTables.includes(name) ? 7 : 0));
    expect(fullReport.data.map(({ group, cost_micro }) => [group, cost_micro])).toEqual([
      [null, 10],
      ...sorted.map((name, at) => [name, costs[at]]),
    ]);
    expect(fullReport.total).toMatchObject({ requests: 12, cost_micro: 8 * 10 + 4 * 7 });
    expect("next_after" in fullReport).toBe(false);
    const past = "?group_by=user&from=2020-01-01&to=2020-01-01";
    expect(await report(`${past}&limit=3`, own.key)).toMatchObject({
      data: [{ group: "a" }, { group: "b" }, { group: "\u{ffee}" }],
      next_after: "\u{ffee}",
    });
    for (const limit of [1, 2, 3, 8, 9]) {
      const seen: unknown[] = [];
      let more = "";
      for (let page = 0; page < 10; page++) {
        const { next_after: next, ...pageReport } = await report(
          `?group_by=user&limit=${limit}${more}`,
          own.key,
        );
        expect(pageReport.data.length).toBeLessThanOrEqual(limit);
        expect(pageReport.total).toEqual(fullReport.total);
        seen.push(...pageReport.data);
        if (next === undefined) break;
        more = `&after=${encodeURIComponent(next)}`;
      }
      expect(seen).toEqual(fullReport.data);
    }
  });

  it("excludes rejected, released and open requests", async () => {
    const own = await openAccount();
    const open = await chat(own.key, { model: "sandbox/stall", stream: true, max_tokens: 100 });
    const reader = open.body?.getReader();
    await reader?.read();
    for (const fields of [{ model: "sandbox/status-500" }, { model: "none" }, { n: 0 }]) {
      expect((await chat(own.key, fields)).ok).toBe(false);
    }
    expect((await report("", own.key)).total).toMatchObject({ requests: 0, cost_micro: 0 });
    await reader?.cancel();
  });

  it("returns a suspended organization's usage, and all 366 days of a leap year", async () => {
    const own = await openAccount();
    await env.DB.prepare("UPDATE organizations SET status = 'suspended' WHERE id = ?")
      .bind(own.orgId)
      .run();
    const leapYear = await report("?from=2028-01-01&to=2028-12-31", own.key);
    expect(leapYear).toMatchObject({ from: "2028-01-01", to: "2028-12-31", data: [] });
    expect((await read("?from=2028-02-29&to=2028-02-29", own.key)).status).toBe(200);
    expect(await report("?to=0000-01-10", own.key)).toMatchObject({ from: "0000-01-01" });
  });
});

describe("a rejected GET /v1/usage", () => {
  it("returns 403 with the allowed roles to a member, even for an invalid query", async () => {
    const { key } = await addMember(account.orgId, "member");
    for (const query of ["", "?from=never"]) {
      const error = await errorOf(await read(query, key), 403);
      expect(error).toMatchObject({ type: "permission_denied", code: "role_required" });
      expect(error.message).toMatch(/owner.*admin.*billing/);
    }
  });

  it("returns 503 instead of an empty report if the wallet is unavailable", async () => {
    const calls: unknown[] = [];
    const usage = (...args: unknown[]): Promise<never> => {
      calls.push(args);
      return Promise.reject(Object.assign(new Error("busy"), { overloaded: true }));
    };
    const bindings = walletsWith(() => ({ usage }));
    const response = await send("/v1/usage", { key: account.key, bindings });
    expect(response.headers.get("retry-after")).toBe("1");
    expect((await errorOf(response, 503)).code).toBe("overloaded");
    expect(calls).toHaveLength(1);
  });
});
