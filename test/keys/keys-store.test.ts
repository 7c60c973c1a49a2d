import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { apiKeyView } from "../../src/accounts/keys/stored-key.ts";
import {
  findKeyByHash,
  insertKey,
  createInsertKeyStatement,
  ACTIVE_KEYS_MAX,
  listKeys,
  revokeKey,
} from "../../src/accounts/keys/keys.store.ts";
import { draftKey, makeKey, makeMember } from "./key-fixture.ts";

it("the database stores a key's data and hash, but never the key", async () => {
  const { key, booked } = await makeKey({ scope: "global", rpmLimit: 5 });
  const stored = await findKeyByHash(env.DB, booked.keyHash);
  expect(stored).toMatchObject(booked);
  expect(JSON.stringify(stored)).not.toContain(key.slice(-30));
  expect(apiKeyView(booked, "eu", 0)).toEqual({
    id: booked.keyId,
    member_id: booked.memberId,
    name: "a key",
    prefix: key.slice(0, "svc_sk_gbl_eu_live_".length + 4),
    region: "eu",
    scope: "global",
    rpm_limit: 5,
    created_at: new Date(booked.createdAt).toISOString(),
    last_used_at: null,
    revoked: false,
  });
});

it("a key can belong only to an active member of the organization", async () => {
  const [member, stranger] = [await makeMember(), await makeMember()];
  const foreign = await draftKey({ id: member.id, orgId: stranger.orgId });
  expect(await insertKey(env.DB, foreign.booked, null)).toMatchObject({
    failure: { kind: "not_found" },
  });
  await env.DB.prepare("UPDATE members SET removed_at = 1 WHERE id = ?").bind(member.id).run();
  const late = await draftKey(member);
  expect(await insertKey(env.DB, late.booked, null)).toMatchObject({
    failure: { kind: "not_found" },
  });
  expect(await listKeys(env.DB, { orgId: member.orgId, memberId: null })).toEqual([]);
});

it("an organization can have at most 1,000 active keys, even with concurrent calls", async () => {
  const member = await makeMember();
  const drafts = await Promise.all(
    Array.from({ length: ACTIVE_KEYS_MAX - 2 }, () => draftKey(member)),
  );
  await env.DB.batch(drafts.map(({ booked }) => createInsertKeyStatement(env.DB, booked, null)));
  const more = await Promise.all(Array.from({ length: 6 }, () => draftKey(member)));
  const answers = await Promise.all(more.map(({ booked }) => insertKey(env.DB, booked, null)));
  expect(answers.filter((answer) => answer.ok)).toHaveLength(2);
  const refused = answers.flatMap((answer) => (answer.ok ? [] : [answer.failure]));
  expect(refused).toHaveLength(4);
  for (const failure of refused) {
    expect(failure).toMatchObject({ kind: "conflict", code: "too_many_keys" });
  }
  const [first] = drafts;
  if (first === undefined) throw new Error("no drafts");
  await revokeKey(env.DB, { keyId: first.booked.keyId, orgId: member.orgId, revokedAt: 9 });
  expect((await insertKey(env.DB, (await draftKey(member)).booked, null)).ok).toBe(true);
});

it("the list of keys contains only the organization's keys, including revoked keys, newest first", async () => {
  const member = await makeMember();
  await makeKey();
  const ids: string[] = [];
  for (const createdAt of [1000, 3000, 2000]) {
    const { booked } = await draftKey(member, { createdAt });
    await insertKey(env.DB, booked, null);
    ids.push(booked.keyId);
  }
  const [oldest = "", newest = "", middle = ""] = ids;
  await revokeKey(env.DB, { keyId: middle, orgId: member.orgId, revokedAt: 9 });
  const listed = await listKeys(env.DB, { orgId: member.orgId, memberId: null });
  expect(listed.map((booked) => booked.keyId)).toEqual([newest, middle, oldest]);
  expect(listed.map((booked) => apiKeyView(booked, "eu", 0).revoked)).toEqual([false, true, false]);
});

it("a repeated revocation keeps the first revocation's time, and affects no key of another organization", async () => {
  const { booked } = await makeKey();
  const revoke = (orgId: string, revokedAt: number): ReturnType<typeof revokeKey> =>
    revokeKey(env.DB, { keyId: booked.keyId, orgId, revokedAt });
  expect(await revoke(crypto.randomUUID(), 1)).toBe(false);
  expect(await findKeyByHash(env.DB, booked.keyHash)).toMatchObject({ revokedAt: null });
  expect([await revoke(booked.orgId, 7), await revoke(booked.orgId, 8)]).toEqual([true, true]);
  expect(await findKeyByHash(env.DB, booked.keyHash)).toMatchObject({ revokedAt: 7 });
});
