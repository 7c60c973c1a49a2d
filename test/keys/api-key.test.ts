import { expect, it, vi } from "vitest";
import { listedPrefixOfKey, mintKey, verifyKey } from "../../src/accounts/keys/api-key.ts";
import type { KeySecret } from "../../src/shared/config/config.ts";
import { randomBase62 } from "../../src/shared/id.ts";
import { effortFor } from "../effort.ts";

const FORGED = effortFor(10_000, 100_000);

const a: KeySecret = { id: "a", secret: "a-secret-of-more-than-thirty-two-characters" };
const b: KeySecret = { id: "b", secret: "b-secret-of-more-than-thirty-two-characters" };
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

it("a new key has the documented prefix, and is valid in the key's region and scope", async () => {
  for (const home of ["eu", "us"] as const) {
    for (const scope of ["regional", "global"] as const) {
      const minted = await mintKey({ home, scope, secrets: [a, b] });
      const prefix = scope === "global" ? `svc_sk_gbl_${home}_live_` : `svc_sk_${home}_live_`;
      expect(minted.key).toMatch(new RegExp(`^${prefix}a[0-9A-Za-z]{39}$`));
      expect(minted.prefix).toBe(minted.key.slice(0, prefix.length + 4));
      expect(listedPrefixOfKey(minted.key)).toBe(minted.prefix);
      expect(minted.hash).toMatch(/^[0-9a-f]{64}$/);
      expect(await verifyKey(minted.key, [a, b])).toEqual({ hash: minted.hash, home, scope });
    }
  }
});

it("a key is valid until its secret is removed from KEY_SECRETS, and new keys use the first secret", async () => {
  const old = await mintKey({ home: "eu", scope: "regional", secrets: [a] });
  const fresh = await mintKey({ home: "eu", scope: "regional", secrets: [b, a] });
  expect(fresh.key.slice("svc_sk_eu_live_".length)).toMatch(/^b/);
  expect(await verifyKey(old.key, [b, a])).not.toBeNull();
  expect(await verifyKey(fresh.key, [b, a])).not.toBeNull();
  expect(await verifyKey(old.key, [b])).toBeNull();
});

it("a key is rejected if KEY_SECRETS has a different value under the key's secret ID", async () => {
  const minted = await mintKey({ home: "eu", scope: "regional", secrets: [a] });
  expect(await verifyKey(minted.key, [{ id: "a", secret: b.secret }])).toBeNull();
});

it("a cached key is verified again, and is rejected once its secret is removed", async () => {
  const { key, hash } = await mintKey({ home: "us", scope: "global", secrets: [a] });
  const secrets = [a, b];
  const first = await verifyKey(key, secrets);
  expect(await verifyKey(key, secrets)).toEqual(first);
  expect(first).toEqual({ hash, home: "us", scope: "global" });
  expect(await verifyKey(key, [b])).toBeNull();
  expect(await verifyKey(key, [{ id: "a", secret: b.secret }])).toBeNull();
});

it("the cache of verified keys has a maximum size, and never contains forged keys", async () => {
  const secrets = [a];
  const sign = vi.spyOn(crypto.subtle, "sign");
  const signed = async (key: string): Promise<number> => {
    const before = sign.mock.calls.length;
    await verifyKey(key, secrets);
    return sign.mock.calls.length - before;
  };
  const { key } = await mintKey({ home: "eu", scope: "regional", secrets });
  expect(await signed(key)).toBe(2);
  expect(await signed(key)).toBe(0);
  const forged = key.slice(0, -1) + (key.endsWith("x") ? "y" : "x");
  expect(await signed(forged)).toBe(1);
  expect(await signed(forged)).toBe(1);
  const others = await Promise.all(
    Array.from({ length: 2000 }, () => mintKey({ home: "eu", scope: "regional", secrets })),
  );
  for (const other of others) {
    await verifyKey(other.key, secrets);
  }
  expect(await signed(key)).toBe(2);
  sign.mockRestore();
});

it(`the key verification rejects ${FORGED} forged keys`, async () => {
  const secrets = [a, b];
  const { key } = await mintKey({ home: "eu", scope: "regional", secrets });
  for (const forged of forgeries(key)) expect(await verifyKey(forged, secrets)).toBeNull();
});

/**
 * One flipped character in each position, swapped prefixes, malformed keys, then random checksums.
 */
function* forgeries(key: string): Generator<string> {
  for (let i = 0; i < key.length; i++) {
    for (const other of BASE62) {
      if (other !== key.charAt(i)) yield key.slice(0, i) + other + key.slice(i + 1);
    }
    yield key.slice(0, i) + key.slice(i + 1);
  }
  const body = key.slice("svc_sk_eu_live_".length);
  yield `svc_sk_us_live_${body}`;
  yield `svc_sk_gbl_eu_live_${body}`;
  yield `svc_sk_gbl_us_live_${body}`;
  yield `svc_sk_eu_test_${body}`;
  yield `rk-eu-${body}`;
  yield `${key}0`;
  yield ` ${key}`;
  yield "";
  for (let n = 0; n < FORGED - 3500; n++) {
    const id = n % 3 === 0 ? "c" : "ab".charAt(n % 2);
    yield `svc_sk_eu_live_${id}${randomBase62(39)}`;
  }
}
