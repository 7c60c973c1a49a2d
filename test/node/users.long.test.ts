import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account, sumOf } from "./support/account.ts";
import { mapConcurrently } from "../../src/shared/map-concurrently.ts";
import { startPersistentRegion } from "./support/two-regions.ts";
import type { PersistentRegion } from "./support/two-regions.ts";

let kept: PersistentRegion;
beforeAll(async () => {
  kept = await startPersistentRegion();
});
afterAll(() => kept.stop());

const CREDITS = 1_000_000;
const open = (credits = CREDITS): Promise<Account> => Account.open(kept.region, { credits });

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
  const response = await fetch(`${kept.region().baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as EndUser };
}

/** Returns the field of a daily quota in micro-credits. */
const limit = (amount: number): object => ({ daily_quota_dollars: amount / 1e6 });

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
