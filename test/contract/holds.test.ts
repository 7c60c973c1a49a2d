import { describe, expect, it } from "vitest";
import { addCredits, admin, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey } from "./key-client.ts";
import { createSession } from "./session-client.ts";

type Hold = {
  readonly id: string;
  readonly request_id: string;
  readonly status: string;
  readonly amount_dollars: number;
  readonly captured_dollars: number | null;
  readonly expires_at: string;
};
type Merchant = { readonly name: string; readonly secret: string };

async function makeMerchant(): Promise<Merchant> {
  const name = `m-${crypto.randomUUID().slice(0, 13)}`;
  const response = await admin("POST", "/merchants", { name });
  expect(response.status).toBe(201);
  return response.json<Merchant>();
}

/** Creates an organization with 1 dollar, and a key that may place holds. */
async function payer(fields: Record<string, unknown> = {}): Promise<Account> {
  const account = await openAccount({ credits: 0 });
  await addCredits(account.orgId, 1_000_000);
  const { id, key } = await createKey(account.key, { may_hold: true, ...fields });
  return { ...account, keyId: id, key };
}

const place = (key: string, body: object, headers: Record<string, string> = {}) =>
  send("/v1/holds", { key, body: { description: "a search", ...body }, headers });

async function createHold(key: string, body: object): Promise<Hold> {
  const response = await place(key, body);
  expect(response.status).toBe(201);
  return response.json<Hold>();
}

const act = (hold: Hold, action: string, key: string, body: object = {}): Promise<Response> =>
  send(`/v1/holds/${hold.id}/${action}`, { key, body });

async function balanceOf(orgId: string): Promise<readonly [number, number]> {
  const read = await admin("GET", `/orgs/${orgId}`);
  const { credits_micro, held_micro } = await read.json<Record<string, number>>();
  return [credits_micro ?? NaN, held_micro ?? NaN];
}

