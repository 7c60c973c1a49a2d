import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { holdOf, valueOf } from "../wallet/wallet-fixture.ts";
import { addCredits, addMember, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey } from "./key-client.ts";
import { createSession } from "./session-client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
  await addCredits(account.orgId, 5_000_000);
});

const settings = (body: object, key = account.key): Promise<Response> =>
  send(`/v1/orgs/${account.orgId}/settings`, { method: "PATCH", key, body });

const ownKey = async (key: string) =>
  (await send("/v1/key", { key })).json<{
    max_concurrent?: number;
    limits: { concurrent?: unknown };
  }>();

/** Starts a request of a key that doesn't end. */
async function run(keyId: string): Promise<void> {
  valueOf(await env.WALLET.getByName(account.orgId).hold(holdOf(1, { keyId })));
}

describe("the limit max_concurrent", () => {
  it("rejects a key's request above the limit with 429 until another request ends", async () => {
    const { key, id } = await createKey(account.key, { max_concurrent: 1 });
    expect((await chat(key)).status).toBe(200);
    expect((await chat(key)).status).toBe(200);
    await run(id);
    const rejected = await chat(key);
    expect(rejected.headers.get("retry-after")).toBe("1");
    expect(rejected.headers.get("x-should-retry")).toBe("true");
    expect(await errorOf(rejected, 429)).toMatchObject({
      type: "rate_limit_exceeded",
      code: "concurrency_limit_exceeded",
      message: "Limit of 1 concurrent requests for this API key reached. Please retry after 1s.",
    });
    expect((await chat(account.key)).status).toBe(200);
  });

  it("limits all keys of an organization together; GET /v1/key shows this limit and the key's own limit", async () => {
    const changed = await settings({ max_concurrent: 2 });
    expect(await changed.json()).toMatchObject({ max_concurrent: 2 });
    const { key, id } = await createKey(account.key, { max_concurrent: 5 });
    await run(id);
    expect(await ownKey(key)).toMatchObject({
      max_concurrent: 5,
      limits: {
        concurrent: [
          { scope: "key", limit: 5, running: 1 },
          { scope: "organization", limit: 2, running: 1 },
        ],
      },
    });
    await run(account.keyId);
    expect(await errorOf(await chat(key), 429)).toMatchObject({
      message:
        "Limit of 2 concurrent requests for your organization reached. Please retry after 1s.",
    });
    const { token } = await createSession(account.key);
    expect(await errorOf(await chat(token), 429)).toMatchObject({
      message:
        "The key or organization that pays for this session has too many requests in progress. Please retry after 1s.",
    });
    expect((await ownKey(token)).limits).not.toHaveProperty("concurrent");
    expect((await settings({ max_concurrent: null })).status).toBe(200);
    expect((await chat(key)).status).toBe(200);
  });

  it("can be changed for an organization by owners, admins and billing members", async () => {
    for (const [role, status] of [
      ["admin", 200],
      ["billing", 200],
      ["member", 403],
    ] as const) {
      const { key } = await addMember(account.orgId, role);
      expect((await settings({ max_concurrent: 3 }, key)).status).toBe(status);
    }
  });
});
