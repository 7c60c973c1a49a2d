import { beforeAll, describe, expect, it } from "vitest";
import { errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { NO_DOLLARS, NO_FRACTIONS } from "./dollars-cases.ts";
import { putUser, readUser, sendUser, storedLimits } from "./end-users.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

const patch = (id: string, body: unknown, key = account.key): Promise<Response> =>
  sendUser(id, key, { method: "PATCH", body });

describe("an invalid PATCH /v1/users/{external_id}", () => {
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
      for (const field of ["monthly_quota_dollars", "daily_quota_dollars"]) {
        const body = `{"alert_threshold":0.1,"${field}":${text}}`;
        expect((await errorOf(await patch("u", body, key), 400)).param).toBe(field);
      }
      expect(await storedLimits(orgId)).toEqual(before);
      expect(before).toMatchObject([{ monthly_quota: 8_200_000, daily_quota: 100_000 }]);
    },
  );

  it.each(NO_FRACTIONS)("returns 400 for an alert_threshold of %s", async (text) => {
    await send("/v1/users", { key: account.key, body: { external_id: "t" } });
    const error = await errorOf(await patch("t", `{"alert_threshold":${text}}`), 400);
    expect(error.param).toBe("alert_threshold");
    expect((await readUser(account.key, "t")).alert_threshold).toBe(0.8);
  });
});

describe("a request to /v1/users/{external_id}", () => {
  it.each(["never", ".%2F..", "%00", "a%0Ab", "%E2%80%A8", "x".repeat(257)])(
    "returns 404 for the unknown ID %s with every method",
    async (written) => {
      for (const [method, body] of [["GET"], ["PATCH", {}], ["DELETE"]] as const) {
        const response = await send(`/v1/users/${written}`, { method, key: account.key, body });
        expect((await errorOf(response, 404)).type).toBe("invalid_request_error");
      }
    },
  );

  it("returns 400 for a malformed escape", async () => {
    const response = await send("/v1/users/%zz", { key: account.key });
    expect((await errorOf(response, 400)).type).toBe("invalid_request_error");
  });

  it("needs two calls to the wallet and no database query", async () => {
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
