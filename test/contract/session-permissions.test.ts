import { beforeAll, describe, expect, it } from "vitest";
import { OWN_KEY_PATHS, PLAYGROUND_PATHS } from "../../src/console/allowed-calls.ts";
import { KEY_ROUTES, PROVIDER_PATHS } from "../../src/routes.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { ADMIN_TOKEN, addMember, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { login, callFromPage } from "./console-client.ts";

const ROLES = ["owner", "admin", "billing", "member"] as const;
type May = Readonly<Record<string, "all" | "own">>;

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

async function mayOf(cookie: string): Promise<May> {
  return (await (await callFromPage("/session", cookie)).json<{ may: May }>()).may;
}

const named = (method: string, path: string): string =>
  `${method} ${path.replaceAll(/:(\w+)(?:\{[^/]+\})?/g, "{$1}")}`;

/** Reads whose path contains only the organization's ID. */
const READS = KEY_ROUTES.filter(
  ({ method, path }) => method === "GET" && path !== "/v1/generation" && !/:(?!org_id)/.test(path),
).map(({ path }) => path);

/** Checks that each read is allowed exactly as `canMakeCall` states, and returns 403 otherwise. */
async function expectTrue(cookie: string, may: May): Promise<void> {
  for (const path of READS) {
    const { status } = await callFromPage(path.replace(":org_id", account.orgId), cookie);
    expect([path, status]).toEqual([path, named("GET", path) in may ? 200 : 403]);
  }
}

describe("the list of permissions in GET /console/api/session", () => {
  it.each(ROLES)("matches the endpoints that a key with the role %s may call", async (role) => {
    const { key } = await addMember(account.orgId, role);
    const cookie = await login(key);
    const may = await mayOf(cookie);
    const open = KEY_ROUTES.filter(({ roles }) => roles.includes(role)).filter(
      ({ path }) => !PROVIDER_PATHS.has(path) || PLAYGROUND_PATHS.has(path),
    );
    expect(Object.keys(may).toSorted()).toEqual(
      open.map(({ method, path }) => named(method, path)).toSorted(),
    );
    for (const { method, path, others } of open) {
      const isOwn = others !== undefined && !others.includes(role);
      expect([path, may[named(method, path)]]).toEqual([path, isOwn ? "own" : "all"]);
    }
    await expectTrue(cookie, may);
  });

  it("includes no management endpoint for a key with limits", async () => {
    const terms = { name: "limited", budget_dollars: 1, budget_period: "day" };
    const response = await send("/v1/keys", { key: account.key, body: terms });
    const cookie = await login((await response.json<{ key: string }>()).key);
    const may = await mayOf(cookie);
    expect(may).toMatchObject({ "GET /v1/key": "all", "POST /v1/chat/completions": "all" });
    expect(may).not.toHaveProperty(["POST /v1/keys"]);
    await expectTrue(cookie, may);
  });

  it("includes an operator's endpoints, but no changes while the operator views a customer", async () => {
    const cookie = await login(ADMIN_TOKEN);
    const own = await mayOf(cookie);
    expect(Object.keys(own).toSorted()).toEqual(
      OPERATOR_ROUTES.map(({ method, path }) => named(method, path)).toSorted(),
    );
    await callFromPage("/as", cookie, { method: "POST", body: { org: account.orgId } });
    const may = await mayOf(cookie);
    expect(Object.keys(may).filter((name) => !name.startsWith("GET "))).toEqual([]);
    expect(Object.keys(may).filter((name) => name.endsWith("/key"))).toEqual([]);
    for (const path of READS.filter((one) => !OWN_KEY_PATHS.has(one))) {
      expect(may).toHaveProperty([named("GET", path)]);
      expect((await callFromPage(path.replace(":org_id", account.orgId), cookie)).status).toBe(200);
    }
  });
});
