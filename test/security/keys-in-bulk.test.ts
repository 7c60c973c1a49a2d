import { beforeEach, expect, it } from "vitest";
import { admin, errorOf, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { createKey, deleteKey, fillKeys, keysOf, postKey } from "../contract/key-client.ts";

const DAY_MS = 86_400_000;

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

it("10,000 keys in 24 hours are the most, however many of them were revoked", async () => {
  const now = Date.now();
  await fillKeys(account, 3, { createdAt: now - DAY_MS - 60_000, revokedAt: now });
  await fillKeys(account, 9998, { createdAt: now - DAY_MS + 60_000, revokedAt: now });
  const { id } = await createKey(account.key); // with the account's first key 10,000
  expect((await deleteKey(account.key, id)).status).toBe(200);
  const refused = await postKey(account.key, { name: "one more" });
  expect(refused.headers.get("x-should-retry")).toBe("false");
  expect(await errorOf(refused, 409)).toMatchObject({ code: "too_many_keys" });
  const path = `/orgs/${account.orgId}/members/${account.memberId}/keys`;
  expect((await admin("POST", path, { name: "an operator's" })).status).toBe(409);
  expect((await send("/v1/models", { key: account.key })).status).toBe(200);
});

it("a list has every live key and the newest 4,000 revoked ones, though 30,000 were made", async () => {
  await fillKeys(account, 500, { createdAt: 1 });
  await fillKeys(account, 26_000, { createdAt: 2, revokedAt: 3 });
  await fillKeys(account, 3999, { createdAt: 4, revokedAt: 5 });
  const { id } = await createKey(account.key);
  expect((await deleteKey(account.key, id)).status).toBe(200);
  const listed = await keysOf(account.key);
  expect(listed.filter((one) => !one.revoked)).toHaveLength(501);
  const revoked = listed.filter((one) => one.revoked);
  expect(revoked).toHaveLength(4000);
  expect(revoked[0]?.id).toBe(id);
  expect(new Set(revoked.slice(1).map((one) => Date.parse(one.created_at)))).toEqual(new Set([4]));
  const places = listed.map((one) => one.created_at);
  expect(places).toEqual(places.toSorted().toReversed());
});
