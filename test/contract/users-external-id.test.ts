import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import { balanceOf, chat, errorOf, openAccount, send, walletsWith } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { putUser, readUser, sendUser } from "./end-users.ts";
import type { EndUser } from "./end-users.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

/** Spend is per day, so no midnight may pass. */
const NOON = Date.UTC(2036, 6, 14, 12);
beforeEach(() => setClock(NOON));
afterEach(() => setClock(null));

const patch = (id: string, body: unknown, key = account.key): Promise<Response> =>
  sendUser(id, key, { method: "PATCH", body });
const remove = (id: string, key = account.key): Promise<Response> =>
  sendUser(id, key, { method: "DELETE" });

/** Parts of IDs that a path, a query or Unicode normalization could change. */
const PARTS = ["41", "2F", "é", "e\u0301", "👩‍👩‍👧", "\u00a0", "\ufeff"].concat(
  "aA/.%?#;=,:@&+ *{}\\\"'".split(""),
);
const externalIds = fc
  .string({ unit: fc.constantFrom(...PARTS), minLength: 1, maxLength: 20 })
  .filter((id) => id !== "." && id !== "..");
/** The longest IDs in bytes, and names of a property and a path parameter. */
const IDS = ["é".repeat(128), "/".repeat(256), "%".repeat(256), "__proto__", "{external_id}"];

describe("an external_id in /v1/users/{external_id}", () => {
  it("can be any percent-encoded text", async () => {
    const { key } = await openAccount();
    const property = fc.asyncProperty(externalIds, async (external_id) => {
      const user = await putUser(key, { external_id });
      expect(user.external_id).toBe(external_id);
      expect(await readUser(key, external_id)).toEqual(user);
      const changed = await patch(external_id, { daily_quota_dollars: 1 }, key);
      expect(await changed.json()).toEqual({ ...user, daily_quota_dollars: 1 });
      const gone = await remove(external_id, key);
      expect([gone.status, await gone.json()]).toEqual([200, { external_id, deleted: true }]);
      await errorOf(await sendUser(external_id, key), 404);
      const { users } = await (await send("/v1/users", { key })).json<{ users: EndUser[] }>();
      expect(users).toEqual([]);
    });
    const examples = IDS.map((id): [string] => [id]);
    await fc.assert(property, { numRuns: effortFor(30, 120), examples });
  });

  it.each([
    ["a/b/c", "a/b/c"],
    ["a%2Fb/c", "a/b/c"],
    ["%61%2fb%2fc", "a/b/c"],
    ["a/b/c/", "a/b/c"],
    ["a%2Fb%2Fc%2F", "a/b/c/"],
    ["%2541", "%41"],
    ["%41", "A"],
    ["a;b=c,d:e@f!$&'()*+~", "a;b=c,d:e@f!$&'()*+~"],
    ["é", "é"],
    ["a?limit=%41", "a"],
  ])(
    "gets decoded exactly once, and can contain slashes: %s means %j",
    async (written, external_id) => {
      await send("/v1/users", { key: account.key, body: { external_id } });
      const response = await send(`/v1/users/${written}`, { key: account.key });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ external_id });
    },
  );

  it("matches only the exact ID, even if the ID looks percent-encoded", async () => {
    const { key } = await openAccount({ credits: 0 });
    const ids = ["A", "%41", "%2541", "a/b", "a%2Fb", "a//b", "a/b/", "a"];
    for (const [i, external_id] of ids.entries()) {
      await putUser(key, { external_id, daily_quota_dollars: i });
    }
    for (const [i, id] of ids.entries()) {
      expect((await readUser(key, id)).daily_quota_dollars).toBe(i);
    }
    await remove("%41", key);
    expect((await sendUser("A", key)).status).toBe(200);
    await errorOf(await sendUser("%41", key), 404);
  });
});

describe("PATCH /v1/users/{external_id}", () => {
  it("changes only the given fields, and removes a quota set to null", async () => {
    const limits = { monthly_quota_dollars: 50, daily_quota_dollars: 5, alert_threshold: 0.5 };
    const user = await putUser(account.key, { external_id: "p", ...limits });
    const first = await patch("p", { alert_threshold: 0 });
    expect(await first.json()).toEqual({ ...user, alert_threshold: 0 });
    const second = await patch("p", { monthly_quota_dollars: null, daily_quota_dollars: 0 });
    expect(await second.json()).toEqual({
      ...user,
      alert_threshold: 0,
      monthly_quota_dollars: null,
      daily_quota_dollars: 0,
    });
  });
});

describe("DELETE /v1/users/{external_id}", () => {
  it("deletes everything except the spend, which a new end user with the same ID inherits", async () => {
    const { key } = await openAccount();
    const user = await putUser(key, { external_id: "d", daily_quota_dollars: 5 });
    await chat(key, { user: "d" });
    const balance = await balanceOf(key);
    const { daily_spend_dollars: spent } = await readUser(key, "d");
    expect(spent).toBeGreaterThan(0);
    expect((await remove("d", key)).status).toBe(200);
    await errorOf(await remove("d", key), 404);
    await errorOf(await patch("d", {}, key), 404);
    const again = await putUser(key, { external_id: "d" });
    expect(again.id).not.toBe(user.id);
    expect(again).toMatchObject({ daily_quota_dollars: null, daily_spend_dollars: spent });
    expect(await balanceOf(key)).toBe(balance);
  });

  it("retries if the wallet's response is lost, and deletes the end user only once", async () => {
    await putUser(account.key, { external_id: "lost" });
    const gone = await sendUser("lost", account.key, {
      method: "DELETE",
      bindings: losingFirstAnswer(),
    });
    expect([gone.status, await gone.json()]).toEqual([200, { external_id: "lost", deleted: true }]);
    await errorOf(await remove("lost"), 404);
  });
});

describe("a request to /v1/users/{external_id}", () => {
  it.each(["never", ".%2F..", "%00", "a%0Ab", "%E2%80%A8", "x".repeat(257)])(
    "returns 404 for the unknown ID %s, with every method",
    async (written) => {
      for (const [method, body] of [["GET"], ["PATCH", {}], ["DELETE"]] as const) {
        const response = await send(`/v1/users/${written}`, { method, key: account.key, body });
        expect((await errorOf(response, 404)).type).toBe("invalid_request_error");
      }
    },
  );

  it("needs two wallet calls and no database query", async () => {
    await putUser(account.key, { external_id: "counted" });
    const counted = countedBindings();
    const { bindings } = counted;
    await sendUser("counted", account.key, { bindings }); // the key's owner is cached from now on
    for (const [method, body] of [["GET"], ["PATCH", {}], ["DELETE"]] as const) {
      [counted.objects, counted.statements] = [0, 0];
      const sending = { method, body, bindings };
      expect((await sendUser("counted", account.key, sending)).status).toBe(200);
      expect([counted.objects, counted.statements]).toEqual([2, 0]);
    }
  });
});

/** Returns wallets that run the first call, but lose its response. */
function losingFirstAnswer(): Env {
  let calls = 0;
  return walletsWith((name) => ({
    deleteEndUser: async (externalId: string) => {
      const answer = await env.WALLET.getByName(name).deleteEndUser(externalId);
      if (++calls > 1) return answer;
      throw Object.assign(new Error("reset"), { retryable: true });
    },
  }));
}
