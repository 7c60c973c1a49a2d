import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DONE, FINISH, usageChunk } from "../fixtures/openai-replies.ts";
import { killRegion } from "./support/kill-region.ts";
import { effortFor } from "../effort.ts";
import { resolved } from "./support/money.ts";
import { HELLO, stream } from "./support/stream-scripts.ts";
import { CREDITS, startStream, startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { Organization, UpstreamFixture } from "./support/upstream-fixture.ts";

const KILLS = effortFor(2, 5);

/** Lets the provider respond. */
let release: () => void = () => undefined;
let released = Promise.resolve();

let fixture: UpstreamFixture;
beforeAll(async () => {
  fixture = await startUpstreamFixture({
    models: { held: ["held"] },
    scripts: {
      held: async (request, response) => {
        const isStream = request.json["stream"] === true;
        if (isStream) startStream(response).write(stream(...HELLO));
        await released;
        if (isStream) response.end(stream(FINISH, usageChunk(), DONE));
        return isStream; // else the mock's default response
      },
    },
  });
});
afterAll(() => fixture.stop());

let owner: Organization;
beforeEach(async () => {
  owner = await fixture.organization();
});

type Key = { readonly id: string; readonly key: string; readonly revoked: boolean };
type Answer = { readonly status: number; readonly headers: Headers; readonly text: string };

async function call(key: string, method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(fixture.eu.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { status, headers } = response;
  return { status, headers, text: await response.text() };
}

async function makeKey(scope = "regional"): Promise<Key> {
  const body = { name: "victim", rpm_limit: 1000, scope };
  const response = await call(owner.key, "POST", "/keys", body);
  expect(response.status).toBe(201);
  return JSON.parse(response.text) as Key;
}

const revoke = (id: string): Promise<Answer> => call(owner.key, "DELETE", `/keys/${id}`);
const chat = (key: string, more: object = {}): Promise<Answer> =>
  call(key, "POST", "/chat/completions", {
    model: "sandbox/echo",
    messages: [{ role: "user", content: "hi" }],
    ...more,
  });
const isRevoked = async (id: string): Promise<boolean | undefined> => {
  const listed = await call(owner.key, "GET", "/keys");
  const { keys } = JSON.parse(listed.text) as { keys: Key[] };
  return keys.find((one) => one.id === id)?.revoked;
};
describe("a revoked key in its home region", () => {
  it.each([true, false])(
    "completes and pays for a request in progress, and gets 401 for later requests (stream: %s)",
    async (isStream) => {
      const { id, key } = await makeKey();
      released = new Promise((resolve) => (release = resolve));
      const before = fixture.mock.requests.length;
      const running = fixture.send(key, "held", { stream: isStream });
      await expect.poll(() => fixture.mock.requests.length).toBe(before + 1);
      expect((await revoke(id)).status).toBe(200);
      expect((await chat(key)).status).toBe(401);
      release();
      const answer = await running;
      expect(answer.status).toBe(200);
      expect(answer.text).toContain(isStream ? "data: [DONE]" : '"finish_reason":"stop"');
      const { micro, held, records } = await fixture.spent(owner.orgId);
      expect(records.map((one) => [one.keyId, one.model])).toEqual([[id, "held"]]);
      expect(micro).toBe(records[0]?.costMicro);
      expect([micro > 0, held]).toEqual([true, 0]);
    },
  );

  it("gets either a complete, charged response or a 401 for each of 100 requests around the DELETE", async () => {
    const { id, key } = await makeKey();
    const seen: (Answer & { readonly startedAfter: boolean; readonly isStream: boolean })[] = [];
    const raced = { isRevoked: false, started: 0 };
    const one = async (isStream: boolean): Promise<void> => {
      const startedAfter = raced.isRevoked;
      seen.push({ ...(await chat(key, { stream: isStream })), startedAfter, isStream });
    };
    const caller = async (): Promise<void> => {
      while (raced.started < 80) await one(raced.started++ % 2 === 0);
    };
    const callers = Array.from({ length: 16 }, caller);
    await expect.poll(() => seen.length, { interval: 1 }).toBeGreaterThan(20);
    const answer = await revoke(id);
    raced.isRevoked = true;
    expect(answer.status).toBe(200);
    await Promise.all([...callers, ...Array.from({ length: 20 }, (_, i) => one(i % 2 === 0))]);
    const served = seen.filter((each) => each.status === 200);
    const refused = seen.filter((each) => each.status === 401);
    expect([seen.length, served.length + refused.length]).toEqual([100, 100]);
    expect(served.length).toBeGreaterThan(20);
    expect(seen.filter((each) => each.startedAfter).length).toBeGreaterThanOrEqual(20);
    expect(served.filter((each) => each.startedAfter)).toEqual([]);
    for (const each of served) {
      expect(each.text).toContain(each.isStream ? "data: [DONE]" : '"finish_reason":"stop"');
    }
    const { micro, held, records } = await fixture.spent(owner.orgId);
    const ids = served.map((each) => each.headers.get("x-request-id"));
    expect(new Set(records.map((record) => record.id))).toEqual(new Set(ids));
    expect(records).toHaveLength(served.length);
    expect(micro).toBe(records.reduce((sum, record) => sum + record.costMicro, 0));
    expect(held).toBe(0);
  });
});

describe("a DELETE of a key", () => {
  it(`remains effective if the region is killed right after the response: ${KILLS} of ${KILLS}`, async () => {
    for (let kill = 0; kill < KILLS; kill++) {
      const { id, key } = await makeKey();
      expect((await chat(key)).status).toBe(200);
      expect((await revoke(id)).status).toBe(200);
      await killRegion(fixture.eu);
      expect((await chat(key)).status).toBe(401);
      expect(await isRevoked(id)).toBe(true);
    }
    const balance = await resolved(fixture.eu, owner.orgId);
    expect(balance.credits_micro).toBeLessThan(CREDITS);
  });
});
