import { beforeAll, describe, expect, it } from "vitest";
import { addKey, addMember, admin, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { createSession } from "./session-client.ts";

type Pause = Readonly<Record<"id" | "scope" | "subject" | "reason" | "source", string>>;

let owner: Account;
let billing: Account;
let member: Account;
beforeAll(async () => {
  owner = await openAccount();
  billing = await addMember(owner.orgId, "billing");
  member = await addMember(owner.orgId, "member");
});

const pause = (account: Account, body: object): Promise<Response> =>
  send("/v1/pauses", { key: account.key, body: { reason: "Costs", ...body } });
const resume = (account: Account, id: string): Promise<Response> =>
  send(`/v1/pauses/${id}`, { key: account.key, method: "DELETE" });
const listed = async (account: Account): Promise<readonly Pause[]> =>
  (await (await send("/v1/pauses", { key: account.key })).json<{ pauses: Pause[] }>()).pauses;

async function createPause(account: Account, body: object): Promise<Pause> {
  const response = await pause(account, body);
  expect(response.status).toBe(201);
  return response.json<Pause>();
}

async function count(key: string): Promise<Response> {
  const body = { model: "sandbox/echo", messages: [{ role: "user", content: "hi" }] };
  return send("/v1/messages/count_tokens", { key, body });
}

describe("POST /v1/pauses", () => {
  it("rejects only paid requests and count_tokens, with the reason of the pause", async () => {
    const { key, keyId } = await addKey(owner.orgId, owner.memberId);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const { id, ...createdPause } = await createPause(owner, { scope: "key", id: keyId, until });
    const by = { kind: "key", id: owner.keyId };
    expect(createdPause).toMatchObject({ scope: "key", subject: keyId, reason: "Costs", until });
    expect(createdPause).toMatchObject({ source: "member", created_by: by });
    const extra = { code: "paused", pause_id: id, scope: "key", reason: "Costs", until };
    expect(await errorOf(await chat(key), 403)).toMatchObject(extra);
    const counted = await (await count(key)).json<{ error: { type: string } }>();
    expect(counted.error.type).toBe("permission_error");
    for (const path of ["/v1/key", "/v1/models", "/v1/balance", "/v1/pauses"]) {
      expect((await send(path, { key })).status).toBe(200);
    }
    expect((await chat(owner.key)).status).toBe(200);
    expect((await resume(owner, id)).status).toBe(200);
    expect((await chat(key)).status).toBe(200);
    expect((await count(key)).status).toBe(200);
    expect((await resume(owner, id)).status).toBe(404);
  });

  it("pauses any end user or session of the organization, even one that was never used", async () => {
    const { key } = await addKey(owner.orgId, owner.memberId);
    const { id, token } = await createSession(key);
    const session = await createPause(billing, { scope: "session", id });
    const own = { code: "paused", pause_id: session.id, scope: "session", reason: "Costs" };
    expect(await errorOf(await chat(token), 403)).toMatchObject(own);
    await resume(owner, session.id);
    await send("/v1/users", { key, body: { external_id: "ann" } });
    const user = await createPause(billing, { scope: "end_user", id: "ann" });
    expect(user.subject).toBe("ann");
    const { token: anns } = await createSession(key, { end_user: "ann" });
    const error = await errorOf(await chat(anns), 403);
    expect(error).toMatchObject({ code: "paused", pause_id: user.id });
    expect(error).not.toHaveProperty("reason");
    expect((await chat(key)).status).toBe(200);
    await resume(owner, user.id);
  });

  it("lets members pause only their own keys and sessions, but never end a pause", async () => {
    const own = await addKey(owner.orgId, member.memberId);
    const { id: used, token } = await createSession(own.key);
    await chat(token);
    const pauses = [
      await createPause(member, { scope: "key", id: own.keyId }),
      await createPause(member, { scope: "session", id: used }),
    ];
    const { id: unused } = await createSession(owner.key);
    const refusals: readonly (readonly [object, number])[] = [
      [{ scope: "organization" }, 403],
      [{ scope: "member", id: member.memberId }, 403],
      [{ scope: "end_user", id: "ann" }, 403],
      [{ scope: "key", id: owner.keyId }, 404],
      [{ scope: "session", id: unused }, 404],
    ];
    for (const [body, status] of refusals) {
      expect([body, (await pause(member, body)).status]).toEqual([body, status]);
    }
    const others = await createPause(owner, { scope: "member", id: billing.memberId });
    expect(await listed(member)).toEqual(pauses);
    expect((await listed(billing)).map(({ id }) => id)).toContain(others.id);
    for (const { id } of [...pauses, others]) {
      for (const account of [member, billing]) {
        await errorOf(await resume(account, id), 403);
      }
      expect((await resume(owner, id)).status).toBe(200);
    }
  });

  it("returns 404 for another organization's resources, and 400 with the param for invalid fields", async () => {
    const stranger = await openAccount();
    for (const body of [
      { scope: "organization", id: stranger.orgId },
      { scope: "member", id: stranger.memberId },
      { scope: "key", id: stranger.keyId },
      { scope: "end_user", id: "nobody" },
      { scope: "session", id: (await createSession(stranger.key)).id },
    ]) {
      expect([body, (await pause(owner, body)).status]).toEqual([body, 404]);
    }
    const past = new Date(Date.now() - 1000).toISOString();
    for (const [param, body] of [
      ["scope", { scope: "team" }],
      ["id", { scope: "key" }],
      ["reason", { scope: "organization", reason: "" }],
      ["until", { scope: "organization", until: past }],
      ["until", { scope: "organization", until: "tomorrow" }],
      ["source", { scope: "organization", source: "operator" }],
    ] as const) {
      expect(await errorOf(await pause(owner, body), 400)).toMatchObject({ param });
    }
    expect(await listed(owner)).toEqual([]);
  });
});

it("a pause ends when its member, key or session is removed, and a new pause then returns 404", async () => {
  const account = await openAccount();
  const removedMember = await addMember(account.orgId, "member");
  const { keyId, key } = await addKey(account.orgId, account.memberId);
  const { id: session } = await createSession(account.key);
  const bodies = [
    { scope: "member", id: removedMember.memberId },
    { scope: "key", id: removedMember.keyId },
    { scope: "key", id: keyId },
    { scope: "session", id: session },
  ];
  for (const body of bodies) await createPause(account, body);
  expect(
    (await admin("DELETE", `/orgs/${account.orgId}/members/${removedMember.memberId}`)).status,
  ).toBe(200);
  expect((await send(`/v1/keys/${keyId}`, { key, method: "DELETE" })).status).toBe(200);
  expect(
    (await send(`/v1/sessions/${session}`, { key: account.key, method: "DELETE" })).status,
  ).toBe(200);
  expect(await listed(account)).toEqual([]);
  for (const body of bodies) {
    expect([body, (await pause(account, body)).status]).toEqual([body, 404]);
  }
});

describe("an operator's pause", () => {
  it("stops the organization's paid requests until an operator ends the pause", async () => {
    const account = await openAccount();
    const path = `/orgs/${account.orgId}/pauses`;
    const body = { scope: "organization", reason: "Unusual traffic" };
    const response = await admin("POST", path, body);
    expect(response.status).toBe(201);
    const { id, ...shown } = await response.json<Pause>();
    expect(shown).toMatchObject({ subject: account.orgId, source: "operator" });
    expect(await errorOf(await chat(account.key), 403)).toMatchObject({ pause_id: id });
    const refused = await errorOf(await resume(account, id), 409);
    expect(refused).toMatchObject({ code: "operator_pause" });
    expect(await listed(account)).toEqual([{ id, ...shown }]);
    expect((await admin("POST", path, { ...body, reason: "Other" })).status).toBe(200);
    const user = { ...body, scope: "end_user", id: "ann" };
    expect(await errorOf(await admin("POST", path, user), 400)).toMatchObject({ param: "scope" });
    expect((await admin("DELETE", `${path}/${id}`)).status).toBe(200);
    expect(await (await admin("GET", path)).json()).toEqual({ pauses: [] });
    expect((await chat(account.key)).status).toBe(200);
  });
});
