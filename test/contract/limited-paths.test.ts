import { describe, expect, it } from "vitest";
import { KEY_ROUTES } from "../../src/routes.ts";
import type { KeyRoute } from "../../src/shared/http/route.ts";
import { errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { readOrganizationData } from "./organization-data.ts";
import { createKey, deleteKey } from "./key-client.ts";

const TERMS = { budget_dollars: 0.5, budget_period: "day", rpm_limit: 900, end_user: "ann" };
const MANAGED = KEY_ROUTES.filter(({ reach }) => reach === "managed");
/** Paths that accept a key with limits, but no session. */
const KEY_ONLY_PATHS = KEY_ROUTES.filter((row: KeyRoute) => row.sessions === false);
const nameOf = ({ method, path }: KeyRoute): string => `${method} ${path}`;

/** Calls a path with the caller's own objects and a body that would lift a limit. */
function callPath({ method, path }: KeyRoute, key: string, id: string): Promise<Response> {
  const body =
    method === "POST" || method === "PATCH" ? { budget_dollars: null, rpm_limit: 1000 } : undefined;
  const headers = { "idempotency-key": crypto.randomUUID() };
  return send(path.replace(/:\w+(\{.+\})?/, id), { method, key, headers, ...(body && { body }) });
}

type Own = { readonly account: Account; readonly keyId: string; readonly webhookId: string };

function idOf({ path }: KeyRoute, { account, keyId, webhookId }: Own): string {
  if (path.includes(":org_id")) return account.orgId;
  if (path.startsWith("/v1/webhooks")) return webhookId;
  return path.startsWith("/v1/keys") ? keyId : "ann";
}

/** Creates settings, a quota and a webhook, so that a change would be visible. */
async function createOwnObjects({ key, orgId }: Account): Promise<string> {
  const settings = { default_user_daily_quota_dollars: 5 };
  const user = { external_id: "ann", daily_quota_dollars: 1 };
  const hook = { url: "https://hooks.turnpike.dev/", types: ["balance.credited"] };
  const set = await send(`/v1/orgs/${orgId}/settings`, { method: "PATCH", key, body: settings });
  expect(set.status).toBe(200);
  expect((await send("/v1/users", { key, body: user })).status).toBe(201);
  const response = await send("/v1/webhooks", { key, body: hook });
  expect(response.status).toBe(201);
  return (await response.json<{ id: string }>()).id;
}

describe("each path that could remove a key's limits", () => {
  it("returns 403 key_is_limited to limited keys and sessions, and changes nothing", async () => {
    const account = await openAccount();
    const limited = await createKey(account.key, TERMS);
    const minted = await send("/v1/sessions", { key: account.key, body: {} });
    const { token } = await minted.json<{ token: string }>();
    const own = { account, keyId: limited.id, webhookId: await createOwnObjects(account) };
    const before = await readOrganizationData(account);
    const refused = async (path: KeyRoute, key: string): Promise<void> => {
      const response = await callPath(path, key, idOf(path, own));
      const { code } = await errorOf(response, 403);
      expect([nameOf(path), code]).toEqual([nameOf(path), "key_is_limited"]);
    };
    expect(MANAGED.length).toBeGreaterThan(20);
    for (const path of MANAGED) {
      await refused(path, limited.key);
      await refused(path, token);
    }
    expect(KEY_ONLY_PATHS.length).toBeGreaterThan(0);
    for (const path of KEY_ONLY_PATHS) await refused(path, token);
    expect(await readOrganizationData(account)).toEqual(before);
  });

  it("occurs in the list of paths that this test covers", () => {
    const open = KEY_ROUTES.filter(
      ({ reach, method }) => reach !== "managed" && reach !== "paid" && method !== "GET",
    );
    expect(open.map(nameOf).toSorted()).toEqual(
      [
        "DELETE /v1/responses/:id{resp_\\w+}",
        "DELETE /v1/sessions/:id",
        "POST /v1/charges",
        "POST /v1/holds",
        "POST /v1/holds/:id/capture",
        "POST /v1/holds/:id/extend",
        "POST /v1/holds/:id/release",
        "POST /v1/keys/:id/rotate",
        "POST /v1/messages/count_tokens",
        "POST /v1/sessions",
      ].toSorted(),
    );
  });
});

it("a rotation keeps the key's limits", async () => {
  const account = await openAccount();
  const expires = new Date(Date.now() + 600_000).toISOString();
  const limited = await createKey(account.key, {
    ...TERMS,
    allowed_models: ["sandbox/echo"],
    expires_at: expires,
  });
  const response = await send(`/v1/keys/${limited.id}/rotate`, {
    key: limited.key,
    body: { overlap_seconds: 60 },
    headers: { "idempotency-key": "r" },
  });
  const { key } = await response.json<{ key: string }>();
  const own = await (await send("/v1/key", { key })).json();
  expect(own).toMatchObject({ ...TERMS, allowed_models: ["sandbox/echo"], expires_at: expires });
  expect((await deleteKey(account.key, limited.id)).status).toBe(200);
  expect((await send("/v1/key", { key })).status).toBe(401);
});
