import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import {
  ADMIN_TOKEN,
  addKey,
  addMember,
  admin,
  balanceOf,
  bindingsWith,
  chat,
  errorOf,
  openAccount,
  send,
  skipPauses,
} from "./client.ts";
import type { Account } from "./client.ts";

type Member = { readonly id: string; readonly role: string };

let owner: Account;
beforeEach(async () => {
  owner = await openAccount();
});

const members = (): string => `/orgs/${owner.orgId}/members`;
const list = async (): Promise<Member[]> =>
  (await (await admin("GET", members())).json<{ members: Member[] }>()).members;
const remove = (id: string): Promise<Response> => admin("DELETE", `${members()}/${id}`);
const roles = async (): Promise<string[]> => (await list()).map((member) => member.role);

const keysOf = async (memberId: string): Promise<{ revoked: boolean }[]> => {
  const answer = await admin("GET", `/orgs/${owner.orgId}/keys`);
  const { keys } = await answer.json<{ keys: { member_id: string; revoked: boolean }[] }>();
  return keys.filter((key) => key.member_id === memberId);
};

describe("DELETE /admin/v1/orgs/{id}/members/{member_id}", () => {
  it("removes the member from the list, and revokes only the member's keys", async () => {
    const removedMember = await addMember(owner.orgId, "admin");
    const keys = [removedMember.key, ...(await moreKeys(removedMember, 3))];
    for (const key of keys) expect((await chat(key)).status).toBe(200);
    const unused = (await addKey(removedMember.orgId, removedMember.memberId)).key;
    const response = await remove(removedMember.memberId);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ id: removedMember.memberId, deleted: true });
    for (const key of [...keys, unused]) {
      expect((await errorOf(await chat(key), 401)).type).toBe("invalid_api_key");
      expect((await send("/v1/models", { key })).status).toBe(401);
    }
    expect((await list()).map((member) => member.id)).toEqual([owner.memberId]);
    expect(await keysOf(removedMember.memberId)).toHaveLength(5);
    expect((await keysOf(removedMember.memberId)).every((key) => key.revoked)).toBe(true);
    expect((await chat(owner.key)).status).toBe(200);
  });

  it("either serves or rejects each concurrent request of the member, and rejects all later requests", async () => {
    const member = await addMember(owner.orgId, "member");
    // The key's object has cached the key, and reads the database again after a minute.
    expect((await chat(member.key)).status).toBe(200);
    const before = await balanceOf(owner.key);
    const sendChats = (): Promise<Response>[] => Array.from({ length: 20 }, () => chat(member.key));
    const requests = sendChats();
    const removed = remove(member.memberId);
    requests.push(...sendChats());
    expect((await removed).status).toBe(200);
    const late = await Promise.all(sendChats());
    expect(new Set(late.map((answer) => answer.status))).toEqual(new Set([401]));
    const answers = await Promise.all(requests);
    const served = answers.filter((answer) => answer.status === 200);
    expect(answers.filter((answer) => ![200, 401].includes(answer.status))).toEqual([]);
    const costs = served.map((answer) => Number(answer.headers.get("x-cost-micro")));
    const spent = costs.reduce((sum, cost) => sum + cost, 0);
    expect(await balanceOf(owner.key)).toBe(before - spent);
  });

  it("returns 200 for repeated calls, and keeps the original times of removal and revocation", async () => {
    const member = await addMember(owner.orgId, "member");
    const rows = async (): Promise<unknown> => {
      const sql = `SELECT removed_at, revoked_at FROM members JOIN keys ON member_id = members.id
        WHERE members.id = ?`;
      return (await env.DB.prepare(sql).bind(member.memberId).all()).results;
    };
    await remove(member.memberId);
    const before = await rows();
    const again = await remove(member.memberId);
    expect([again.status, await again.json()]).toEqual([
      200,
      { id: member.memberId, deleted: true },
    ]);
    expect(await rows()).toEqual(before);
  });

  it("revokes a key that the member creates during the removal", async () => {
    const member = await addMember(owner.orgId, "member");
    const body = { name: "quick" };
    const [removed, ...responses] = await Promise.all([
      remove(member.memberId),
      ...Array.from({ length: 6 }, () => send("/v1/keys", { key: member.key, body })),
    ]);
    expect(removed.status).toBe(200);
    const fresh = await Promise.all(
      responses.filter((one) => one.status === 201).map((one) => one.json<{ key: string }>()),
    );
    for (const { key } of fresh) expect((await chat(key)).status).toBe(401);
    expect((await keysOf(member.memberId)).every((key) => key.revoked)).toBe(true);
    const late = { name: "late" };
    await errorOf(await admin("POST", `${members()}/${member.memberId}/keys`, late), 404);
  });

  it("returns 503 if one of the member's keys can't be revoked everywhere, and succeeds on a retry", async () => {
    skipPauses();
    const member = await addMember(owner.orgId, "member");
    await moreKeys(member, 2);
    await admin("DELETE", `/orgs/${member.orgId}/keys/${member.keyId}`);
    const live = await liveHashesOf(member.memberId);
    const notifiedHashes: string[] = [];
    const removeWith = (fails: (nth: number) => boolean): Promise<Response> => {
      notifiedHashes.length = 0;
      const getByName = (hash: string): unknown => ({
        revoke: (at: number) => {
          const nth = notifiedHashes.push(hash);
          if (fails(nth)) return Promise.reject(new Error("lost"));
          return env.KEY_REGISTER.getByName(hash).revoke(at);
        },
      });
      const bindings = bindingsWith({ KEY_REGISTER: { getByName } });
      const path = `/admin/v1${members()}/${member.memberId}`;
      return send(path, { method: "DELETE", key: ADMIN_TOKEN, bindings });
    };
    const [first] = live;
    const failed = await removeWith((nth) => notifiedHashes[nth - 1] === first);
    expect((await errorOf(failed, 503)).code).toBe("storage_unavailable");
    // Objects that their own DELETE has already notified are skipped.
    expect(new Set(notifiedHashes)).toEqual(new Set(live));
    expect(await roles()).toEqual(["owner"]);
    const repeated = await removeWith(() => false);
    expect(repeated.status).toBe(200);
    expect(notifiedHashes.toSorted()).toEqual(live.toSorted());
    expect(notifiedHashes).toHaveLength(2);
  });

  it("notifies the other region of the member's revoked global keys on each call", async () => {
    const member = await addMember(owner.orgId, "member");
    const body = { name: "everywhere", scope: "global" };
    const response = await admin("POST", `${members()}/${member.memberId}/keys`, body);
    expect(response.status).toBe(201);
    const revocations: unknown[] = [];
    const getByName = (name: string): unknown => ({
      enqueueRevocations: async (items: readonly object[]) => {
        for (const item of items) revocations.push({ name, ...item });
      },
    });
    const bindings = bindingsWith({ REGION_OUTBOX: { getByName } });
    const path = `/admin/v1${members()}/${member.memberId}`;
    const removal = { method: "DELETE", key: ADMIN_TOKEN, bindings };
    expect((await send(path, removal)).status).toBe(200);
    expect(revocations).toMatchObject([{ name: "us/revocations" }]);
    expect((await send(path, removal)).status).toBe(200);
    expect(revocations).toEqual([revocations[0], revocations[0]]);
  });

  it("returns 409 last_owner for the only owner, and leaves the owner's keys active", async () => {
    await addMember(owner.orgId, "admin");
    const response = await remove(owner.memberId);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await errorOf(response, 409)).toMatchObject({ code: "last_owner", param: null });
    expect(await roles()).toEqual(["owner", "admin"]);
    expect((await chat(owner.key)).status).toBe(200);
  });
});

async function moreKeys(member: Account, count: number): Promise<string[]> {
  const created = await Promise.all(
    Array.from({ length: count }, () => addKey(member.orgId, member.memberId)),
  );
  return created.map(({ key }) => key);
}

async function liveHashesOf(memberId: string): Promise<string[]> {
  const { results } = await env.DB.prepare(
    "SELECT hash FROM keys WHERE member_id = ? AND revoked_at IS NULL",
  )
    .bind(memberId)
    .all<{ hash: string }>();
  return results.map(({ hash }) => hash);
}
