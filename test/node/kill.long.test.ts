import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerdPid } from "../../scripts/workerd.ts";
import { killRegion } from "./support/kill-region.ts";
import { makeOrganization } from "./support/organization.ts";
import { openRaw } from "./support/raw-request.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";

const READS = 200;

const CREDITS = 1_000_000_000;
const KILLS = 20;

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

/** Reads a response until `marker`, then kills the region. */
async function killedAfter(key: string, request: object, marker: string): Promise<string> {
  const connection = await openRaw({
    url: `${regions.eu.baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "pay for this" }],
      ...request,
    }),
  });
  const pid = workerdPid(regions.eu.port);
  const arrived = await connection.readUntil((received) => received.includes(marker));
  await killRegion(regions.eu, pid);
  const text = connection.received().toString();
  await connection.reset();
  expect(arrived).toBe(true);
  return text;
}

async function balance(key: string): Promise<number> {
  const response = await fetch(`${regions.eu.baseUrl}/balance`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { credits_micro: number }).credits_micro;
}

async function cost(key: string): Promise<number> {
  const before = await balance(key);
  const response = await fetch(`${regions.eu.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "pay for this" }],
    }),
  });
  await response.text();
  const micro = Number(response.headers.get("x-cost-micro"));
  expect(await balance(key)).toBe(before - micro);
  return micro;
}

describe("a region that is killed right after a response", () => {
  it(`loses no charge of a stream that the client has read up to [DONE]: ${KILLS} of ${KILLS}`, async () => {
    const { key } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, {
      credits: CREDITS,
      rpmLimit: 1000,
    });
    const each = await cost(key);
    const before = await balance(key);
    for (let kill = 1; kill <= KILLS; kill++) {
      await killedAfter(key, { stream: true }, "data: [DONE]\n\n");
      expect(await balance(key)).toBe(before - kill * each);
    }
  });

  it(`loses no charge of a JSON response that the client has read: ${KILLS} of ${KILLS}`, async () => {
    const { key } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, {
      credits: CREDITS,
      rpmLimit: 1000,
    });
    const each = await cost(key);
    const before = await balance(key);
    for (let kill = 1; kill <= KILLS; kill++) {
      await killedAfter(key, {}, '"usage"');
      expect(await balance(key)).toBe(before - kill * each);
    }
  });
});

describe("the balance right after a response", () => {
  it(`includes the charge of JSON responses and streams: ${READS} of ${READS}`, async () => {
    const { key } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, {
      credits: CREDITS,
      rpmLimit: 1000,
    });
    const each = await cost(key);
    let expected = await balance(key);
    for (let read = 0; read < READS; read++) {
      const response = await fetch(`${regions.eu.baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "sandbox/echo",
          messages: [{ role: "user", content: "pay for this" }],
          stream: read % 2 === 0,
        }),
      });
      await response.text();
      expected -= each;
      expect(await balance(key)).toBe(expected);
    }
  });
});
