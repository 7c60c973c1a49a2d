import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, bindingsWith, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

/** Returns a namespace whose objects fail every call in this way. `calls` counts them. */
function failing(marks: Record<string, boolean>): { calls: number; getByName: () => object } {
  const namespace = {
    calls: 0,
    getByName: () =>
      new Proxy(
        {},
        {
          get: () => (): Promise<never> => {
            namespace.calls++;
            return Promise.reject(Object.assign(new Error("secret-of-ours"), marks));
          },
        },
      ),
  };
  return namespace;
}

const prepare = (): never => {
  throw new Error("D1_ERROR: the book is down");
};
const RESET = { retryable: true, remote: false };
const OVERLOADED = { overloaded: true, retryable: true };

describe("a failure of the gateway's own storage", () => {
  it.each([
    ["an unavailable key object", "KEY_REGISTER", RESET, "storage_unavailable"],
    ["an overloaded key object", "KEY_REGISTER", OVERLOADED, "overloaded"],
    ["an unavailable wallet", "WALLET", RESET, "storage_unavailable"],
    ["an overloaded wallet", "WALLET", OVERLOADED, "overloaded"],
  ])("returns 503 with retry-after, and charges nothing: %s", async (_, binding, marks, code) => {
    const namespace = failing(marks);
    const { calls, bindings } = mockUpstream(() => Response.json({}));
    const broken = { ...bindings, [binding]: namespace };
    const before = await balanceOf(account.key);
    const response = await chat(account.key, { model: "mock/chat" }, { bindings: broken });
    expect(response.headers.get("retry-after")).toBe("1");
    const error = await errorOf(response, 503);
    expect(error).toMatchObject({ type: "api_error", code, param: null });
    expect(error.message).not.toContain("secret-of-ours");
    expect(calls).toEqual([]);
    expect(namespace.calls).toBe(code === "overloaded" ? 1 : 2);
    expect(await balanceOf(account.key)).toBe(before);
  });

  it("returns 503 instead of a balance of 0 if the balance can't be read", async () => {
    const bindings = bindingsWith({ WALLET: failing(OVERLOADED) });
    const response = await send("/v1/balance", { key: account.key, bindings });
    expect((await errorOf(response, 503)).code).toBe("overloaded");
  });

  it.each([
    ["GET", "/v1/users", undefined],
    ["POST", "/v1/users", { external_id: "u" }],
    ["GET", "/v1/users/u", undefined],
    ["PATCH", "/v1/users/u", { daily_quota_dollars: 1 }],
    ["DELETE", "/v1/users/u", undefined],
  ])(
    "returns 503 instead of 404 for %s %s if the wallet is unavailable",
    async (method, path, body) => {
      const bindings = bindingsWith({ WALLET: failing(OVERLOADED) });
      const response = await send(path, { method, key: account.key, body, bindings });
      expect(response.headers.get("retry-after")).toBe("1");
      expect((await errorOf(response, 503)).code).toBe("overloaded");
    },
  );

  it("still allows changes to end users if only the database is unavailable", async () => {
    const bindings = bindingsWith({ DB: { prepare } });
    const own = await openAccount();
    expect((await chat(own.key)).status).toBe(200); // the key's object has cached its key
    const statuses: number[] = [];
    for (const [method, path, body] of [
      ["POST", "/v1/users", { external_id: "u" }],
      ["PATCH", "/v1/users/u", { daily_quota_dollars: 1 }],
      ["GET", "/v1/users/u", undefined],
      ["GET", "/v1/users", undefined],
      ["DELETE", "/v1/users/u", undefined],
    ] as const) {
      statuses.push((await send(path, { method, key: own.key, body, bindings })).status);
    }
    expect(statuses).toEqual([201, 200, 200, 200, 200]);
  });

  it("still allows requests with a recently used key if only the database is unavailable", async () => {
    const real = env.DB;
    try {
      env.DB = new Proxy(real, {
        get: (target, name) => (name === "prepare" ? prepare : Reflect.get(target, name)),
      });
      expect((await chat(account.key)).status).toBe(200);
      expect((await send("/v1/balance", { key: account.key })).status).toBe(200);
      const response = await send(`/admin/v1/orgs/${account.orgId}`, { key: "a".repeat(32) });
      expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
    } finally {
      env.DB = real;
    }
  });
});
