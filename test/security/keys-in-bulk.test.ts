import { beforeEach, expect, it } from "vitest";
import { admin, errorOf, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { createKey, deleteKey, fillKeys, postKey } from "../contract/key-client.ts";
import type { KeyBody } from "../contract/key-client.ts";
import { effort } from "../effort.ts";

/** As many as three days allow, in a long run. */
const REVOKED = effort(6000, 30_000);
const DAY_MS = 86_400_000;

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

it("an organization can create at most 10,000 keys in 24 hours, however many are revoked", async () => {
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

type Listed = { readonly keys: readonly KeyBody[]; readonly next_after?: string };
async function listed(query = ""): Promise<Listed> {
  const response = await send(`/v1/keys${query}`, { key: account.key });
  expect(response.status).toBe(200);
  return response.json<Listed>();
}

it(`the list of keys contains every active key and the newest 100 of ${REVOKED} revoked keys, and the rest in pages`, async () => {
  await fillKeys(account, 500, { createdAt: 1 });
  await fillKeys(account, REVOKED - 4000, { createdAt: 2, revokedAt: 3 });
  await fillKeys(account, 3999, { createdAt: 4, revokedAt: 5 });
  const { id } = await createKey(account.key);
  expect((await deleteKey(account.key, id)).status).toBe(200);
  const { keys, next_after } = await listed();
  expect(keys.filter((one) => !one.revoked)).toHaveLength(501);
  const revoked = keys.filter((one) => one.revoked);
  expect(revoked).toHaveLength(100);
  expect(revoked[0]?.id).toBe(id);
  expect(new Set(revoked.slice(1).map((one) => Date.parse(one.created_at)))).toEqual(new Set([4]));
  const places = keys.map((one) => one.created_at);
  expect(places).toEqual(places.toSorted().toReversed());
  const seen = [...revoked];
  for (let after = next_after; after !== undefined;) {
    const page = await listed(`?revoked=true&limit=100&after=${after}`);
    expect(page.keys.length).toBeLessThanOrEqual(100);
    seen.push(...page.keys);
    after = page.next_after;
  }
  expect(seen.every((one) => one.revoked)).toBe(true);
  expect([seen.length, new Set(seen.map((one) => one.id)).size]).toEqual([REVOKED, REVOKED]);
  const moments = seen.map((one) => one.created_at);
  expect(moments).toEqual(moments.toSorted().toReversed());
});
