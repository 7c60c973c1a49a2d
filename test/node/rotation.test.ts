import { describe, expect, it } from "vitest";
import { call, chat, delivered, keysInUse, revoke, statusOf } from "./support/peer-keys.ts";
import { peerFixture } from "./support/peer-fixture.ts";
import type { GlobalKey } from "./support/peer-keys.ts";
import type { TestRegion } from "./support/two-regions.ts";

const fixture = peerFixture();
const { cut, heal } = fixture;

async function rotate(
  region: TestRegion,
  by: string,
  { id, hash }: GlobalKey,
  overlap_seconds = 0,
): Promise<GlobalKey> {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const response = await call(region, by, `/keys/${id}/rotate`, {
    body: { overlap_seconds },
    headers,
  });
  expect(response.status).toBe(201);
  return { id, hash, key: ((await response.json()) as { key: string }).key };
}

const chats = (region: TestRegion, keys: readonly GlobalKey[]): Promise<number[]> =>
  Promise.all(keys.map((one) => chat(region, one)));

describe("a replaced secret of a global key", () => {
  it("gets 401 in the home region, and 503 in the other region until the connection is restored, then 401", async () => {
    const keys = await keysInUse(fixture.regions, fixture.owner, 3);
    await cut();
    const fresh = await Promise.all(
      keys.map((key) => rotate(fixture.regions.eu, fixture.owner.key, key)),
    );
    expect(await chats(fixture.regions.eu, keys)).toEqual([401, 401, 401]);
    expect(await chats(fixture.regions.us, keys)).toEqual([503, 503, 503]);
    expect(await statusOf(fixture.regions.us, keys[0]?.key ?? "", "/models")).toBe(503);
    await heal();
    await delivered(fixture.regions.eu);
    await cut();
    expect(await chats(fixture.regions.us, keys)).toEqual([401, 401, 401]);
    expect(await chats(fixture.regions.us, fresh)).toEqual([503, 503, 503]);
    await heal();
    expect(await chats(fixture.regions.us, fresh)).toEqual([200, 200, 200]);
    expect(await chats(fixture.regions.eu, fresh)).toEqual([200, 200, 200]);
  });

  it("gets 401 in the other region for paid calls, reads and writes, even if the revocation message is lost", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    if (key === undefined) throw new Error("no key");
    await fixture.regions.toUs.set("refuse");
    await rotate(fixture.regions.eu, fixture.owner.key, key);
    expect(await chat(fixture.regions.us, key)).toBe(401);
    expect(await statusOf(fixture.regions.us, key.key, "/models")).toBe(401);
    expect(await statusOf(fixture.regions.us, key.key, "/balance")).toBe(401);
    expect(
      await statusOf(fixture.regions.us, key.key, "/users", { body: { external_id: "u" } }),
    ).toBe(401);
  });

  it("gets 401 in both regions after a DELETE of the key, as does the new secret", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    if (key === undefined) throw new Error("no key");
    const fresh = await rotate(fixture.regions.us, key.key, key, 600);
    for (const region of [fixture.regions.us, fixture.regions.eu]) {
      expect(await chats(region, [key, fresh])).toEqual([200, 200]);
    }
    expect(await revoke(fixture.regions, fixture.owner.key, key.id)).toBe(200);
    expect(await chats(fixture.regions.us, [key, fresh])).toEqual([401, 401]);
    await delivered(fixture.regions.eu);
    await cut();
    expect(await chats(fixture.regions.us, [key, fresh])).toEqual([401, 401]);
  });
});
