import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import {
  ADMIN_TOKEN,
  addMember,
  admin,
  balanceOf,
  chat,
  embed,
  errorOf,
  objectsWithout,
  openAccount,
  send,
} from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

const path = (): string => `/orgs/${account.orgId}`;
const patch = (body: unknown): Promise<Response> => admin("PATCH", path(), body);
const changed = async (body: unknown): Promise<Record<string, unknown>> => {
  const response = await patch(body);
  expect(response.status).toBe(200);
  return response.json();
};
const read = async (): Promise<Record<string, unknown>> => (await admin("GET", path())).json();
const freshSlug = (): string => `q-${crypto.randomUUID().slice(0, 18)}`;

describe("PATCH /admin/v1/orgs/{id}", () => {
  it("returns the organization in the format of GET /admin/v1/orgs/{id}", async () => {
    const before = await read();
    const slug = freshSlug();
    const after = await changed({ name: "Renamed", slug, rpm_limit: 12, status: "suspended" });
    const suspension = { at: expect.any(String), operator: expect.any(String), reason: null };
    const change = { name: "Renamed", slug, rpm_limit: 12, status: "suspended", suspension };
    expect(after).toEqual({ ...before, ...change });
    expect(await read()).toEqual(after);
    expect(await changed({})).toEqual(after);
  });

  it("shows operators the reason for a suspension until the organization is resumed", async () => {
    await changed({ status: "suspended", reason: "Unpaid invoice 62" });
    const { suspension } = await read();
    expect(suspension).toMatchObject({ reason: "Unpaid invoice 62" });
    const events = await send("/v1/events", { key: account.key });
    expect(await events.text()).not.toContain("Unpaid invoice 62");
    expect(await changed({ status: "active" })).toMatchObject({ suspension: null });
    // Sets a status that has another cause than an operator's suspension, such as closing.
    const set = env.DB.prepare("UPDATE organizations SET status = ?2 WHERE id = ?1");
    await set.bind(account.orgId, "suspended").run();
    expect(await read()).toMatchObject({ status: "suspended", suspension: null });
    await set.bind(account.orgId, "active").run();
    for (const body of [{ reason: "x" }, { status: "active", reason: "x" }]) {
      expect(await errorOf(await patch(body), 400)).toMatchObject({ param: "reason" });
    }
    expect(await errorOf(await patch({ status: "suspended", reason: "" }), 400)).toMatchObject({
      param: "reason",
    });
  });

  it("rejects paid requests and changes with 403 during the suspension, but serves reads", async () => {
    const { key, orgId } = account;
    expect((await chat(key)).status).toBe(200);
    const before = await balanceOf(key);
    expect(await changed({ status: "suspended" })).toMatchObject({ status: "suspended" });
    const writes = [
      await chat(key),
      await chat(key, { stream: true }),
      await embed(key),
      await send(`/v1/orgs/${orgId}`, { method: "PATCH", key, body: { name: "never" } }),
      await send("/v1/keys", { key, body: { name: "never" } }),
      await send(`/v1/keys/${account.keyId}`, { method: "DELETE", key }),
    ];
    for (const response of writes) {
      expect(await errorOf(response, 403)).toMatchObject({
        type: "permission_denied",
        code: "organization_suspended",
      });
    }
    for (const open of ["/v1/balance", "/v1/models", "/v1/keys", `/v1/orgs/${orgId}`]) {
      expect([open, (await send(open, { key })).status]).toEqual([open, 200]);
    }
    expect(await balanceOf(key)).toBe(before);
    await changed({ status: "active" });
    expect((await chat(key)).status).toBe(200);
    const renamed = { method: "PATCH", key, body: { name: "again" } };
    expect((await send(`/v1/orgs/${orgId}`, renamed)).status).toBe(200);
  });

  it("completes and charges requests that started before the suspension", async () => {
    const before = await balanceOf(account.key);
    const open = await chat(account.key, { model: "sandbox/slow-stream", stream: true });
    await changed({ status: "suspended" });
    expect(await open.text()).toContain("[DONE]");
    expect(await balanceOf(account.key)).toBeLessThan(before);
  });

  it("limits all keys of the organization together to rpm_limit requests per minute; null removes this limit", async () => {
    const second = await addMember(account.orgId, "member");
    expect(await changed({ rpm_limit: 3 })).toMatchObject({ rpm_limit: 3 });
    const keys = [account.key, second.key, account.key, second.key, account.key];
    const answers = await Promise.all(keys.map((key) => chat(key)));
    const statuses = answers.map((answer) => answer.status).toSorted((one, two) => one - two);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    expect(await changed({ name: "as before" })).toMatchObject({ rpm_limit: 3 });
    expect((await chat(account.key)).status).toBe(429);
    expect(await changed({ rpm_limit: null })).toMatchObject({ rpm_limit: null });
    expect((await chat(account.key)).status).toBe(200);
  });

  it("changes only the given field", async () => {
    await changed({ rpm_limit: 500, status: "suspended" });
    expect(await changed({ rpm_limit: 600 })).toMatchObject({ status: "suspended" });
    expect((await chat(account.key)).status).toBe(403);
    expect(await changed({ status: "active" })).toMatchObject({ rpm_limit: 600 });
    expect((await chat(account.key)).status).toBe(200);
  });
});

describe("an invalid PATCH /admin/v1/orgs/{id}", () => {
  it("returns 409 for a taken slug, and changes nothing", async () => {
    const other = await openAccount();
    const { slug } = await (await admin("GET", `/orgs/${other.orgId}`)).json<{ slug: string }>();
    const before = await read();
    const response = await patch({ slug, status: "suspended", rpm_limit: 1, name: "never" });
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await errorOf(response, 409)).param).toBe("slug");
    expect(await read()).toEqual(before);
    expect((await chat(account.key)).status).toBe(200);
    expect((await chat(account.key)).status).toBe(200);
  });

  it("returns 503 if the wallet can't be notified, and succeeds on a retry", async () => {
    const body = { status: "suspended" };
    const sent = { method: "PATCH", key: ADMIN_TOKEN, body };
    const bindings = objectsWithout("WALLET", "configure");
    const response = await send(`/admin/v1${path()}`, { ...sent, bindings });
    expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
    expect((await chat(account.key)).status).toBe(200); // the wallet doesn't have the change yet
    await changed(body);
    expect((await chat(account.key)).status).toBe(403);
  });
});
