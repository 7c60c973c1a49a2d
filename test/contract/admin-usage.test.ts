import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { pay, valueOf } from "../wallet/wallet-fixture.ts";
import { admin, chat, embed, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
  const wallet = env.WALLET.getByName(account.orgId);
  for (const user of ["a", "b"]) {
    valueOf(await wallet.putEndUser(user, { dailyQuotaMicro: micros(100) }));
    await pay(wallet, 90, user);
  }
  await chat(account.key, { user: "c" });
  await embed(account.key);
});

const read = (path: string, orgId = account.orgId): Promise<Response> =>
  admin("GET", `/orgs/${orgId}${path}`);

describe("GET /admin/v1/orgs/{id}/usage or /alerts", () => {
  it.each([
    "/usage",
    "/usage?group_by=model",
    "/usage?group_by=key",
    "/usage?group_by=user",
    "/usage?from=2031-01-01&to=2031-12-31",
    "/alerts",
    "/alerts?limit=1&offset=1",
  ])("returns the organization's own report at %s", async (path) => {
    const [theirs, own] = [await read(path), await send(`/v1${path}`, { key: account.key })];
    expect([theirs.status, own.status]).toEqual([200, 200]);
    expect(await theirs.text()).toBe(await own.text());
  });

  it("excludes data of other organizations", async () => {
    expect(await (await read("/usage")).json()).toMatchObject({ total: { requests: 4 } });
    expect(await (await read("/alerts")).json()).toMatchObject({ total: 2 });
    const other = await openAccount();
    expect(await (await read("/usage", other.orgId)).json()).toMatchObject({ data: [] });
    expect(await (await read("/alerts", other.orgId)).json()).toMatchObject({ total: 0 });
  });
});
