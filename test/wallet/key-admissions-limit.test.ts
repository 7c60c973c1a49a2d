import { afterEach, expect, it, vi } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { burst, gatedKey, runInWallet, kindOf, MINUTE_MS } from "./key-admissions-fixture.ts";
import { valueOf } from "./wallet-fixture.ts";

afterEach(() => shiftClock(null));

it("a wallet's admission of a key returns the key's identity and remaining requests per minute", async () => {
  const { booked, hash, stub } = await gatedKey({ rpmLimit: 3 });
  expect(valueOf(await stub.admit(hash))).toEqual({
    keyId: booked.keyId,
    orgId: booked.orgId,
    memberId: booked.memberId,
    scope: "regional",
    limit: 3,
    remaining: 2,
    resetMs: MINUTE_MS,
  });
});

it("a wallet enforces a key's rate limit even if 2,000 other keys have displaced the key from memory", async () => {
  const key = await gatedKey({ rpmLimit: 3 });
  expect(await burst(key, 2)).toBe(2);
  const kinds = await runInWallet(key, async (wallet, sql) => {
    sql.exec(
      `INSERT INTO keys (hash, revoked_at) WITH RECURSIVE n(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2001) SELECT 'dead ' || i, 1 FROM n`,
    );
    const failureKinds = new Set<string>();
    for (let i = 1; i <= 2001; i++) failureKinds.add(kindOf(await wallet.admit(`dead ${i}`)));
    return [...failureKinds];
  });
  expect(kinds).toEqual(["invalid_api_key"]);
  expect(await burst(key, 5)).toBe(1);
});

it("a wallet admits no request if the admission can't be stored", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const key = await gatedKey({ rpmLimit: 2 });
  expect(await burst(key, 1)).toBe(1);
  const failed = runInWallet(key, async (wallet, sql) => {
    sql.exec("ALTER TABLE admissions RENAME TO lost");
    await expect(wallet.admit(key.hash)).rejects.toThrow("no such table");
    sql.exec("ALTER TABLE lost RENAME TO admissions");
  });
  await failed;
  expect(await burst(key, 5)).toBe(1);
});
