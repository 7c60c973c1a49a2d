import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { pay, setClock, valueOf } from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { chat, errorOf, openAccount, send, walletsWith } from "./client.ts";
import type { Account } from "./client.ts";

const NOON = Date.UTC(2036, 6, 14, 12);

let account: Account;
let wallet: Stub;
let logged: Record<string, unknown>[];

beforeEach(async () => {
  setClock(NOON);
  logged = [];
  vi.spyOn(console, "warn").mockImplementation((line: string) => {
    logged.push(JSON.parse(line) as Record<string, unknown>);
  });
  account = await openAccount();
  wallet = env.WALLET.getByName(account.orgId);
});
afterEach(() => setClock(null));

type Alert = Readonly<Record<string, unknown>>;
type Page = { readonly alerts: readonly Alert[]; readonly total: number };
const read = (query = "", key = account.key): Promise<Response> =>
  send(`/v1/alerts${query}`, { key });
async function page(query = "", key = account.key): Promise<Page> {
  const response = await read(query, key);
  expect(response.status).toBe(200);
  return response.json<Page>();
}
const total = async (): Promise<number> => (await page()).total;
/** Sets quotas in micro-credits by the API. */
const put = (user: string, day: number | null, month: number | null): Promise<void> =>
  changed("POST", "/v1/users", {
    external_id: user,
    daily_quota_dollars: day === null ? null : day / 1_000_000,
    monthly_quota_dollars: month === null ? null : month / 1_000_000,
  });
async function changed(method: string, path: string, body: object): Promise<void> {
  const response = await send(path, { method, key: account.key, body });
  expect([200, 201]).toContain(response.status);
}
const lines = (): Alert[] =>
  logged
    .filter(({ event, org_id }) => event === "alert" && org_id === account.orgId)
    .map(({ event: _event, org_id: _orgId, ...fields }) => fields);
/** Checks that the response, the log and, after a publish, the database have the same alerts. */
async function expectEverywhere(count: number): Promise<readonly Alert[]> {
  const { alerts, total: all } = await page("?limit=100");
  expect([alerts.length, all]).toEqual([count, count]);
  const newestFirst = (rows: readonly Alert[]): Alert[] =>
    rows.toSorted((a, b) => (String(a["id"]) < String(b["id"]) ? 1 : -1));
  // The log identifies an end user only by ID.
  const inLog = newestFirst(lines()).map(({ end_user_id: _id, ...fields }) => fields);
  expect(inLog).toEqual(alerts.map(({ external_id: _name, ...fields }) => fields));
  valueOf(await wallet.poke());
  const { results } = await env.DB.prepare(
    `SELECT id, kind, external_id, period, threshold, limit_micro, value_micro, created_at
    FROM alerts WHERE org_id = ?`,
  )
    .bind(account.orgId)
    .all();
  const inBook = results.map((row) =>
    Object.assign(row, { created_at: new Date(Number(row["created_at"])).toISOString() }),
  );
  expect(newestFirst(inBook)).toEqual(alerts);
  return alerts;
}

describe("GET /v1/alerts", () => {
  it("returns an empty list before any alert", async () => {
    expect(await page()).toEqual({ alerts: [], total: 0, limit: 50, offset: 0 });
  });

  it("returns one daily and one monthly alert after 100 concurrent requests of an end user", async () => {
    await put("u", 1_000_000, 1_000_400);
    await pay(wallet, 799_990, "u");
    expect(await total()).toBe(0);
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => chat(account.key, { user: "u", max_tokens: 20 })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 200));
    const cost = Number(answers[0]?.headers.get("x-cost-micro"));
    const crossedAt = (limit: number): number =>
      799_990 + Math.ceil((limit * 0.8 - 799_990) / cost) * cost;
    expect(crossedAt(1_000_400)).toBeLessThan(799_990 + 100 * cost);
    const kept = { external_id: "u", threshold: 0.8, created_at: expect.stringMatching(/Z$/) };
    const alerts = await expectEverywhere(2);
    // Alerts of the same millisecond can be in any order.
    expect(alerts.toSorted((a, b) => (String(a["kind"]) > String(b["kind"]) ? -1 : 1))).toEqual([
      expect.objectContaining({
        ...kept,
        kind: "user_monthly",
        period: "2036-07",
        limit_micro: 1_000_400,
        value_micro: crossedAt(1_000_400),
      }),
      expect.objectContaining({
        ...kept,
        kind: "user_daily",
        period: "2036-07-14",
        limit_micro: 1_000_000,
        value_micro: crossedAt(1_000_000),
      }),
    ]);
  });

  it("returns one alert per limit immediately after a quota or threshold changes", async () => {
    await put("u", null, null);
    await chat(account.key, { user: "u" });
    await pay(wallet, 500, "u");
    expect(await total()).toBe(0);
    const { dailySpendMicro: spent } = valueOf(await wallet.readEndUser("u"));
    await put("u", spent * 2, null);
    expect(await total()).toBe(0); // half of the quota
    await changed("PATCH", "/v1/users/u", { alert_threshold: 0.5 });
    expect(await expectEverywhere(1)).toMatchObject([
      { kind: "user_daily", threshold: 0.5, limit_micro: spent * 2, value_micro: spent },
    ]);
    await put("u", null, spent * 2);
    await put("u", spent * 2, spent * 2);
    expect((await expectEverywhere(2))[0]).toMatchObject({ kind: "user_monthly" });
  });

  it("returns all alerts page by page, newest first", async () => {
    for (const user of ["a", "b", "c", "d", "e"]) {
      await put(user, 10, null);
      await pay(wallet, 9, user);
      setClock(NOON + 1000 * user.charCodeAt(0));
    }
    const names = async (query: string): Promise<unknown[]> =>
      (await page(query)).alerts.map((alert) => alert["external_id"]);
    expect(await names("")).toEqual(["e", "d", "c", "b", "a"]);
    expect(await names("?limit=2")).toEqual(["e", "d"]);
    expect(await names("?limit=2&offset=4")).toEqual(["a"]);
    expect(await page("?limit=1&offset=5")).toEqual({
      alerts: [],
      total: 5,
      limit: 1,
      offset: 5,
    });
  });
});

const busy = (): Promise<never> =>
  Promise.reject(Object.assign(new Error("busy"), { overloaded: true }));

describe("a rejected GET /v1/alerts", () => {
  let key: string;
  beforeAll(async () => {
    ({ key } = await openAccount());
  });

  it("returns 503 instead of an empty list if the wallet is unavailable", async () => {
    const bindings = walletsWith(() => ({ alerts: busy }));
    const response = await send("/v1/alerts", { key, bindings });
    expect((await errorOf(response, 503)).code).toBe("overloaded");
  });
});
