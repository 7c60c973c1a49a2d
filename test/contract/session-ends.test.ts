import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rowsOf, runAlarm } from "../wallet/wallet-fixture.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { chat, errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey, statusOf } from "./key-client.ts";
import type { CreatedKey } from "./key-client.ts";
import { endSession, createSession } from "./session-client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

type EventBody = { readonly subject: string; readonly data: object };
/** Returns the events of one type or of all types. */
async function eventsOfType(key: string, type?: string): Promise<readonly EventBody[]> {
  const response = await send(`/v1/events?limit=100${type ? `&type=${type}` : ""}`, { key });
  expect(response.status).toBe(200);
  return (await response.json<{ events: readonly EventBody[] }>()).events;
}

async function rotateKey(
  { id }: Pick<CreatedKey, "id">,
  body: object,
  name: string = crypto.randomUUID(),
): Promise<string> {
  const headers = { "idempotency-key": name };
  const sending = { key: account.key, headers, body: { overlap_seconds: 0, ...body } };
  const response = await send(`/v1/keys/${id}/rotate`, sending);
  expect(response.status).toBe(201);
  return (await response.json<{ key: string }>()).key;
}

describe("a key rotation with end_sessions", () => {
  it("ends all earlier sessions of the key but no later ones, even if the rotation is repeated", async () => {
    const parentKey = await createKey(account.key);
    const { token: used } = await createSession(parentKey.key);
    const { token: unused } = await createSession(parentKey.key);
    const { token: others } = await createSession(account.key);
    expect((await chat(used)).status).toBe(200);
    const key = await rotateKey(parentKey, { end_sessions: true }, "leak");
    for (const token of [used, unused]) {
      expect([(await chat(token)).status, await statusOf(token)]).toEqual([401, 401]);
    }
    const { token: later } = await createSession(key);
    expect((await chat(later)).status).toBe(200);
    expect(await rotateKey(parentKey, { end_sessions: true }, "leak")).toBe(key);
    expect([(await chat(later)).status, (await chat(others)).status]).toEqual([200, 200]);
    await evictDurableObject(env.WALLET.getByName(account.orgId));
    expect([(await chat(later)).status, (await chat(unused)).status]).toEqual([200, 401]);
    const [event] = await eventsOfType(account.key, "key.rotated");
    expect(event).toMatchObject({ subject: parentKey.id, data: { sessions_ended: true } });
  });

  it("keeps the old secret active during the overlap, but ends the old secret's sessions", async () => {
    const parentKey = await createKey(account.key);
    const { token } = await createSession(parentKey.key);
    await rotateKey(parentKey, { overlap_seconds: 60, end_sessions: true });
    expect([await statusOf(token), await statusOf(parentKey.key)]).toEqual([401, 200]);
    expect(await statusOf((await createSession(parentKey.key)).token)).toBe(200);
  });

  it("can be requested by an operator, and ends no session with end_sessions: false", async () => {
    const parentKey = await createKey(account.key);
    const { token } = await createSession(parentKey.key);
    await rotateKey(parentKey, { end_sessions: false });
    expect(await statusOf(token)).toBe(200);
    const path = `/admin/v1/orgs/${account.orgId}/keys/${parentKey.id}/rotate`;
    const response = await send(path, {
      key: "a".repeat(32),
      headers: { "idempotency-key": "by-hand" },
      body: { overlap_seconds: 0, end_sessions: true },
    });
    expect(response.status).toBe(201);
    expect(await statusOf(token)).toBe(401);
  });
});

