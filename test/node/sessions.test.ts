import { describe, expect, it } from "vitest";
import { call, CHAT, delivered, keysInUse, revoke, statusOf } from "./support/peer-keys.ts";
import { peerFixture } from "./support/peer-fixture.ts";
import type { TestRegion } from "./support/two-regions.ts";

const fixture = peerFixture();
const { cut, heal } = fixture;

type Minted = { readonly id: string; readonly token: string };

async function mint(region: TestRegion, key: string, body: object = {}): Promise<Minted> {
  const response = await call(region, key, "/sessions", { body });
  expect(response.status).toBe(201);
  return (await response.json()) as Minted;
}

const pays = (region: TestRegion, token: string): Promise<number> =>
  statusOf(region, token, "/chat/completions", CHAT);

async function usedOf(
  key: string,
): Promise<readonly { id: string; spent_dollars: number; held_dollars: number }[]> {
  const response = await call(fixture.regions.eu, key, "/sessions");
  return ((await response.json()) as { sessions: [] }).sessions;
}

describe("a session of a global key", () => {
  it("pays and reads in both regions, even if the session was created in the other region", async () => {
    const { token, id } = await mint(fixture.regions.us, fixture.owner.key, { end_user: "far" });
    for (const region of [fixture.regions.us, fixture.regions.eu]) {
      expect(await pays(region, token)).toBe(200);
      expect(await statusOf(region, token, "/models")).toBe(200);
      const own = await (await call(region, token, "/key")).json();
      expect(own).toMatchObject({ id, end_user: "far" });
      expect(await statusOf(region, token, "/balance")).toBe(403);
      expect(await statusOf(region, token, "/keys", { body: { name: "x" } })).toBe(403);
      expect(await statusOf(region, token, "/sessions", { body: {} })).toBe(403);
    }
  });

  it("gets 401 in both regions after the session ends, for paid requests, reads and management", async () => {
    const { token, id } = await mint(fixture.regions.eu, fixture.owner.key);
    expect([await pays(fixture.regions.us, token), await pays(fixture.regions.eu, token)]).toEqual([
      200, 200,
    ]);
    expect(
      await statusOf(fixture.regions.us, fixture.owner.key, `/sessions/${id}`, {
        method: "DELETE",
      }),
    ).toBe(200);
    for (const region of [fixture.regions.us, fixture.regions.eu]) {
      expect([await pays(region, token), await statusOf(region, token)]).toEqual([401, 401]);
      for (const path of ["/key", "/balance", "/keys"]) {
        expect([path, await statusOf(region, token, path)]).toEqual([path, 401]);
      }
    }
    await cut();
    expect([await pays(fixture.regions.us, token), await pays(fixture.regions.eu, token)]).toEqual([
      401, 401,
    ]);
  });

  it("gets no access in either region after the key is revoked, neither while the link is down nor afterwards", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    if (key === undefined) throw new Error("no key");
    const used = await mint(fixture.regions.eu, key.key);
    const fresh = await mint(fixture.regions.eu, key.key);
    expect([
      await pays(fixture.regions.us, used.token),
      await pays(fixture.regions.eu, used.token),
    ]).toEqual([200, 200]);
    await cut();
    expect(await revoke(fixture.regions, fixture.owner.key, key.id)).toBe(200);
    for (const { token } of [used, fresh]) {
      expect([
        await pays(fixture.regions.eu, token),
        await pays(fixture.regions.us, token),
      ]).toEqual([401, 503]);
    }
    await heal();
    await delivered(fixture.regions.eu);
    await cut();
    for (const { token } of [used, fresh]) {
      expect([
        await pays(fixture.regions.us, token),
        await statusOf(fixture.regions.us, token),
      ]).toEqual([401, 401]);
    }
  });

  it.each([false, true])(
    "never exceeds the session's budget across both regions (stream: %s)",
    async (stream) => {
      const key = fixture.owner.key;
      const { token: probe } = await mint(fixture.regions.eu, key, { budget_dollars: 0 });
      const body = { ...CHAT.body, stream };
      const refused = await call(fixture.regions.eu, probe, "/chat/completions", { body });
      expect(refused.status).toBe(402);
      const { error } = (await refused.json()) as { error: { required_micro: number } };
      const budget = (10 * error.required_micro) / 1_000_000;
      const { token, id } = await mint(fixture.regions.eu, key, { budget_dollars: budget });
      const seen = await Promise.all(
        Array.from({ length: 60 }, (_, i) =>
          statusOf(
            i % 2 === 0 ? fixture.regions.us : fixture.regions.eu,
            token,
            "/chat/completions",
            {
              body,
            },
          ),
        ),
      );
      expect([seen.includes(200), seen.includes(402)]).toEqual([true, true]);
      await delivered(fixture.regions.us);
      const session = (await usedOf(key)).find((one) => one.id === id);
      expect(session?.spent_dollars).toBeGreaterThan(0);
      expect(session?.spent_dollars).toBeLessThanOrEqual(budget);
      expect(session?.held_dollars).toBe(0);
    },
  );
});
