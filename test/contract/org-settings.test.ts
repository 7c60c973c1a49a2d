import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { valueOf } from "../wallet/wallet-fixture.ts";
import { bindingsWith, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { putUser, readUser } from "./end-users.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

const AT_FIRST = {
  default_user_monthly_quota_dollars: null,
  default_user_daily_quota_dollars: null,
  default_alert_threshold: 0.8,
  low_balance_threshold_dollars: null,
  keep_responses_hours: 0,
  auto_top_up: null,
  tag_keys: [],
  budgets: [],
  policy: null,
  operator_policy: null,
  max_concurrent: null,
};

const pathOf = (orgId: string): string => `/v1/orgs/${orgId}/settings`;
const patch = (own: Account, body: unknown, key = own.key): Promise<Response> =>
  send(pathOf(own.orgId), { method: "PATCH", key, body });

async function read(own: Account, key = own.key): Promise<Record<string, unknown>> {
  const response = await send(pathOf(own.orgId), { key });
  expect(response.status).toBe(200);
  return response.json();
}

const prepare = (): never => {
  throw new Error("D1_ERROR: the book is down");
};

describe("GET /v1/orgs/{org_id}/settings", () => {
  it("returns a new organization's defaults: no quotas, alerts at 0.8, no low-balance alert, no stored responses", async () => {
    expect(await read(await openAccount())).toEqual(AT_FIRST);
  });
});

describe("PATCH /v1/orgs/{org_id}/settings", () => {
  it("changes the given settings, and returns all settings", async () => {
    const own = await openAccount({ credits: 0 });
    const all = {
      default_user_monthly_quota_dollars: 100,
      default_user_daily_quota_dollars: 8.2,
      default_alert_threshold: 1,
      low_balance_threshold_dollars: 0.5,
      keep_responses_hours: 24,
      auto_top_up: { below_dollars: 2.5, amount_dollars: 10, most_per_month_dollars: 30 },
      tag_keys: ["team", "run"],
      budgets: [],
      policy: {
        allowed_models: ["acme/*"],
        allowed_providers: [],
        allowed_data_regions: ["eu", "global"],
      },
      max_concurrent: 50,
    };
    const shown = { ...all, operator_policy: null };
    expect(await (await patch(own, all)).json()).toEqual(shown);
    const one = { default_user_daily_quota_dollars: null };
    expect(await (await patch(own, one)).json()).toEqual({ ...shown, ...one });
    expect(await read(own)).toEqual({ ...shown, ...one });
  });

  it("applies new defaults only to end users created by later requests", async () => {
    const own = await openAccount();
    const createdUser = await putUser(own.key, { external_id: "there" });
    expect((await chat(own.key, { user: "seen" })).status).toBe(200);
    const seen = await readUser(own.key, "seen");
    const defaults = {
      default_user_monthly_quota_dollars: 9,
      default_user_daily_quota_dollars: 3,
      default_alert_threshold: 0.25,
    };
    await patch(own, defaults);
    expect([await readUser(own.key, "there"), await readUser(own.key, "seen")]).toEqual([
      createdUser,
      seen,
    ]);
    expect((await chat(own.key, { user: "seen later" })).status).toBe(200);
    await putUser(own.key, { external_id: "made later" });
    for (const id of ["seen later", "made later"]) {
      expect(await readUser(own.key, id)).toMatchObject({
        monthly_quota_dollars: 9,
        daily_quota_dollars: 3,
        alert_threshold: 0.25,
      });
    }
    await patch(own, { default_user_daily_quota_dollars: 0 });
    const error = await errorOf(await chat(own.key, { user: "blocked" }), 429);
    expect(error.code).toBe("end_user_quota_exceeded");
  });
});

describe("the endpoint /v1/orgs/{org_id}/settings during a suspension or failure", () => {
  it.each([[["book"]], [["wallet"]], [["book", "wallet"]]] as const)(
    "allows reads but rejects changes with 403 during a suspension stored in %j",
    async (where) => {
      const own = await openAccount();
      await suspend(own.orgId, where);
      const error = await errorOf(await patch(own, { default_alert_threshold: 0 }), 403);
      expect(error).toMatchObject({ type: "permission_denied", code: "organization_suspended" });
      expect(await read(own)).toEqual(AT_FIRST);
    },
  );

  it("needs one database query per request, and returns 503 if the database fails", async () => {
    const counted = countedBindings();
    const sending = { key: account.key, bindings: counted.bindings };
    for (let time = 0; time < 2; time++) {
      [counted.objects, counted.statements] = [0, 0];
      expect((await send(pathOf(account.orgId), sending)).status).toBe(200);
    }
    expect([counted.objects, counted.statements]).toEqual([2, 1]);
    const bindings = bindingsWith({ DB: { prepare } });
    const response = await send(pathOf(account.orgId), { key: account.key, bindings });
    expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
  });
});

/** Suspends the organization in its wallet, the database or both, as an operator's call does. */
async function suspend(orgId: string, where: readonly ("wallet" | "book")[]): Promise<void> {
  if (where.includes("wallet")) {
    valueOf(await env.WALLET.getByName(orgId).configure({ suspended: true }));
  }
  if (where.includes("book")) {
    await env.DB.prepare("UPDATE organizations SET status = 'suspended' WHERE id = ?")
      .bind(orgId)
      .run();
  }
}
