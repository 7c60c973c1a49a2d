import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import { Account, sumOf } from "./support/account.ts";
import { mapConcurrently } from "../../src/shared/map-concurrently.ts";
import { startTwoRegions } from "./support/two-regions.ts";

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
let mock: Awaited<ReturnType<typeof startMockProvider>>;

beforeAll(async () => {
  mock = await startMockProvider();
  regions = await startTwoRegions({
    bindings: {
      PROVIDERS: JSON.stringify([
        { id: "local", base_url: mock.url, profile: "generic", regions: ["eu", "us"] },
      ]),
      MODELS: JSON.stringify([
        {
          id: "local/chat",
          kind: "chat",
          context: 128_000,
          max_output: 16_384,
          price: { input: 1_000_000, output: 2_000_000 },
          routes: [{ provider: "local", upstream_id: "chat" }],
        },
      ]),
    },
  });
});
afterAll(async () => {
  await regions.stop();
  await mock.close();
});
beforeEach(() => {
  mock.script(null);
});

const CREDITS = 1_000_000;
const open = (credits = CREDITS): Promise<Account> => Account.open(() => regions.eu, { credits });

/**
 * The minimum equals the maximum: the prompt is held at its upper bound, and caps below 64 tokens
 * are never lowered.
 */
const REQUEST = {
  model: "sandbox/echo",
  messages: [{ role: "user", content: "what does it cost?" }],
  max_tokens: 20,
};

type EndUser = {
  readonly id: string;
  readonly monthly_spend_dollars: number;
  readonly daily_spend_dollars: number;
};

