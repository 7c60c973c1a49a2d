import { beforeAll, describe, expect, it } from "vitest";
import { addCredits, balanceOf, chat, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount({ credits: 12_345_678 });
});

type Balance = Record<"credits_micro" | "held_micro" | "available_micro", number>;
const read = async (key: string): Promise<unknown> => (await send("/v1/balance", { key })).json();

describe("GET /v1/balance", () => {
  it("returns only the balance in micro-credits and in dollars", async () => {
    const response = await send("/v1/balance", { key: account.key });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual({
      credits_micro: 12_345_678,
      credits_dollars: 12.345678,
      held_micro: 0,
      available_micro: 12_345_678,
      owed_micro: 0,
    });
  });

  it.each([
    [1, 0.000001],
    [8_200_000, 8.2],
    [123_456_789_012_345, 123_456_789.012345],
  ])("returns %i micro-credits as %d dollars", async (micros, dollars) => {
    const { key } = await openAccount({ credits: micros });
    expect(await read(key)).toMatchObject({ credits_micro: micros, credits_dollars: dollars });
  });

  it("returns 0 without credits; reads still succeed, and completions return 402", async () => {
    const { key } = await openAccount({ credits: 0 });
    expect(await read(key)).toMatchObject({ credits_micro: 0, available_micro: 0 });
    for (const path of ["/v1/models", "/v1/models/sandbox/echo", "/v1/balance"]) {
      expect([path, (await send(path, { key })).status]).toEqual([path, 200]);
    }
    expect((await chat(key)).status).toBe(402);
  });

  it("immediately includes new credits, corrections and charges", async () => {
    const { orgId, key } = await openAccount({ credits: 5000 });
    await addCredits(orgId, 1000);
    await addCredits(orgId, -2000);
    expect(await balanceOf(key)).toBe(4000);
    const cost = Number((await chat(key)).headers.get("x-cost-micro"));
    expect(cost).toBeGreaterThan(0);
    expect(await balanceOf(key)).toBe(4000 - cost);
  });

  it("returns the total of open holds, which reduces only the available amount", async () => {
    const { key } = await openAccount({ credits: 1_000_000 });
    const open = await chat(key, { model: "sandbox/stall", stream: true, max_tokens: 100 });
    const reader = open.body?.getReader();
    await reader?.read();
    const { credits_micro, held_micro, available_micro } = (await read(key)) as Balance;
    expect(credits_micro).toBe(1_000_000);
    expect(held_micro).toBeGreaterThan(0);
    expect(available_micro).toBe(1_000_000 - held_micro);
    await reader?.cancel();
  });
});
