import { env } from "cloudflare:workers";
import { beforeEach, expect, it, vi } from "vitest";
import { abort } from "../wallet/fault-fixture.ts";
import { differences, rowsOf } from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { mockUpstream, upstreamCompletion } from "./upstream.ts";

/** Caps of fewer than 64 tokens are never lowered, so a hold has the maximum cost or fails. */
const WORST = { max_tokens: 48 };
const AFFORDABLE = 12;
/** Micro-credits of the mocked response: 10 tokens at 1 and 5 at 2. */
const COST = 20;

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

/** Returns a new stub, because a stub stays broken after an abort. */
function wallet(): Stub {
  return env.WALLET.getByName(account.orgId);
}

type SendRequest = (key: string) => Promise<Response>;
const echo: SendRequest = (key) => chat(key, WORST);
type Minted = { readonly id: string; readonly token: string };

async function mint(fields: object): Promise<Minted> {
  const response = await send("/v1/sessions", { key: account.key, body: fields });
  expect(response.status).toBe(201);
  return response.json<Minted>();
}

/**
 * Creates a session with a budget for this number of requests at maximum cost. Returns the cost of
 * one in micro-credits.
 */
async function mintLimitedSession(
  sendRequest: SendRequest,
): Promise<Minted & { readonly each: number; readonly budget: number }> {
  const { token } = await mint({ budget_dollars: 0 });
  const { required_micro: each = 0 } = (await errorOf(await sendRequest(token), 402)) as {
    required_micro?: number;
  };
  const budget = AFFORDABLE * each;
  return { ...(await mint({ budget_dollars: budget / 1e6 })), each, budget };
}

/** Returns the spend and the held amount of a session in the wallet's rows, in micro-credits. */
async function amountsOf(id: string): Promise<{ spent: number; held: number }> {
  const [row] = await rowsOf(
    wallet(),
    `SELECT coalesce(sum(charged), 0) AS spent,
      coalesce(sum(iif(state = 'held', granted, 0)), 0) AS held FROM requests WHERE session = '${id}'`,
  );
  return row as { spent: number; held: number };
}

/** Returns the spend that the API reports to the session, in micro-credits. */
async function reportedSpend(token: string): Promise<number> {
  const own = await send("/v1/key", { key: token });
  return Math.round((await own.json<{ spent_dollars: number }>()).spent_dollars * 1e6);
}

/**
 * Spends sequentially until the budget rejects a request. Returns the remaining micro-credits then.
 */
async function spendRest(
  { token, budget }: { readonly token: string; readonly budget: number },
  sendRequest: SendRequest,
): Promise<number> {
  for (;;) {
    const response = await sendRequest(token);
    if (response.status === 200) await response.text();
    else return (await errorOf(response, 402)) && budget - (await reportedSpend(token));
  }
}

it("a session keeps its open holds and exact remaining budget after an abort of the wallet", async () => {
  const gate = Promise.withResolvers<null>();
  const { calls, bindings } = mockUpstream(
    async () => (await gate.promise) ?? upstreamCompletion(),
  );
  const sendRequest = (key: string) => chat(key, { ...WORST, model: "mock/chat" }, { bindings });
  const session = await mintLimitedSession(sendRequest);
  const { token, id, each } = session;
  const running = Array.from({ length: AFFORDABLE }, () => sendRequest(token));
  await vi.waitFor(() => expect(calls).toHaveLength(AFFORDABLE), 60_000);
  for (const isAborted of [false, true]) {
    if (isAborted) await abort(wallet());
    expect(await errorOf(await sendRequest(token), 402)).toMatchObject({ required_micro: each });
    expect(await amountsOf(id)).toEqual({ spent: 0, held: AFFORDABLE * each });
  }
  gate.resolve(null);
  expect(await Promise.all(running.map(async (one) => statusOf(await one)))).toEqual(
    Array.from({ length: AFFORDABLE }, () => 200),
  );
  expect(await amountsOf(id)).toEqual({ spent: AFFORDABLE * COST, held: 0 });
  const remaining = await spendRest(session, sendRequest);
  expect([remaining >= 0, remaining < each]).toEqual([true, true]);
  expect(await reportedSpend(token)).toBe((await amountsOf(id)).spent);
  expect(await differences(wallet())).toEqual([]);
});

it("a session can spend exactly its budget, even after aborts of the wallet", async () => {
  const session = await mintLimitedSession(echo);
  const { token, id, each, budget } = session;
  const statuses: Promise<number>[] = [];
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 15; i++) {
      statuses.push(chat(token, { ...WORST, stream: i % 2 === 0 }).then(statusOf));
    }
    await abort(wallet());
  }
  const seen = new Set(await Promise.all(statuses));
  expect([...seen].filter((status) => ![200, 402, 503].includes(status))).toEqual([]);
  await vi.waitFor(async () => expect((await amountsOf(id)).held).toBe(0), 60_000);
  expect((await amountsOf(id)).spent).toBeLessThanOrEqual(budget);
  const remaining = await spendRest(session, echo);
  expect([remaining >= 0, remaining < each]).toEqual([true, true]);
  expect(await reportedSpend(token)).toBe((await amountsOf(id)).spent);
  expect(await differences(wallet())).toEqual([]);
});

it("an ended session stays ended after an abort of the wallet, even if the session was never used", async () => {
  const [used, fresh] = [await mint({}), await mint({})];
  expect((await chat(used.token)).status).toBe(200);
  for (const { id } of [used, fresh]) {
    const ended = await send(`/v1/sessions/${id}`, { key: account.key, method: "DELETE" });
    expect(ended.status).toBe(200);
  }
  await abort(wallet());
  expect([(await chat(used.token)).status, (await chat(fresh.token)).status]).toEqual([401, 401]);
});

async function statusOf(response: Response): Promise<number> {
  await response.text();
  return response.status;
}