describe("a session that was never used", () => {
  it("adds no row and no event when created or rejected", async () => {
    const wallet = env.WALLET.getByName(account.orgId);
    const before = (await eventsOfType(account.key)).length;
    for (let n = 0; n < 5; n++) {
      const { token } = await createSession(account.key, { budget_dollars: 0.000001 });
      expect((await chat(token)).status).toBe(402);
      expect((await chat(token, { model: "no/such" })).status).toBe(404);
    }
    expect((await rowsOf(wallet, "SELECT id FROM sessions")).length).toBe(0);
    expect((await eventsOfType(account.key)).length).toBe(before);
  });

  it("keeps a row from the session's end to its expiry, but creates no event", async () => {
    const wallet = env.WALLET.getByName(account.orgId);
    const ended = [await createSession(account.key), await createSession(account.key)];
    for (const { id, token } of ended) {
      for (let n = 0; n < 2; n++) expect((await endSession(account.key, id)).status).toBe(200);
      expect((await chat(token)).status).toBe(401);
    }
    expect((await rowsOf(wallet, "SELECT id FROM sessions")).length).toBe(2);
    expect(await eventsOfType(account.key, "session.ended")).toEqual([]);
    for (const hours of [25, 27]) {
      shiftClock(hours * 3_600_000);
      await runAlarm(wallet); // expired sessions are deleted hourly
    }
    expect((await rowsOf(wallet, "SELECT id FROM sessions")).length).toBe(0);
  });

  it("counts toward the limit of ended sessions only for the key that ended the session", async () => {
    const wallet = env.WALLET.getByName(account.orgId);
    const { keyId } = account;
    await rowsOf(
      wallet,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
       INSERT INTO sessions (id, expires_at, ended_at, ended_by)
       SELECT 'ses_' || i, ${Date.now() + 86_400_000}, 1, 'key ${keyId}' FROM n RETURNING id`,
    );
    await evictDurableObject(wallet);
    const { id } = await createSession(account.key);
    expect((await errorOf(await endSession(account.key, id), 409)).code).toBe("too_many_sessions");
    const { key } = await addMember(account.orgId, "admin");
    expect((await endSession(key, id)).status).toBe(200);
    const { token } = await createSession(account.key); // ended sessions don't use slots of sessions in use
    expect((await chat(token)).status).toBe(200);
  });
});

it("ended sessions don't count toward the maximum of sessions in use", async () => {
  const wallet = env.WALLET.getByName(account.orgId);
  await rowsOf(
    wallet,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
     INSERT INTO sessions (id, key_id, terms, expires_at, ended_at)
     SELECT 'ses_' || i, '${account.keyId}', '{}', ${Date.now() + 86_400_000}, 1 FROM n RETURNING 1`,
  );
  await evictDurableObject(wallet);
  const { token, id } = await createSession(account.key);
  expect((await chat(token)).status).toBe(200);
  await rowsOf(wallet, "UPDATE sessions SET ended_at = NULL WHERE ended_at = 1 RETURNING 1");
  await evictDurableObject(wallet);
  const { token: another } = await createSession(account.key);
  expect((await errorOf(await chat(another), 409)).code).toBe("too_many_sessions");
  await endSession(account.key, id); // 50,000 other sessions are in use
  expect((await chat(another)).status).toBe(409);
});

describe("the event session.budget_reached", () => {
  it("occurs once, when a request first uses up the budget or is rejected with 402", async () => {
    const { token, id } = await createSession(account.key, { budget_dollars: 0.0002 });
    let status = 200;
    for (let n = 0; n < 100 && status === 200; n++) {
      ({ status } = await chat(token, { max_tokens: 1 }));
    }
    expect(status).toBe(402);
    for (let n = 0; n < 2; n++) expect((await chat(token)).status).toBe(402);
    const events = await eventsOfType(account.key, "session.budget_reached");
    expect(events).toMatchObject([{ subject: id, data: { budget_micro: 200, period: null } }]);
  });
});

const own = async (token: string): Promise<string> =>
  (await send("/v1/key", { key: token })).text();

describe("a session that reads its amounts", () => {
  it("gets only the session's own budget and remainder from GET /v1/key", async () => {
    const parent = await createKey(account.key, { budget_dollars: 777.777777 });
    const { token: bounded } = await createSession(parent.key, { budget_dollars: 0.5 });
    const { token: unbounded } = await createSession(parent.key);
    expect((await chat(bounded)).status).toBe(200);
    const text = await own(bounded);
    expect(text).not.toContain("777");
    const { spent_dollars: spent, limits } = JSON.parse(text) as {
      spent_dollars: number;
      limits: { budget: { spent_dollars: number; left_dollars: number } };
    };
    expect(limits.budget).toMatchObject({ spent_dollars: spent, period: null, resets_at: null });
    expect(limits.budget.left_dollars).toBeCloseTo(0.5 - spent, 6);
    const other = await own(unbounded);
    expect(other).not.toContain("777");
    expect(JSON.parse(other)).toMatchObject({ limits: { budget: null } });
  });

  it.each([
    ["the key's budget", { budget_dollars: 0.000007 }, 1_000_000_000],
    ["the organization's balance", {}, 7],
  ])(
    "gets only the required amount and the session's remaining amount in a 402 for %s",
    async (_, terms, credits) => {
      const poor = await openAccount({ credits });
      const parent = await createKey(poor.key, terms);
      const { token } = await createSession(parent.key);
      const error = await errorOf(await chat(token), 402);
      expect(error).toMatchObject({
        type: "insufficient_balance",
        balance_micro: 0,
        required_micro: expect.any(Number),
      });
      expect(error.message).not.toMatch(/\b7\b/);
      expect(error).not.toHaveProperty("budget_micro");
    },
  );

  it("doesn't get the key's budget, which appears only in a 402 for the key's own request", async () => {
    const { key } = await createKey(account.key, { budget_dollars: 0.000007 });
    expect(await errorOf(await chat(key), 402)).toMatchObject({
      type: "insufficient_balance",
      code: "key_budget_exceeded",
      balance_micro: 7,
      required_micro: expect.any(Number),
    });
  });
});