/** Sends a management request. Returns the status and JSON. */
async function manage(
  account: Account,
  [method, path]: readonly [method: string, path: string],
  body?: object,
): Promise<{ readonly status: number; readonly json: EndUser }> {
  const response = await fetch(`${regions.eu.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as EndUser };
}

/** Returns the field of a daily quota in micro-credits. */
const limit = (amount: number): object => ({ daily_quota_dollars: amount / 1e6 });

const patchUser = (account: Account, body: object) => manage(account, ["PATCH", "/users/u"], body);

/** Returns an end user's spend of this month in micro-credits. */
async function spendOf(account: Account, externalId = "u"): Promise<number> {
  const { json } = await manage(account, ["GET", `/users/${externalId}`]);
  expect(json.daily_spend_dollars).toBe(json.monthly_spend_dollars);
  return Math.round(json.monthly_spend_dollars * 1e6);
}

/** Returns the reserved amount of a request from its rejection. */
async function leastOf(body: object): Promise<number> {
  const { error } = (await (await (await open(0)).chat(body)).json()) as {
    error: { required_micro: number };
  };
  return error.required_micro;
}

type Paid = { readonly user: string; readonly status: number; readonly cost: number };

async function pay(account: Account, user: string): Promise<Paid> {
  const response = await account.chat({ ...REQUEST, user });
  await response.text();
  return { user, status: response.status, cost: Number(response.headers.get("x-cost-micro")) };
}

const PAID = 200;
const AT_ONCE = 16;

/**
 * Sends 200 paid requests of alternating users, each with a concurrent management request. Checks
 * that the ledger, balance and database agree and that nothing else was charged. Returns the spend.
 */
async function race(
  account: Account,
  users: readonly string[],
  change: (turn: number) => Promise<number>,
): Promise<{ readonly paid: readonly Paid[]; readonly changed: readonly number[] }> {
  const changed: number[] = [];
  const jobs = Array.from({ length: PAID }, (_, turn) => [
    () => pay(account, users[turn % users.length] ?? ""),
    async () => void changed.push(await change(turn)),
  ]).flat();
  const paid = (await mapConcurrently(AT_ONCE, jobs, (job) => job())).filter(
    (one) => one !== undefined,
  );
  expect(paid).toHaveLength(PAID);
  expect(changed).toHaveLength(PAID);
  const { credits_micro, held_micro } = await account.resolved();
  const total = paid.reduce((sum, one) => sum + one.cost, 0);
  expect([credits_micro, held_micro]).toEqual([CREDITS - total, 0]);
  const rows = await account.ledger();
  expect(sumOf(rows)).toBe(credits_micro);
  const served = paid.filter((one) => one.status === 200);
  expect(rows.filter((row) => row.kind === "usage")).toHaveLength(served.length);
  expect(served.every((one) => one.cost > 0)).toBe(true);
  expect((await account.published()).balance).toBe(credits_micro);
  expect(await account.differences()).toEqual([]);
  return { paid, changed };
}

const costOf = (paid: readonly Paid[], user: string): number =>
  paid.filter((one) => one.user === user).reduce((sum, one) => sum + one.cost, 0);

describe("the spend of 200 concurrent paid requests", () => {
  it("stays complete during 200 concurrent settings changes, a quarter of them rejected", async () => {
    const account = await open();
    const path = `/orgs/${account.orgId}/settings`;
    const { paid, changed } = await race(account, ["a", "b"], async (turn) => {
      const settings = {
        default_user_daily_quota_dollars: turn % 2 === 0 ? null : 1,
        low_balance_threshold_dollars: 0.99,
        ...(turn % 4 === 0 && { credits_micro: 5_000_000 }),
      };
      return (await manage(account, ["PATCH", path], settings)).status;
    });
    expect(changed.filter((status) => status === 400)).toHaveLength(PAID / 4);
    expect(new Set(changed)).toEqual(new Set([200, 400]));
    expect(new Set(paid.map((one) => one.status))).toEqual(new Set([200]));
    for (const user of ["a", "b"]) expect(await spendOf(account, user)).toBe(costOf(paid, user));
  });

  it("stays complete while an end user's quota changes 200 times", async () => {
    const account = await open();
    const { cost } = await pay(await open(), "u");
    const quota = (await leastOf(REQUEST)) + 20 * cost;
    await manage(account, ["POST", "/users"], { external_id: "u", ...limit(quota) });
    const { paid, changed } = await race(account, ["u", "free"], async (turn) => {
      const how = turn % 3 === 0 ? ["POST", "/users"] : ["PATCH", "/users/u"];
      const lowered = limit(turn % 4 < 2 ? quota : quota - 10 * cost);
      const [method = "", path = ""] = how;
      return (await manage(account, [method, path], { external_id: "u", ...lowered })).status;
    });
    expect(new Set(changed)).toEqual(new Set([200]));
    expect(new Set(paid.map((one) => one.status))).toEqual(new Set([200, 429]));
    expect(paid.filter((one) => one.user === "free" && one.status !== 200)).toEqual([]);
    const spend = await spendOf(account);
    expect(spend).toBe(costOf(paid, "u"));
    expect(spend).toBeGreaterThan(0);
    expect(spend).toBeLessThanOrEqual(quota);
    expect(await spendOf(account, "free")).toBe(costOf(paid, "free"));
  });

  it("stays complete while the end user is deleted 200 times", async () => {
    const account = await open();
    const { paid, changed } = await race(account, ["gone", "stays"], async () => {
      return (await manage(account, ["DELETE", "/users/gone"])).status;
    });
    expect(new Set(paid.map((one) => one.status))).toEqual(new Set([200]));
    expect(new Set(changed)).toEqual(new Set([200, 404]));
    expect(await spendOf(account, "stays")).toBe(costOf(paid, "stays"));
    await manage(account, ["POST", "/users"], { external_id: "gone" });
    expect(await spendOf(account, "gone")).toBe(costOf(paid, "gone"));
    expect((await manage(account, ["DELETE", "/users/gone"])).status).toBe(200);
    expect((await account.published()).endUsers).toMatchObject([{ external_id: "stays" }]);
  });
});

describe("an end user's quota", () => {
  it("admits the next request if raised, and rejects the next request if lowered below the spend", async () => {
    const account = await open();
    const least = await leastOf(REQUEST);
    const quota = (micros: number) => patchUser(account, limit(micros));
    await manage(account, ["POST", "/users"], { external_id: "u", daily_quota_dollars: 0 });
    const status = async (): Promise<number> => (await pay(account, "u")).status;
    expect(await status()).toBe(429);
    await quota(least - 1);
    expect(await status()).toBe(429);
    await quota(least);
    expect(await status()).toBe(200);
    const spent = await spendOf(account);
    expect(await status()).toBe(429);
    await quota(spent + least);
    expect(await status()).toBe(200);
    await quota(spent);
    expect(await status()).toBe(429);
    await patchUser(account, { daily_quota_dollars: null });
    expect(await status()).toBe(200);
    await patchUser(account, { monthly_quota_dollars: 0 });
    expect(await status()).toBe(429);
    expect(await spendOf(account)).toBe(CREDITS - (await account.balance()));
  });
});

describe("an end user who is deleted while requests are running", () => {
  it("pays for the running requests, and a new end user with the same ID inherits the spend", async () => {
    const account = await open();
    const gate = Promise.withResolvers<boolean>();
    const reached = Promise.withResolvers<null>();
    let waiting = 0;
    mock.script(() => {
      if (++waiting === 2) reached.resolve(null);
      return gate.promise;
    });
    const made = await manage(account, ["POST", "/users"], { external_id: "u" });
    const body = { ...REQUEST, model: "local/chat", user: "u" };
    const inFlight = [account.chat(body), account.chat({ ...body, stream: true })];
    await reached.promise;
    expect((await account.standing()).open_holds).toBe(2);
    const gone = await manage(account, ["DELETE", "/users/u"]);
    expect(gone).toEqual({ status: 200, json: { external_id: "u", deleted: true } });
    gate.resolve(false);
    const [whole, stream] = await Promise.all(inFlight);
    expect([whole?.status, stream?.status]).toEqual([200, 200]);
    expect(await stream?.text()).toContain("data: [DONE]");
    const { credits_micro } = await account.resolved();
    expect(CREDITS - credits_micro).toBe(2 * Number(whole?.headers.get("x-cost-micro")));
    expect(credits_micro).toBeLessThan(CREDITS);
    expect((await manage(account, ["GET", "/users/u"])).status).toBe(404);
    expect((await account.published()).endUsers).toEqual([]);
    const again = await manage(account, ["POST", "/users"], { external_id: "u" });
    const spent = (CREDITS - credits_micro) / 1_000_000;
    expect(again).toMatchObject({ status: 201, json: { monthly_spend_dollars: spent } });
    expect(again.json.id).not.toBe(made.json.id);
    expect(await account.differences()).toEqual([]);
  });
});
