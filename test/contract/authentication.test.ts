import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { mintKey } from "../../src/accounts/keys/api-key.ts";
import { keySecrets } from "../keys/key-fixture.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import type { KeyScope } from "../../src/shared/key.ts";
import type { Region } from "../../src/shared/regions.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const withHeader = (authorization: string, bindings?: Env): Promise<Response> =>
  send("/v1/models", { headers: { authorization }, ...(bindings && { bindings }) });
const mintKeyFor = async (home: Region, scope: KeyScope): Promise<string> =>
  (await mintKey({ home, scope, secrets: keySecrets() })).key;

/** Returns a key that was revoked in one of its objects, in the wallet after its first use. */
async function revokedKey(revokedIn: "wallet" | "register"): Promise<string> {
  const account = await openAccount();
  if (revokedIn === "wallet") await send("/v1/models", { key: account.key });
  const row = await env.DB.prepare("SELECT hash FROM keys WHERE id = ?")
    .bind(account.keyId)
    .first<{ hash: string }>();
  const hash = row?.hash ?? "";
  if (revokedIn === "register") await env.KEY_REGISTER.getByName(hash).revoke(Date.now());
  else await env.WALLET.getByName(account.orgId).revokeKey(hash, Date.now());
  return account.key;
}

describe("authentication with a valid key", () => {
  it("ignores a client's other headers, even an x-api-key for another service", async () => {
    const headers = {
      "openai-organization": "org-theirs",
      "openai-project": "p",
      "x-api-key": "sk-theirs",
      "api-key": "sk-theirs",
      "http-referer": "https://app.test",
      "x-title": "App",
      "x-stainless-retry-count": "1",
      "user-agent": "OpenAI/JS 7.55.0",
      cookie: "session=1",
    };
    const response = await chat(key, {}, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get("openai-organization")).not.toBe("org-theirs");
  });
});

describe("authentication with an invalid key", () => {
  it("returns the same 401 body for all invalid keys, and never includes the key", async () => {
    const headers = [
      "",
      "Bearer",
      "Bearer ",
      `Bearer  ${key}`,
      `Bearer ${key} x`,
      `Bearer ${key},Bearer ${key}`,
      `Bearer ${key.slice(0, 20)} ${key.slice(20)}`,
      key,
      `Basic ${btoa(`x:${key}`)}`,
      `Token ${key}`,
      `Bearer ${"x".repeat(10_240)}`,
      `Bearer ${key}${"x".repeat(100)}`,
      `Bearer ${key.slice(0, -1)}`,
      `Bearer ${key}A`,
      `Bearer ${key.toUpperCase()}`,
      "Bearer sk-proj-abcdef",
      "Bearer rk-eu-abcdef",
      "Bearer null",
      `Bearer ${await mintKeyFor("eu", "regional")}`, // has a valid checksum, but was never issued
      `Bearer ${await revokedKey("wallet")}`,
      `Bearer ${await revokedKey("register")}`,
    ];
    const bodies = new Set<string>();
    for (const authorization of headers) {
      const response = await withHeader(authorization);
      expect([authorization, response.status]).toEqual([authorization, 401]);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(response.headers.has("openai-organization")).toBe(false);
      bodies.add(await response.text());
    }
    bodies.add(await (await send("/v1/models")).text());
    expect(bodies.size).toBe(1);
    const { error } = JSON.parse([...bodies][0] ?? "") as { error: object };
    expect(error).toMatchObject({ type: "invalid_api_key", param: null, code: null });
  });

  it("returns 401 before the body is checked, on every path and method", async () => {
    const bodies = new Set<string>();
    for (const path of ["/v1/chat/completions", "/v1/embeddings", "/v1/models", "/v1/balance"]) {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        const body = method === "GET" ? undefined : "{not json";
        const headers = { "content-type": "text/plain" };
        const response = await send(path, { method, body, headers });
        expect([path, method, response.status]).toEqual([path, method, 401]);
        bodies.add(await response.text());
      }
    }
    expect(bodies.size).toBe(1);
  });
});

describe("authentication with a key of another region", () => {
  it("returns 403 region_mismatch for a regional key, even for a key that was never issued", async () => {
    const { bindings, ...counted } = countedBindings();
    const response = await withHeader(`Bearer ${await mintKeyFor("us", "regional")}`, bindings);
    expect(response.headers.has("openai-organization")).toBe(false);
    expect(await errorOf(response, 403)).toMatchObject({
      type: "region_mismatch",
      param: null,
      code: null,
    });
    expect(counted).toMatchObject({ objects: 0, statements: 0 });
  });

  it("returns 503 home_region_unreachable with retry-after for a global key", async () => {
    const response = await withHeader(`Bearer ${await mintKeyFor("us", "global")}`);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await errorOf(response, 503)).toMatchObject({
      type: "api_error",
      code: "home_region_unreachable",
    });
  });
});

describe("the authentication of a key", () => {
  it("calls the key's object and the wallet for a key's first request, and later only the wallet", async () => {
    const counted = countedBindings();
    // The first request of another key reads the prices, which an isolate does regularly.
    await withHeader(`Bearer ${(await openAccount()).key}`, counted.bindings);
    expect(counted).toMatchObject({ objects: 2, statements: 1 });
    for (const objects of [4, 5]) {
      expect((await withHeader(`Bearer ${key}`, counted.bindings)).status).toBe(200);
      expect(counted).toMatchObject({ objects, statements: 1 });
    }
  });
});
