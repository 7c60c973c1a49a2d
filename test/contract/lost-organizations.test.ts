import { env } from "cloudflare:workers";
import { beforeEach, expect, it, vi } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { valueOf } from "../wallet/wallet-fixture.ts";
import { admin, balanceOf, chat, errorOf, newOrganization, openAccount } from "./client.ts";
import type { Account, MadeOrganization } from "./client.ts";

let account: Account;
beforeEach(async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  account = await openAccount({ credits: 100_000 });
});

/**
 * Removes the organization from the database, as a restore to an earlier time does. Its wallet
 * publishes again.
 */
async function lose(): Promise<void> {
  const tables = ["keys", "members", "balances"].map((table) =>
    env.DB.prepare(`DELETE FROM ${table} WHERE org_id = ?`).bind(account.orgId),
  );
  const own = env.DB.prepare("DELETE FROM organizations WHERE id = ?").bind(account.orgId);
  const wallet = env.WALLET.getByName(account.orgId);
  expect((await chat(account.key)).status).toBe(200);
  valueOf(await wallet.poke());
  await env.DB.batch([...tables, own]);
  const actor = { kind: "operator", id: "admin" } as const;
  valueOf(await wallet.credit({ amountMicro: micros(50_000), reference: "later", actor }));
  await vi.waitFor(async () => {
    valueOf(await wallet.poke());
    expect(await lost()).toBeDefined();
  });
}

type Lost = { readonly id: string; readonly balance_micro: number };
const lost = async (): Promise<Lost | undefined> => {
  const response = await admin("GET", "/lost-organizations");
  const { organizations } = await response.json<{ organizations: Lost[] }>();
  return organizations.find(({ id }) => id === account.orgId);
};
const restore = (fields = {}): Promise<Response> =>
  admin("POST", "/orgs", newOrganization({ restore_id: account.orgId, ...fields }));

it("GET /admin/v1/orgs lists a lost organization, which operators can restore with its ID and balance", async () => {
  await lose();
  const balance = (await lost())?.balance_micro;
  expect(balance).toBeGreaterThan(100_000);
  const response = await restore();
  expect(response.status).toBe(201);
  const restored = await response.json<MadeOrganization>();
  expect(restored.organization).toMatchObject({ id: account.orgId, credits_micro: balance });
  expect(await lost()).toBeUndefined();
  expect(await balanceOf(restored.key.key)).toBe(balance);
  expect((await chat(restored.key.key)).status).toBe(200);
});

it("POST /admin/v1/orgs removes the suspension and limits from the wallet of a restored organization", async () => {
  await lose();
  const wallet = env.WALLET.getByName(account.orgId);
  const before = { suspended: true, closed: true, rpmLimit: 1, priceList: "gone" };
  valueOf(await wallet.configure(before));
  const restored = await (await restore()).json<MadeOrganization>();
  expect(restored.organization).toMatchObject({
    status: "active",
    rpm_limit: null,
    price_list: null,
  });
  const statuses = [await chat(restored.key.key), await chat(restored.key.key)].map(
    ({ status }) => status,
  );
  expect(statuses).toEqual([200, 200]);
});

it("POST /admin/v1/orgs rejects a slug in use, and a restore_id of an organization that isn't lost", async () => {
  for (const restore_id of [account.orgId, crypto.randomUUID()]) {
    const error = await errorOf(await restore({ restore_id }), 409);
    expect(error.param).toBe("restore_id");
  }
  const slug = `t-${crypto.randomUUID().slice(0, 18)}`;
  await admin("POST", "/orgs", newOrganization({ slug }));
  await lose();
  expect((await restore({ slug })).status).toBe(409);
  expect((await restore()).status).toBe(201);
});
