import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { NO_DOLLARS, NO_FRACTIONS } from "./dollars-cases.ts";
import { putUser, storedLimits } from "./end-users.ts";
import type { EndUser } from "./end-users.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

const QUOTAS = ["monthly_quota_dollars", "daily_quota_dollars"];

type Page = { users: EndUser[]; total: number; limit: number; offset: number };

async function list(key: string, query = ""): Promise<Page> {
  const response = await send(`/v1/users${query}`, { key });
  expect(response.status).toBe(200);
  return response.json<Page>();
}

const put = (body: unknown, key = account.key): Promise<Response> =>
  send("/v1/users", { key, body });

describe("an invalid POST /v1/users", () => {
  it.each(NO_DOLLARS)(
    "returns 400 for a quota of %s, and leaves the stored limits unchanged",
    async (text) => {
      const { orgId, key } = await openAccount({ credits: 0 });
      await putUser(key, {
        external_id: "u",
        monthly_quota_dollars: 8.2,
        daily_quota_dollars: 0.1,
      });
      const before = await storedLimits(orgId);
      for (const field of QUOTAS) {
        for (const external_id of ["u", "new"]) {
          const body = `{"external_id":"${external_id}","alert_threshold":0.1,"${field}":${text}}`;
          const error = await errorOf(await put(body, key), 400);
          expect(error).toMatchObject({ type: "invalid_request_error", param: field });
        }
      }
      expect(await storedLimits(orgId)).toEqual(before);
      expect(before).toMatchObject([{ monthly_quota: 8_200_000, daily_quota: 100_000 }]);
    },
  );

  it.each(NO_FRACTIONS)("returns 400 for an alert_threshold of %s", async (text) => {
    const error = await errorOf(await put(`{"external_id":"t","alert_threshold":${text}}`), 400);
    expect(error.param).toBe("alert_threshold");
  });

  it.each([
    ["none", "{}"],
    ["null", '{"external_id":null}'],
    ["a number", '{"external_id":1}'],
    ["empty", '{"external_id":""}'],
    ["a dot", '{"external_id":"."}'],
    ["two dots", '{"external_id":".."}'],
    ["a NUL", '{"external_id":"a\\u0000"}'],
    ["CR LF", '{"external_id":"a\\r\\nb"}'],
    ["a line separator", '{"external_id":"a\\u2028b"}'],
    ["a C1 control", '{"external_id":"a\\u0085b"}'],
    ["257 bytes", JSON.stringify({ external_id: `a${"é".repeat(128)}` })],
  ])("returns 400 for an external_id that is %s", async (_, body) => {
    const { total } = await list(account.key);
    expect((await errorOf(await put(body), 400)).param).toBe("external_id");
    expect((await list(account.key)).total).toBe(total);
  });

  it("returns 400 for an external_id with a lone surrogate", async () => {
    const error = await errorOf(await put('{"external_id":"a\\ud800"}'), 400);
    expect(error.message).toContain("surrogate");
  });
});

describe("POST /v1/users at the maximum number of end users", () => {
  it("returns 429 for a new end user beyond 100,000, but changes existing ones, until one is deleted", async () => {
    const { orgId, key } = await openAccount({ credits: 0 });
    await putUser(key, { external_id: "first" });
    const stub = env.WALLET.getByName(orgId);
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      state.storage.sql.exec(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
        INSERT INTO end_users (id, external_id, alert_threshold, month, monthly_spend, day,
          daily_spend, created_at, changed) SELECT 'id' || i, 'x' || i, 0.8, '', 0, '', 0, 0, 0 FROM n`,
      );
    });
    await evictDurableObject(stub);
    const response = await put({ external_id: "new" }, key);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(response, 429)).code).toBe("too_many_end_users");
    await putUser(key, { external_id: "first", daily_quota_dollars: 1 }, 200);
    expect((await send("/v1/users/x99999", { method: "DELETE", key })).status).toBe(200);
    await putUser(key, { external_id: "new" });
    expect((await list(key, "?offset=99999")).users).toMatchObject([{ external_id: "new" }]);
  });
});

describe("an invalid GET /v1/users", () => {
  it.each([
    ...["0", "101", "-1", "abc", "", "1.5", "1e1", "+5", " 5", "99999999999999999999"].map(
      (value) => ["limit", value] as const,
    ),
    ...["-1", "1e9", "1000000001", "abc", "", "0.5"].map((value) => ["offset", value] as const),
  ])("returns 400 for %s=%s", async (name, value) => {
    const path = `/v1/users?${name}=${encodeURIComponent(value)}`;
    const error = await errorOf(await send(path, { key: account.key }), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param: name });
  });
});

describe("a request to /v1/users", () => {
  it("needs two calls to the wallet and no database query", async () => {
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
