import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { pay, valueOf } from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { admin, balanceOf, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
let wallet: Stub;
beforeEach(async () => {
  for (const method of ["warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation(() => undefined);
  }
  account = await openAccount({ credits: 100_000 });
  wallet = env.WALLET.getByName(account.orgId);
});

const rebuild = (orgId = account.orgId): Promise<Response> =>
  admin("POST", `/orgs/${orgId}/rebuild-wallet`);
const read = async (path: string): Promise<unknown> =>
  (await send(path, { key: account.key })).json();
/** Returns how often the wallet adopted its balance from the database. */
const rebuilds = (): Promise<number> =>
  runInDurableObject(
    wallet,
    (_wallet: Wallet, { storage }) =>
      storage.sql.exec("SELECT 1 FROM entries WHERE reference LIKE 'rebuild:%'").toArray().length,
  );
async function lose(): Promise<void> {
  await runInDurableObject(wallet, (_wallet: Wallet, state) => state.storage.deleteAll());
  await evictDurableObject(wallet);
}

const withoutCached = (answers: object): unknown =>
  JSON.parse(JSON.stringify(answers), (name, value: unknown) =>
    name === "cached_tokens" ? 0 : value,
  );

describe("POST /admin/v1/orgs/{id}/rebuild-wallet", () => {
  it("restores balance, usage and alerts from the database, so that requests succeed again", async () => {
    valueOf(await wallet.putEndUser("u", { dailyQuotaMicro: micros(1000) }));
    await pay(wallet, 900, "u");
    await chat(account.key);
    const before = {
      balance: await read("/v1/balance"),
      usage: await read("/v1/usage"),
      alerts: await read("/v1/alerts"),
    };
    valueOf(await wallet.poke());
    await lose();
    expect((await errorOf(await chat(account.key), 503)).code).toBe("storage_unavailable");
    expect((await send("/v1/balance", { key: account.key })).status).toBe(503);
    const response = await rebuild();
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      credits_micro: await balanceOf(account.key),
      held_micro: 0,
      open_holds: 0,
    });
    expect({
      balance: await read("/v1/balance"),
      usage: await read("/v1/usage"),
      alerts: await read("/v1/alerts"),
    }).toEqual(withoutCached(before)); // the database doesn't have this credit
    expect((await chat(account.key)).status).toBe(200);
    const reconciled = await admin("POST", `/orgs/${account.orgId}/reconcile`);
    expect(await reconciled.json()).toMatchObject({ differences: [] });
  });

  it("excludes requests before the rebuild from the margin, and returns 400 for corrections of their charges", async () => {
    await chat(account.key);
    valueOf(await wallet.poke());
    await lose();
    const beganMs = Date.now();
    expect((await rebuild()).status).toBe(200);
    const query = { fromMs: 0, beforeMs: beganMs, by: "model", model: null, price: null } as const;
    const report = valueOf(await wallet.costs(query));
    expect(report).toMatchObject({ data: [], completeFrom: expect.any(Number) });
    expect(report.completeFrom).toBeGreaterThanOrEqual(beganMs);
    const answer = await admin("POST", "/rerate", {
      id: "rebuilt",
      organization: account.orgId,
      model: "sandbox/echo",
      price: { input: 1, output: 1 },
      from: new Date(beganMs - 86_400_000).toISOString(),
      to: new Date(beganMs).toISOString(),
    });
    const { message, param } = await errorOf(answer, 400);
    expect([param, message]).toEqual(["from", expect.stringContaining("complete only from")]);
  });

  it("keeps credit references, so that a repeated credit adds nothing and returns its first response", async () => {
    const credit = (amount_micro: number): Promise<Response> =>
      admin("POST", `/orgs/${account.orgId}/credits`, { amount_micro, reference: "invoice 7" });
    const first = await (await credit(5000)).json();
    await pay(wallet, 900);
    valueOf(await wallet.poke());
    await lose();
    await rebuild();
    const again = await credit(5000);
    expect(await balanceOf(account.key)).toBe(104_100);
    expect([again.status, await again.json()]).toEqual([200, first]);
    expect((await errorOf(await credit(5001), 409)).param).toBe("reference");
    expect(await balanceOf(account.key)).toBe(104_100);
  });

  it("rebuilds the wallet once for concurrent calls, and rejects later calls with 409", async () => {
    valueOf(await wallet.poke());
    await lose();
    const answers = await Promise.all(Array.from({ length: 10 }, () => rebuild()));
    const rebuilt = answers.filter(({ status }) => status === 200);
    const late = answers.filter(({ status }) => status === 409);
    expect(rebuilt.length).toBeGreaterThan(0);
    expect(rebuilt.length + late.length).toBe(10);
    const bodies = await Promise.all(rebuilt.map((one) => one.text()));
    expect(new Set(bodies).size).toBe(1);
    expect(await rebuilds()).toBe(1);
    expect(await balanceOf(account.key)).toBe(100_000);
  });
});

describe("a rejected POST /admin/v1/orgs/{id}/rebuild-wallet", () => {
  it("returns 409 for a healthy wallet, and changes nothing", async () => {
    for (const publish of [false, true]) {
      if (publish) valueOf(await wallet.poke());
      await chat(account.key);
      const before = [await read("/v1/balance"), await read("/v1/usage")];
      const response = await rebuild();
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect((await errorOf(response, 409)).message).toContain("Nothing needs to be rebuilt");
      expect([await read("/v1/balance"), await read("/v1/usage")]).toEqual(before);
    }
  });

  it("returns 404 without creating a wallet if the database has no balance of the organization", async () => {
    await lose();
    await env.DB.prepare("DELETE FROM balances WHERE org_id = ?").bind(account.orgId).run();
    expect((await errorOf(await rebuild(), 404)).message).toContain("balance");
    expect(await wallet.balance()).toMatchObject({ ok: false });
  });
});
