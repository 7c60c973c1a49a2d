import { beforeAll, describe, expect, it } from "vitest";
import { OWN_KEY_PATHS } from "../../src/console/allowed-calls.ts";
import { KEY_ROUTES } from "../../src/routes.ts";
import { ADMIN_TOKEN, admin, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { login, callFromPage } from "./console-client.ts";

let account: Account;
let cookie: string;
beforeAll(async () => {
  account = await openAccount();
  await (await chat(account.key)).text();
  cookie = await login(ADMIN_TOKEN);
});

const viewAs = (org: string, by = cookie): Promise<Response> =>
  callFromPage("/as", by, { method: "POST", body: { org } });

/** Removes the parts of a response that can change between two reads. */
const withoutLastUse = (text: string): string => text.replaceAll(/"last_used_at":[^,}]+/g, "");

describe("POST /console/api/as", () => {
  it("shows an operator every list that the organization's owner sees", async () => {
    const seen = await (await viewAs(account.orgId)).json<object>();
    expect(seen).toMatchObject({
      kind: "operator",
      role: "owner",
      organization: { id: account.orgId },
    });
    expect(await (await callFromPage("/session", cookie)).json()).toEqual(seen);
    const lists = KEY_ROUTES.filter(
      ({ method, path }) =>
        method === "GET" && !OWN_KEY_PATHS.has(path) && !/:(?!org_id)/.test(path),
    ).map(({ path }) => path.replace(":org_id", account.orgId));
    expect(lists.length).toBeGreaterThan(12);
    for (const path of lists) {
      const own = await send(path, { key: account.key });
      const shown = await callFromPage(path, cookie);
      expect([path, shown.status, withoutLastUse(await shown.text())]).toEqual([
        path,
        own.status,
        withoutLastUse(await own.text()),
      ]);
    }
  });

  it("starts a read-only session that rejects changes and paid requests with 403 read_only", async () => {
    await viewAs(account.orgId);
    const changes = KEY_ROUTES.filter(({ method }) => method !== "GET").map(({ method, path }) => [
      method,
      path.replaceAll(/:\w+(?:\{.+?\})?/g, "resp_1"),
    ]);
    const operators = [["PATCH", `/admin/v1/orgs/${account.orgId}`]];
    for (const [method = "", path = ""] of [...changes, ...operators]) {
      const answer = await callFromPage(path, cookie, { method, body: {} });
      if (answer.status === 404) continue; // the console can't call this path
      expect([method, path, (await errorOf(answer, 403)).code]).toEqual([
        method,
        path,
        "read_only",
      ]);
    }
  });

  it("gives no access to stored responses, because operators must not read prompts", async () => {
    await viewAs(account.orgId);
    for (const path of ["/v1/responses/resp_1", "/v1//responses/resp_1/input_items"]) {
      const answer = await callFromPage(path, cookie);
      expect([path, (await errorOf(answer, 403)).code]).toEqual([path, "role_required"]);
      const own = await callFromPage(path, await login(account.key));
      expect([path, own.status]).toEqual([path, 404]);
    }
  });

  it("records one operator.viewed event per hour in the organization's event log", async () => {
    await viewAs(account.orgId);
    await viewAs(account.orgId);
    const response = await send("/v1/events?type=operator.viewed", { key: account.key });
    expect((await response.json<{ events: object[] }>()).events).toMatchObject([
      { actor: { kind: "operator" }, subject: account.orgId },
    ]);
  });

  it("restores the operator's own session on DELETE", async () => {
    await viewAs(account.orgId);
    const ended = await callFromPage("/as", cookie, { method: "DELETE" });
    expect(await ended.json()).toMatchObject({ role: "operator", organization: null });
    expect((await callFromPage("/v1/balance", cookie)).status).toBe(403);
    expect((await callFromPage("/admin/v1/orgs", cookie)).status).toBe(200);
  });

  it("returns 409 to a console page that still shows a different organization", async () => {
    const other = await openAccount();
    await viewAs(account.orgId);
    await viewAs(other.orgId);
    const headers = { "x-organization": account.orgId };
    const answer = await callFromPage("/v1/balance", cookie, { headers });
    expect((await errorOf(answer, 409)).code).toBe("other_organization");
  });

  it("returns 404 for an unknown organization, 403 for a key's session and 401 without a session", async () => {
    await errorOf(await viewAs("nobody"), 404);
    expect((await errorOf(await viewAs(account.orgId, await login(account.key)), 403)).code).toBe(
      "role_required",
    );
    await errorOf(await viewAs(account.orgId, ""), 401);
  });

  it("opens a suspended organization, even without an active owner key", async () => {
    const other = await openAccount();
    await admin("PATCH", `/orgs/${other.orgId}`, { status: "suspended" });
    expect((await admin("DELETE", `/orgs/${other.orgId}/keys/${other.keyId}`)).status).toBe(200);
    expect((await viewAs(other.orgId)).status).toBe(200);
    expect((await callFromPage("/v1/balance", cookie)).status).toBe(200);
    expect((await callFromPage("/v1/keys", cookie)).status).toBe(200);
  });
});
