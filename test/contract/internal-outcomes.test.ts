import { env } from "cloudflare:workers";
import { listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/index.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { outcomeToJson } from "../../src/regions/outbox-format.ts";
import { settleOf, voidOf } from "../regions/outbox-fixture.ts";
import { holdOf, valueOf } from "../wallet/wallet-fixture.ts";
import { bindingsWith, openAccount } from "./client.ts";
import type { Account } from "./client.ts";
import { sendAsPeer } from "./peer-client.ts";

const CREDITS = 1_000_000_000;
let account: Account;

beforeEach(async () => {
  account = await openAccount({ keyScope: "global" });
});

const wallet = (): DurableObjectStub<Wallet> => env.WALLET.getByName(account.orgId);

/** Creates a hold of a peer's request in its home region. Returns the request's ID. */
async function placeHold(): Promise<string> {
  const id = mintId("req_", Date.now());
  const hold = holdOf(10, { id, most: micros(1000) });
  const answer = await wallet().hold({ ...hold, keyId: account.keyId, peer: true });
  expect(answer.ok).toBe(true);
  return id;
}

type OutcomeJson = Record<string, unknown>;
const settle = (holdId: string, cost: number, orgId = account.orgId): OutcomeJson => ({
  ...outcomeToJson({ ...settleOf(orgId, cost), holdId }),
});

const release = (holdId: string, orgId = account.orgId): OutcomeJson => ({
  ...outcomeToJson({ ...voidOf(orgId), holdId }),
});

async function walletTotals(): Promise<{ credits: number; held: number }> {
  const balance = await wallet().balance();
  if (!balance.ok) throw new Error("the wallet does not answer");
  return { credits: balance.value.creditsMicro, held: balance.value.heldMicro };
}

describe("POST /internal/v1/outcomes", () => {
  it("charges or releases the hold of each item in order, and stores the sender's region", async () => {
    const [paid, freed] = [await placeHold(), await placeHold()];
    const items = [settle(paid, 42), release(freed)];
    expect(await sendAsPeer("outcomes", { items })).toEqual({
      status: 200,
      body: {
        ok: true,
        results: [
          { hold_id: paid, result: "delivered" },
          { hold_id: freed, result: "delivered" },
        ],
      },
    });
    expect(await walletTotals()).toEqual({ credits: CREDITS - 42, held: 0 });
    const { generation } = valueOf(await wallet().request(paid));
    expect(items[0]?.["generation"]).toMatchObject({ region: "eu" });
    expect(generation).toMatchObject({ region: "us", costMicro: 42 });
  });

  it("charges duplicate items only once, within one or several messages and in any order", async () => {
    const ids = [await placeHold(), await placeHold(), await placeHold()];
    const items = ids.map((id, i) => settle(id, 10 + i));
    const double = { items: [...items, ...items.toReversed()] };
    const [one, two] = await Promise.all([
      sendAsPeer("outcomes", double),
      sendAsPeer("outcomes", { items: items.toReversed() }),
    ]);
    expect([one.body.results, two.body.results].flat()).toHaveLength(9);
    for (const result of [one.body.results ?? [], two.body.results ?? []].flat()) {
      expect(result).toMatchObject({ result: "delivered" });
    }
    expect(await walletTotals()).toEqual({ credits: CREDITS - 33, held: 0 });
  });

  it("rejects only the malformed items", async () => {
    const good = await placeHold();
    const bad: readonly (OutcomeJson | string | null)[] = [
      null,
      "settle",
      {},
      { ...settle(good, 1), hold_id: "req_short" },
      { ...settle(good, 1), hold_id: 7 },
      { ...settle(good, 1), org_id: "not-a-uuid" },
      { ...settle(good, 1), kind: "credit" },
      { ...settle(good, 1), cost_micro: -1 },
      { ...settle(good, 1), cost_micro: 0.5 },
      { ...settle(good, 1), cost_micro: 2 ** 53 },
      { ...settle(good, 1), generation: null },
      { ...settle(good, 1), generation: { ...settleOf("", 1).generation, usage: { input: -1 } } },
    ];
    const { body } = await sendAsPeer("outcomes", { items: [...bad, settle(good, 5)] });
    const ids = bad.map((item) =>
      item !== null && typeof item === "object" ? item["hold_id"] : null,
    );
    const refused = { result: "refused", reason: "malformed" };
    expect(body.results?.slice(0, -1)).toEqual(
      ids.map((id) => Object.assign({ hold_id: typeof id === "string" ? id : null }, refused)),
    );
    expect(body.results?.at(-1)).toEqual({ hold_id: good, result: "delivered" });
    expect(await walletTotals()).toEqual({ credits: CREDITS - 5, held: 0 });
  });

  it("rejects items of an unknown organization, and stores nothing", async () => {
    const orgId = crypto.randomUUID();
    const items = [
      settle(mintId("req_", Date.now()), 5, orgId),
      release(mintId("req_", Date.now()), orgId),
    ];
    const { body } = await sendAsPeer("outcomes", { items });
    expect(body.results).toEqual(
      items.map((item) => ({
        hold_id: item["hold_id"],
        result: "refused",
        reason: "unknown organization",
      })),
    );
    const tables = await runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage }) =>
      storage.sql
        .exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'")
        .toArray(),
    );
    expect(tables).toEqual([]);
  });

  it("creates no object for an invalid organization ID", async () => {
    const before = await listDurableObjectIds(env.WALLET);
    await sendAsPeer("outcomes", { items: [release(mintId("req_", Date.now()), "../etc/passwd")] });
    expect(await listDurableObjectIds(env.WALLET)).toHaveLength(before.length);
  });

  it("reports items as failed, not rejected, if the wallet or database is unavailable", async () => {
    const lost = crypto.randomUUID();
    await env.DB.prepare(
      "INSERT INTO organizations (id, name, slug, region, created_at) VALUES (?, 'Lost', ?, 'eu', 1)",
    )
      .bind(lost, `lost-${lost.slice(0, 8)}`)
      .run();
    const id = mintId("req_", Date.now());
    const failed = (reason: unknown) => [{ hold_id: id, result: "failed", reason }];
    const response = await sendAsPeer("outcomes", { items: [settle(id, 5, lost)] });
    expect(response.body.results).toEqual(failed("storage_unavailable"));
    const DB = {
      prepare: () => {
        throw new Error("the book is down");
      },
    };
    const unknown = { items: [settle(id, 5, crypto.randomUUID())] };
    const unsure = await sendAsPeer("outcomes", unknown, bindingsWith({ DB }));
    expect(unsure.body.results).toEqual(failed("the book is down"));
  });

  it("calls at most six wallets concurrently, and continues after a wallet fails", async () => {
    let [active, max] = [0, 0];
    const stub = (orgId: string) => ({
      void: async () => {
        max = Math.max(max, ++active);
        await scheduler.wait(1);
        active--;
        if (orgId.startsWith("0")) throw new Error("this wallet is down");
        return { ok: true, value: { kind: "voided" } };
      },
    });
    const WALLET = { getByName: stub };
    const orgs = Array.from({ length: 100 }, (_, i) => `${i % 10}${crypto.randomUUID().slice(1)}`);
    const items = orgs.map((orgId) => release(mintId("req_", Date.now()), orgId));
    const { body } = await sendAsPeer("outcomes", { items }, bindingsWith({ WALLET }));
    const down = { result: "failed", reason: "this wallet is down" };
    const expected = orgs.map((orgId, i) =>
      Object.assign(
        { hold_id: items[i]?.["hold_id"] },
        orgId.startsWith("0") ? down : { result: "delivered" },
      ),
    );
    expect(body.results).toEqual(expected);
    expect(max).toBe(6);
  });
});

describe("an invalid POST /internal/v1/outcomes", () => {
  it.each([
    ["no items", {}],
    ["items that are not a list", { items: {} }],
    ["more than a hundred items", { items: Array.from({ length: 101 }, () => null) }],
  ])("returns 400 for %s", async (_name, message) => {
    const { status, body } = await sendAsPeer("outcomes", message);
    expect([status, body]).toMatchObject([400, { error: { param: "items" } }]);
  });
});
