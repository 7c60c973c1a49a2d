import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { setClock } from "../wallet/wallet-fixture.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { putUser, readUser, storedLimits, walletRows } from "./end-users.ts";
import type { EndUser } from "./end-users.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

/** Spend is per day, so no midnight may pass. */
const NOON = Date.UTC(2036, 6, 14, 12);
beforeEach(() => setClock(NOON));
afterEach(() => setClock(null));

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const QUOTAS = ["monthly_quota_dollars", "daily_quota_dollars"];

type Page = {
  users: EndUser[];
  total: number;
  limit: number;
  offset: number;
  next_after: string | null;
};

async function list(key: string, query = ""): Promise<Page> {
  const response = await send(`/v1/users${query}`, { key });
  expect(response.status).toBe(200);
  return response.json<Page>();
}

const put = (body: unknown, key = account.key): Promise<Response> =>
  send("/v1/users", { key, body });

describe("POST /v1/users for a new end user", () => {
  it("returns the end user with the given fields and no spend", async () => {
    const fields = { monthly_quota_dollars: 50, daily_quota_dollars: 2.5, alert_threshold: 0.9 };
    expect(await putUser(account.key, { external_id: "made", ...fields })).toEqual({
      id: expect.stringMatching(UUID),
      external_id: "made",
      ...fields,
      monthly_spend_dollars: 0,
      daily_spend_dollars: 0,
      budgets: [],
      created_at: expect.stringMatching(ISO),
    });
  });

  it("uses the organization's defaults for omitted fields: no quota, alerts at 0.8 of a quota", async () => {
    expect(await putUser(account.key, { external_id: "bare" })).toMatchObject({
      monthly_quota_dollars: null,
      daily_quota_dollars: null,
      alert_threshold: 0.8,
    });
  });

  it("stores dollars exactly in micro-credits", async () => {
    for (const [text, shown, micros] of [
      ["-0", 0, 0],
      ["0.000001", 0.000001, 1],
      ["8.200000000", 8.2, 8_200_000],
      ["999999999.999999", 999_999_999.999999, 999_999_999_999_999],
      ["1e9", 1e9, 1e15],
      ["null", null, null],
    ]) {
      const { orgId, key } = await openAccount({ credits: 0 });
      for (const field of QUOTAS) {
        const body = `{"external_id":"${field}","${field}":${text}}`;
        expect(await (await put(body, key)).json()).toMatchObject({ [field]: shown });
        expect(await readUser(key, field)).toMatchObject({ [field]: shown });
      }
      expect(await storedLimits(orgId)).toMatchObject([
        { monthly_quota: micros, daily_quota: null },
        { monthly_quota: null, daily_quota: micros },
      ]);
    }
  });

  it.each([0, 1, 0.5])("accepts an alert_threshold of %d", async (alert_threshold) => {
    const user = await putUser(account.key, {
      external_id: `at ${alert_threshold}`,
      alert_threshold,
    });
    expect(user.alert_threshold).toBe(alert_threshold);
  });

  it("creates separate end users for IDs that differ in Unicode form, case or spaces", async () => {
    const { key } = await openAccount({ credits: 0 });
    const ids = ["\u00e9", "e\u0301", "E\u0301", " \u00e9", "\u00e9 "];
    for (const external_id of ids) await putUser(key, { external_id });
    expect((await list(key)).users.map((user) => user.external_id)).toEqual(ids);
  });

  it("returns 400 for an external_id with a lone surrogate", async () => {
    const error = await errorOf(await put('{"external_id":"a\\ud800"}'), 400);
    expect(error.message).toContain("surrogate");
  });
});

describe("POST /v1/users for an existing end user", () => {
  it("changes only the given fields, and keeps the ID, creation time and spend", async () => {
    const { key } = await openAccount();
    const limits = { monthly_quota_dollars: 50, daily_quota_dollars: 5, alert_threshold: 0.5 };
    const user = await putUser(key, { external_id: "u", ...limits });
    const cost = Number((await chat(key, { user: "u" })).headers.get("x-cost-micro"));
    const spend = { monthly_spend_dollars: cost / 1e6, daily_spend_dollars: cost / 1e6 };
    const again = await putUser(key, { external_id: "u", daily_quota_dollars: 6 }, 200);
    expect(again).toEqual({ ...user, ...spend, daily_quota_dollars: 6 });
    expect(await putUser(key, { external_id: "u" }, 200)).toEqual(again);
    const open = await putUser(key, { external_id: "u", monthly_quota_dollars: null }, 200);
    expect(open).toEqual({ ...again, monthly_quota_dollars: null });
  });

  it("creates one end user for 50 concurrent calls, which all return this end user", async () => {
    const { key } = await openAccount({ credits: 0 });
    const body = { external_id: "once", daily_quota_dollars: 1 };
    const answers = await Promise.all(Array.from({ length: 50 }, () => put(body, key)));
    expect(answers.filter((one) => one.status === 201)).toHaveLength(1);
    expect(answers.filter((one) => one.status === 200)).toHaveLength(49);
    const records = await Promise.all(answers.map((one) => one.text()));
    expect(new Set(records).size).toBe(1);
    expect((await list(key)).total).toBe(1);
  });
});

