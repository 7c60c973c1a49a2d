import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerdPid } from "../../scripts/workerd.ts";
import { killRegion } from "./support/kill-region.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion } from "./support/two-regions.ts";

const CAPTURERS = 20;
const ROUNDS = 10;
const HELD_MICRO = 10_000;
const MICROS = 1_000_000;
/** Every second capture repeats the previous amount, and the last two exceed the hold. */
const AMOUNTS = Array.from({ length: CAPTURERS }, (_, n) => 1200 * (Math.floor(n / 2) + 1));

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

type Json = Readonly<Record<string, unknown>>;
type Reply = { readonly status: number; readonly body: Json };

async function send(url: string, bearer: string, body?: object): Promise<Reply> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

/** Retries until a response isn't a 5xx, as SDKs do. */
async function sent(url: string, bearer: string, body?: object): Promise<Reply> {
  for (let tries = 0; tries < 200; tries++) {
    const reply = await send(url, bearer, body).catch(() => null);
    if (reply !== null && reply.status < 500) return reply;
    await sleep(50);
  }
  throw new Error(`${url} has no response`);
}

/** Creates an organization with a dollar and a key that can place holds. */
async function payer(
  fields: object = {},
): Promise<{ readonly owner: string; readonly key: string }> {
  const organization = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, {
    credits: MICROS,
  });
  const terms = { name: "holds", may_hold: true, rpm_limit: 1000, ...fields };
  const { body } = await sent(`${regions.eu.baseUrl}/keys`, organization.key, terms);
  return { owner: organization.key, key: body["key"] as string };
}

async function merchantOf(region: TestRegion, name: string): Promise<string> {
  const { body } = await sent(`${region.adminUrl}/merchants`, ADMIN_TOKEN, { name });
  return body["secret"] as string;
}

async function balanceOf(key: string): Promise<readonly [credits: unknown, held: unknown]> {
  const { body } = await sent(`${regions.eu.baseUrl}/balance`, key);
  return [body["credits_micro"], body["held_micro"]];
}

describe("a hold that is charged by 20 concurrent calls while the region is killed", () => {
  it("charges only once, up to the held amount, and all calls return the same outcome", async () => {
    const { owner, key } = await payer();
    const secret = await merchantOf(regions.eu, "racing");
    let expected = MICROS;
    for (let round = 0; round < ROUNDS; round++) {
      const fields = { amount_dollars: HELD_MICRO / MICROS, merchant: "racing" };
      const hold = { ...fields, description: "a race" };
      const { body } = await sent(`${regions.eu.baseUrl}/holds`, key, hold);
      const url = `${regions.eu.baseUrl}/holds/${String(body["id"])}`;
      const pid = workerdPid(regions.eu.port);
      const capture = async (micro: number): Promise<Reply & { readonly micro: number }> => {
        await sleep(Math.random() * 60);
        const amount = { amount_dollars: micro / MICROS };
        return { micro, ...(await sent(`${url}/capture`, secret, amount)) };
      };
      const racing = AMOUNTS.map(capture);
      await sleep(10 + Math.random() * 50);
      await killRegion(regions.eu, pid);
      const replies = await Promise.all(racing);
      const captured = new Set(
        replies.filter(({ status }) => status === 200).map(({ micro }) => micro),
      );
      expect(captured.size).toBe(1);
      const [micro = NaN] = captured;
      expect(micro).toBeLessThanOrEqual(HELD_MICRO);
      for (const reply of replies) {
        const others = reply.micro > HELD_MICRO ? [400, 409] : [409];
        expect(reply.micro === micro ? [200] : others).toContain(reply.status);
      }
      expected -= micro;
      expect(await balanceOf(owner)).toEqual([expected, 0]);
      const shown = await sent(url, key);
      expect(shown.body).toMatchObject({ status: "captured", captured_dollars: micro / MICROS });
    }
  });
});

describe("a hold that is created in the other region", () => {
  it("reduces the home region's balance once, even if the merchant repeats the capture in either region", async () => {
    const { owner, key } = await payer({ scope: "global" });
    const secrets = {
      eu: await merchantOf(regions.eu, "both"),
      us: await merchantOf(regions.us, "both"),
    };
    let expected = MICROS;
    for (const name of ["us", "eu"] as const) {
      const hold = { amount_dollars: 0.1, merchant: "both", description: "a search" };
      const placed = await sent(`${regions.us.baseUrl}/holds`, key, hold);
      expect([placed.status, placed.body["status"]]).toEqual([201, "held"]);
      expect(await balanceOf(owner)).toEqual([expected, 100_000]);
      const url = `${regions[name].baseUrl}/holds/${String(placed.body["id"])}/capture`;
      const capture = { amount_dollars: 0.04 };
      for (let repeat = 0; repeat < 2; repeat++) {
        const captured = await sent(url, secrets[name], capture);
        expect([captured.status, captured.body["captured_dollars"]]).toEqual([200, 0.04]);
      }
      expected -= 40_000;
      expect(await balanceOf(owner)).toEqual([expected, 0]);
    }
  });

  it("counts against the key's budget instead of the balance if 'pays' is quota", async () => {
    const { owner, key } = await payer({ scope: "global", budget_dollars: 0.5 });
    const hold = { amount_dollars: 0.3, pays: "quota", description: "a GPU" };
    const placed = await sent(`${regions.us.baseUrl}/holds`, key, hold);
    expect(placed.status).toBe(201);
    const over = await sent(`${regions.eu.baseUrl}/holds`, key, hold);
    expect([over.status, (over.body["error"] as Json)["code"]]).toEqual([
      402,
      "key_budget_exceeded",
    ]);
    const url = `${regions.us.baseUrl}/holds/${String(placed.body["id"])}/capture`;
    expect((await sent(url, key, { amount_dollars: 0.25 })).status).toBe(200);
    const { body } = await sent(`${regions.eu.baseUrl}/key`, key);
    expect(body).toMatchObject({ spent_dollars: 0.25 });
    expect(await balanceOf(owner)).toEqual([MICROS, 0]);
  });
});
