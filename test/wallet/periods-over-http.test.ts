import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { chat, errorOf, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { putUser, readUser, sendUser } from "../contract/end-users.ts";
import type { EndUser } from "../contract/end-users.ts";
import { mockUpstream, upstreamBindings, upstreamCompletion } from "../contract/upstream.ts";
import { setClock, valueOf } from "./wallet-desk.ts";

afterEach(() => setClock(null));

/** The cost of the mock's response in micro-credits. */
const COST = 20;

/** Stops the clock of the test and of every object at this time. */
function stopClockAt(ms: number): void {
  const standing = Date.now();
  vi.spyOn(Date, "now").mockReturnValue(standing);
  setClock(ms);
}

/** The end of another day. `sameMonth`: the month continues. */
const MIDNIGHTS = [
  ["14 May", Date.UTC(2031, 4, 15), true],
  ["31 May", Date.UTC(2031, 5, 1), false],
  ["31 December", Date.UTC(2032, 0, 1), false],
  ["28 February", Date.UTC(2031, 2, 1), false],
  ["28 February of a leap year", Date.UTC(2032, 1, 29), true],
  ["29 February", Date.UTC(2032, 2, 1), false],
] as const;

/** Sends a completion for the end user `u`. */
function ask({ key }: Account, fields: Record<string, unknown> = {}): Promise<Response> {
  const bindings = upstreamBindings();
  return chat(key, { model: "mock/chat", user: "u", ...fields }, { bindings });
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns an end user's spend of the day and month in micro-credits. */
async function spendOf({ key }: Account, externalId = "u"): Promise<[day: number, month: number]> {
  const user = await readUser(key, externalId);
  const { users } = await (await send("/v1/users", { key })).json<{ users: EndUser[] }>();
  expect(users).toEqual([user]);
  return [user.daily_spend_dollars, user.monthly_spend_dollars].map((dollars) =>
    Math.round(dollars * 1e6),
  ) as [number, number];
}

async function costOfDay({ orgId }: Account, ms: number): Promise<number> {
  const day = dayOf(ms);
  return valueOf(await env.WALLET.getByName(orgId).usage(day, day, "day")).total.costMicro;
}

describe.each(MIDNIGHTS)("the midnight after %s", (_day, midnight, sameMonth) => {
  it("counts a request from 23:59:59.999 that is settled at 00:00:05 in the old day and month", async () => {
    const gate = Promise.withResolvers<null>();
    const reached = Promise.withResolvers<null>();
    const { calls } = mockUpstream(async () => {
      if (calls.length === 2) {
        reached.resolve(null);
        await gate.promise;
      }
      return upstreamCompletion();
    });
    stopClockAt(midnight - 1);
    const account = await openAccount();
    expect((await ask(account)).headers.get("x-cost-micro")).toBe(String(COST));
    expect(await spendOf(account)).toEqual([COST, COST]);
    const inFlight = ask(account);
    await reached.promise;
    stopClockAt(midnight + 5000);
    gate.resolve(null);
    expect((await inFlight).status).toBe(200);
    const old = sameMonth ? 2 * COST : 0;
    expect(await spendOf(account)).toEqual([0, old]);
    expect((await ask(account)).status).toBe(200);
    await evictDurableObject(env.WALLET.getByName(account.orgId));
    expect(await spendOf(account)).toEqual([COST, old + COST]);
    expect(await costOfDay(account, midnight - 1)).toBe(2 * COST);
    expect(await costOfDay(account, midnight)).toBe(COST);
  });

  it("resets the day's spend and quota at 00:00:00.000 without traffic or a job", async () => {
    mockUpstream(() => upstreamCompletion());
    const short = { max_tokens: 10 };
    stopClockAt(midnight - 1);
    const poor = await openAccount({ credits: 0 });
    const { required_micro: least = 0 } = await errorOf(await ask(poor, short), 402);
    const account = await openAccount();
    const limits = { daily_quota_dollars: (least + COST - 1) / 1e6, monthly_quota_dollars: 1 };
    const made = await putUser(account.key, { external_id: "u", ...limits });
    expect((await ask(account, short)).status).toBe(200);
    const refused = await errorOf(await ask(account, short), 429);
    expect(refused.message).toContain("your current daily quota");

    stopClockAt(midnight);
    const month = sameMonth ? COST : 0;
    expect(await spendOf(account)).toEqual([0, month]);
    const shown = { ...made, monthly_spend_dollars: month / 1e6 };
    expect(await putUser(account.key, { external_id: "u" }, 200)).toEqual(shown);
    const patched = await sendUser("u", account.key, { method: "PATCH", body: {} });
    expect(await patched.json()).toEqual(shown);
    expect((await ask(account, short)).status).toBe(200);
    expect(await spendOf(account)).toEqual([COST, month + COST]);
  });
});

describe.each([
  ["30 seconds", 30_000],
  ["an hour", 3_600_000],
])("a clock that steps back %s over the new year", (_by, back) => {
  it("starts no second day, and leads to each charge being counted once", async () => {
    const newYear = Date.UTC(2032, 0, 1);
    mockUpstream(() => upstreamCompletion());
    stopClockAt(newYear - back);
    const account = await openAccount();
    expect((await ask(account)).status).toBe(200);
    stopClockAt(newYear);
    expect(await spendOf(account)).toEqual([0, 0]);
    expect((await ask(account)).status).toBe(200);
    stopClockAt(newYear - back);
    expect(await spendOf(account)).toEqual([COST, COST]);
    expect((await ask(account)).status).toBe(200);
    await evictDurableObject(env.WALLET.getByName(account.orgId));
    expect(await spendOf(account)).toEqual([2 * COST, 2 * COST]);
    const limit = { daily_quota_dollars: (2 * COST) / 1e6 };
    await putUser(account.key, { external_id: "u", ...limit }, 200);
    expect((await errorOf(await ask(account), 429)).code).toBe("end_user_quota_exceeded");
    stopClockAt(newYear + 1000);
    expect(await spendOf(account)).toEqual([2 * COST, 2 * COST]);
    expect((await errorOf(await ask(account), 429)).code).toBe("end_user_quota_exceeded");
    const cost = (await costOfDay(account, newYear - 1)) + (await costOfDay(account, newYear));
    expect(cost).toBe(3 * COST);
    expect(valueOf(await env.WALLET.getByName(account.orgId).reconcile()).differences).toEqual([]);
  });
});