describe("a hold paid from the balance", () => {
  it("ignores policies on models and providers, because a hold uses no model", async () => {
    const { key } = await payer({ policy: { allowed_models: [], allowed_providers: [] } });
    const { name } = await makeMerchant();
    const hold = await createHold(key, { amount_dollars: 0.4, merchant: name });
    expect(hold).toMatchObject({ status: "held" });
    expect((await chat(key)).status).toBe(403);
  });

  it("reserves the amount, and lets the merchant charge part of it only once", async () => {
    const [{ orgId, key }, { name, secret }] = [await payer(), await makeMerchant()];
    const hold = await createHold(key, { amount_dollars: 0.4, merchant: name });
    expect(hold).toMatchObject({ status: "held", amount_dollars: 0.4, captured_dollars: null });
    expect(await balanceOf(orgId)).toEqual([1_000_000, 400_000]);
    for (let repeat = 0; repeat < 2; repeat++) {
      const captured = await act(hold, "capture", secret, { amount_dollars: 0.25 });
      expect([captured.status, await captured.json()]).toMatchObject([
        200,
        { id: hold.id, status: "captured", amount_dollars: 0.4, captured_dollars: 0.25 },
      ]);
      expect(await balanceOf(orgId)).toEqual([750_000, 0]);
    }
    const other = await act(hold, "capture", secret);
    expect((await errorOf(other, 409)).code).toBe("hold_ended");
    expect((await act(hold, "release", secret)).status).toBe(409);
  });

  it("adds a receipt and usage, like a model call", async () => {
    const [{ key, orgId }, { name, secret }] = [await payer(), await makeMerchant()];
    const tags = { team: "search" };
    const body = { amount_dollars: 0.4, merchant: name, end_user: "ann", tags };
    const hold = await createHold(key, body);
    await act(hold, "capture", secret, { amount_dollars: 0.123456 });
    const owner = await createKeyOf(orgId);
    const receipt = await send(`/v1/generations/${hold.id}`, { key: owner });
    expect(await receipt.json()).toMatchObject({
      id: hold.request_id,
      status: "settled",
      model: `charge/${name}`,
      external_id: "ann",
      cost_micro: 123_456,
      quota_micro: 0,
      lines: [{ what: "request", micro: 123_456 }],
      tags,
      purpose: { pays: "balance", merchant: name, description: "a search" },
    });
    const usage = await send("/v1/usage?group_by=model", { key: owner });
    expect(await usage.json()).toMatchObject({
      data: [{ group: `charge/${name}`, requests: 1, cost_micro: 123_456 }],
    });
  });

  it("ends when the merchant releases the hold, and never charges more than the held amount", async () => {
    const [{ orgId, key }, { name, secret }] = [await payer(), await makeMerchant()];
    const hold = await createHold(key, { amount_dollars: 0.4, merchant: name });
    const more = await act(hold, "capture", secret, { amount_dollars: 0.400001 });
    expect((await errorOf(more, 400)).param).toBe("amount_dollars");
    expect((await act(hold, "release", secret)).status).toBe(200);
    expect((await act(hold, "release", secret)).status).toBe(200);
    expect(await balanceOf(orgId)).toEqual([1_000_000, 0]);
    expect((await act(hold, "capture", secret)).status).toBe(409);
  });

  it("shrinks to fit a lower balance if at_least permits, and otherwise fails with 402", async () => {
    const [{ key }, { name }] = [await payer(), await makeMerchant()];
    await createHold(key, { amount_dollars: 0.7, merchant: name });
    const body = { amount_dollars: 0.5, merchant: name };
    const short = await place(key, body);
    expect((await errorOf(short, 402)).type).toBe("insufficient_balance");
    expect(await createHold(key, { ...body, at_least: 0.1 })).toMatchObject({
      amount_dollars: 0.3,
    });
  });

  it("can be captured or released only by the hold's merchant, and extended only by the hold's key", async () => {
    const [{ key }, { name, secret }] = [await payer(), await makeMerchant()];
    const hold = await createHold(key, { amount_dollars: 0.1, merchant: name, expires_in: 60 });
    const { secret: other } = await makeMerchant();
    for (const action of ["capture", "release"]) {
      const own = await act(hold, action, key);
      expect((await errorOf(own, 403)).code).toBe("hold_not_allowed");
      expect((await act(hold, action, other)).status).toBe(404);
      expect((await act(hold, action, `${secret}x`)).status).toBe(401);
    }
    const longer = await act(hold, "extend", key, { expires_in: 3600 });
    const { expires_at } = await longer.json<Hold>();
    expect(Date.parse(expires_at) - Date.parse(hold.expires_at)).toBeGreaterThan(3_500_000);
    const read = await send(`/v1/holds/${hold.id}`, { key: secret });
    expect([read.status, await read.json()]).toMatchObject([200, { expires_at }]);
    expect((await send(`/v1/holds/${hold.id}`, { key: other })).status).toBe(404);
  });

  it("gets placed only once for retries with the same Idempotency-Key", async () => {
    const [{ orgId, key }, { name, secret }] = [await payer(), await makeMerchant()];
    const body = { amount_dollars: 0.1, merchant: name };
    const named = { "idempotency-key": "one" };
    const first = await (await place(key, body, named)).json<Hold>();
    expect(await (await place(key, body, named)).json()).toEqual(first);
    await act(first, "capture", secret);
    expect(await (await place(key, body, named)).json()).toMatchObject({ status: "captured" });
    expect(await balanceOf(orgId)).toEqual([900_000, 0]);
    const another = await place(key, { ...body, amount_dollars: 0.2 }, named);
    expect((await errorOf(another, 422)).code).toBe("idempotency_mismatch");
  });

  it("requires may_hold for the key and the session, and an existing merchant", async () => {
    const { name } = await makeMerchant();
    const { key: plain } = await openAccount();
    const body = { amount_dollars: 0.1, merchant: name };
    const refused = await place(plain, body);
    expect((await errorOf(refused, 403)).code).toBe("hold_not_allowed");
    const wider = await send("/v1/sessions", { key: plain, body: { may_hold: true } });
    expect((await errorOf(wider, 400)).param).toBe("may_hold");
    const { key } = await payer();
    expect((await place((await createSession(key)).token, body)).status).toBe(403);
    const { token } = await createSession(key, { may_hold: true, budget_dollars: 0.15 });
    expect((await place(token, body)).status).toBe(201);
    const over = await place(token, body);
    expect((await errorOf(over, 402)).code).toBe("key_budget_exceeded");
    const nobody = await place(key, { ...body, merchant: "nobody" });
    expect((await errorOf(nobody, 400)).param).toBe("merchant");
  });

  it("appears in GET /v1/holds for a key with limits and for the owner", async () => {
    const { orgId, key } = await payer({ budget_dollars: 1 });
    const { name } = await makeMerchant();
    const hold = await createHold(key, { amount_dollars: 0.1, merchant: name });
    const owner = await createKeyOf(orgId);
    for (const one of [key, owner]) {
      const list = await send("/v1/holds", { key: one });
      expect(await list.json()).toMatchObject({
        holds: [{ id: hold.request_id, hold_id: hold.id, purpose: { merchant: name } }],
      });
    }
  });
});

