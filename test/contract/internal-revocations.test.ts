import { env } from "cloudflare:workers";
import { listDurableObjectIds } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { bindingsWith } from "./client.ts";
import { sendAsPeer } from "./peer-client.ts";

function hash(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns when this region's key object recorded the revocation. */
async function revocationTime(keyHash: string): Promise<number> {
  return env.KEY_REGISTER.getByName(keyHash).revoke(Number.MAX_SAFE_INTEGER);
}

describe("POST /internal/v1/revocations", () => {
  it("revokes each key in the region, even if the key was never used there", async () => {
    const hashes = [hash(), hash()];
    const items = hashes.map((key_hash, i) => ({ key_hash, revoked_at: 1000 + i }));
    expect(await sendAsPeer("revocations", { items })).toEqual({
      status: 200,
      body: { ok: true, results: hashes.map((key_hash) => ({ key_hash, result: "delivered" })) },
    });
    expect(await Promise.all(hashes.map(revocationTime))).toEqual([1000, 1001]);
    for (const name of hashes) {
      expect(await env.KEY_REGISTER.getByName(name).admit()).toMatchObject({
        ok: false,
        failure: { kind: "invalid_api_key" },
      });
    }
  });

  it("accepts duplicates in any order, and keeps the earliest revocation time", async () => {
    const [one, two, three] = [hash(), hash(), hash()];
    const items = [
      [three, 3],
      [one, 1],
      [two, 2],
      [three, 9],
    ].map(([key_hash, revoked_at]) => ({ key_hash, revoked_at }));
    for (const item of items) {
      const { body } = await sendAsPeer("revocations", { items: [item] });
      expect(body.results).toEqual([{ key_hash: item.key_hash, result: "delivered" }]);
    }
    await sendAsPeer("revocations", { items: items.toReversed().concat(items) });
    expect(await Promise.all([one, two, three].map(revocationTime))).toEqual([1, 2, 3]);
  });

  it("rejects only malformed items, and creates no key object for them", async () => {
    const good = { key_hash: hash(), revoked_at: 5 };
    const bad: { key_hash?: unknown; revoked_at?: unknown }[] = [
      {},
      { ...good, key_hash: "ABC" },
      { ...good, key_hash: `${hash()}0` },
      { ...good, revoked_at: -1 },
      { ...good, revoked_at: "now" },
    ];
    const before = await listDurableObjectIds(env.KEY_REGISTER);
    const { body } = await sendAsPeer("revocations", { items: [...bad, good] });
    expect(body.results).toEqual([
      ...bad.map((item) => ({
        key_hash: item.key_hash ?? null,
        result: "refused",
        reason: "malformed",
      })),
      { key_hash: good.key_hash, result: "delivered" },
    ]);
    expect(await listDurableObjectIds(env.KEY_REGISTER)).toHaveLength(before.length + 1);
  });

  it("returns the result 'failed' if a key's object fails, so that the other region retries", async () => {
    const key_hash = hash();
    const broken = { revoke: () => Promise.reject(new Error("no storage")) };
    const bindings = bindingsWith({ KEY_REGISTER: { getByName: () => broken } });
    const items = [{ key_hash, revoked_at: 5 }];
    const { body } = await sendAsPeer("revocations", { items }, bindings);
    expect(body.results).toEqual([{ key_hash, result: "failed", reason: "no storage" }]);
  });
});

describe("an invalid POST /internal/v1/revocations", () => {
  it.each([
    ["no items", {}],
    ["more than a hundred items", { items: Array.from({ length: 101 }, () => null) }],
  ])("returns 400 for %s", async (_name, message) => {
    const { status, body } = await sendAsPeer("revocations", message);
    expect([status, body]).toMatchObject([400, { error: { param: "items" } }]);
  });
});