describe("GET /v1/users", () => {
  it("returns end users in order of creation with their current spend", async () => {
    const { key } = await openAccount();
    expect(await list(key)).toEqual({
      users: [],
      total: 0,
      limit: 50,
      offset: 0,
      next_after: null,
    });
    for (const external_id of ["c", "a", "b"]) await putUser(key, { external_id });
    const response = await chat(key, { user: "seen in a request" });
    const cost = Number(response.headers.get("x-cost-micro"));
    const page = await list(key, "?limit=3&offset=1");
    expect(page).toMatchObject({ total: 4, limit: 3, offset: 1 });
    expect(page.users.map((user) => user.external_id)).toEqual(["a", "b", "seen in a request"]);
    expect(page.users[2]).toEqual(await readUser(key, "seen in a request"));
    expect(page.users[2]?.daily_spend_dollars).toBe(cost / 1e6);
    expect(cost).toBeGreaterThan(0);
  });

  it("returns stable pages while end users are added and changed", async () => {
    const { key } = await openAccount({ credits: 0 });
    const names = Array.from({ length: 7 }, (_, i) => `z${9 - i}`);
    for (const external_id of names) await putUser(key, { external_id });
    const seen: string[] = [];
    for (let offset = 0; offset < names.length; offset += 2) {
      const page = await list(key, `?limit=2&offset=${offset}`);
      seen.push(...page.users.map((user) => user.external_id));
      await putUser(key, { external_id: `a${offset}` });
      await putUser(key, { external_id: "z9", daily_quota_dollars: offset }, 200);
    }
    expect(seen).toEqual([...names, "a0"]);
  });

  it("returns each end user once across pages despite changes, and reads only one page's rows at a time", async () => {
    const { orgId, key } = await openAccount({ credits: 0 });
    for (let i = 0; i < 9; i++) await putUser(key, { external_id: `u${i}` });
    const seen: string[] = [];
    for (let after: string | null = ""; after !== null;) {
      const page: Page = await list(key, `?limit=4${after === "" ? "" : `&after=${after}`}`);
      seen.push(...page.users.map((user) => user.external_id));
      after = page.next_after;
      const gone = page.users.at(-1)?.external_id ?? "";
      const response = await send(`/v1/users/${gone}`, { method: "DELETE", key });
      expect(response.status).toBe(200);
      if (seen.length === 4) await putUser(key, { external_id: "later" });
    }
    expect(seen).toEqual([...Array.from({ length: 9 }, (_, i) => `u${i}`), "later"]);
    const plan = await walletRows(
      orgId,
      "EXPLAIN QUERY PLAN SELECT * FROM end_users WHERE number > 5 AND departed IS NULL ORDER BY number LIMIT 4",
    );
    expect(JSON.stringify(plan)).toContain("SEARCH end_users USING INTEGER PRIMARY KEY (rowid>?)");
  });

  it("returns pages of the minimum and maximum size, and an empty page past the end", async () => {
    const { orgId, key } = await openAccount({ credits: 0 });
    for (let i = 0; i < 101; i++) await putUser(key, { external_id: `u${i}` });
    expect((await list(key)).users).toHaveLength(50);
    expect((await list(key, "?limit=100")).users).toHaveLength(100);
    expect((await list(key, "?limit=1&offset=100")).users).toMatchObject([{ external_id: "u100" }]);
    expect(await list(key, "?offset=1000000000")).toMatchObject({ users: [], total: 101 });
    expect(await walletRows(orgId, "SELECT count(*) AS n FROM end_users")).toEqual([{ n: 101 }]);
  });
});

describe("a request to /v1/users", () => {
  it("needs two wallet calls and no database query", async () => {
    const counted = countedBindings();
    const { bindings } = counted;
    // The key's owner is cached from now on.
    await send("/v1/users", { key: account.key, bindings });
    for (const body of [undefined, { external_id: "counted" }]) {
      [counted.objects, counted.statements] = [0, 0];
      expect((await send("/v1/users", { key: account.key, body, bindings })).ok).toBe(true);
      expect([counted.objects, counted.statements]).toEqual([2, 0]);
    }
  });
});