describe("a hold with pays: quota", () => {
  it("counts against the key's budget like a model call, and leaves the balance unchanged", async () => {
    const { orgId, key } = await payer({ budget_dollars: 0.5 });
    const hold = await createHold(key, { amount_dollars: 0.3, pays: "quota" });
    expect(await balanceOf(orgId)).toEqual([1_000_000, 0]);
    const over = await place(key, { amount_dollars: 0.3, pays: "quota" });
    expect((await errorOf(over, 402)).code).toBe("key_budget_exceeded");
    const captured = await act(hold, "capture", key, { amount_dollars: 0.3 });
    expect(await captured.json()).toMatchObject({ status: "captured", captured_dollars: 0.3 });
    const own = await send("/v1/key", { key });
    expect(await own.json()).toMatchObject({
      spent_dollars: 0.3,
      limits: { budget: { held_dollars: 0, left_dollars: 0.2 } },
    });
    const rest = await createHold(key, { amount_dollars: 0.2, pays: "quota" });
    expect([(await chat(key)).status, await balanceOf(orgId)]).toEqual([402, [1_000_000, 0]]);
    await act(rest, "release", key);
    expect((await chat(key)).status).toBe(200);
  });

  it("needs no credits, like POST /v1/charges with pays: quota", async () => {
    const account = await openAccount({ credits: 0 });
    const { key } = await createKey(account.key, { may_hold: true });
    const body = { amount_dollars: 2.5, pays: "quota", description: "an hour of a GPU" };
    const charged = await send("/v1/charges", { key, body });
    expect([charged.status, await charged.json()]).toMatchObject([
      201,
      { status: "captured", pays: "quota", merchant: null, captured_dollars: 2.5 },
    ]);
  });
});

describe("POST /v1/charges", () => {
  it("charges the balance once per Idempotency-Key when called with a merchant's secret", async () => {
    const [{ orgId, key }, { name, secret }] = [await payer(), await makeMerchant()];
    const body = { amount_dollars: 0.25, merchant: name, description: "a search" };
    const headers = { "x-merchant-secret": secret, "idempotency-key": "one" };
    for (let repeat = 0; repeat < 2; repeat++) {
      const charged = await send("/v1/charges", { key, body, headers });
      expect([charged.status, await charged.json()]).toMatchObject([
        201,
        { status: "captured", captured_dollars: 0.25 },
      ]);
    }
    expect(await balanceOf(orgId)).toEqual([750_000, 0]);
    const without = await send("/v1/charges", { key, body });
    expect((await errorOf(without, 403)).code).toBe("hold_not_allowed");
  });
});

/** Creates a key without limits, which may read everything of its organization. */
async function createKeyOf(orgId: string): Promise<string> {
  const members = await admin("GET", `/orgs/${orgId}/members`);
  const {
    members: [owner],
  } = await members.json<{ members: { id: string }[] }>();
  const path = `/orgs/${orgId}/members/${owner?.id}/keys`;
  return (await (await admin("POST", path, { name: "reader" })).json<{ key: string }>()).key;
}
