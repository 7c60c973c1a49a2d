import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { admin, chat, errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey, deleteKey, fillKeys, keysOf, postKey } from "./key-client.ts";

const DAY_MS = 86_400_000;

let account: Account;
let log: string[] = [];
beforeEach(async () => {
  account = await openAccount();
  log = [];
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((line: unknown) => void log.push(String(line)));
  }
});

describe("POST /v1/keys", () => {
  it("returns a key that works immediately, and never shows or stores the key again", async () => {
    const response = await postKey(account.key, { name: "  spaced ÜÏ 🙂", rpm_limit: 9 });
    expect(response.status).toBe(201);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const created = await response.json<Record<string, string>>();
    expect(created).toEqual({
      id: expect.stringMatching(/^key_[0-9A-Za-z]{24}$/),
      member_id: account.memberId,
      name: "  spaced ÜÏ 🙂",
      prefix: created["key"]?.slice(0, "svc_sk_eu_live_".length + 4),
      region: "eu",
      scope: "regional",
      rpm_limit: 9,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      last_used_at: null,
      revoked: false,
      key: expect.stringMatching(/^svc_sk_eu_live_[0-9A-Za-z]{40}$/),
    });
    const used = await chat(created["key"] ?? "");
    expect(used.status).toBe(200);
    expect(used.headers.get("x-ratelimit-limit-requests")).toBe("9");
    expect(used.headers.get("openai-organization")).toBe(account.orgId);
    await errorOf(await chat(created["key"] ?? "", { model: "none" }), 404);
    expect(log.join("\n")).toContain(created["id"]); // the rejection has a log line
    const rows = await env.DB.prepare("SELECT * FROM keys").all();
    const secret = created["key"]?.slice(-20) ?? "";
    for (const text of [
      JSON.stringify(rows.results),
      JSON.stringify(await keysOf(account.key)),
      log.join("\n"),
    ]) {
      expect(text).not.toContain(secret);
    }
  });

  it("creates a regional key with 60 requests per minute if scope and rpm_limit are omitted or null", async () => {
    for (const fields of [{}, { rpm_limit: null, scope: null }]) {
      const created = await (await postKey(account.key, { name: "x", ...fields })).json();
      expect(created).toMatchObject({ rpm_limit: 60, scope: "regional" });
    }
    for (const rpm_limit of [1, 1000]) {
      expect(await createKey(account.key, { rpm_limit })).toMatchObject({ rpm_limit });
    }
    const name = "n".repeat(100);
    expect(await createKey(account.key, { name })).toMatchObject({ name });
  });

  it("creates keys only for the member who owns the caller's key", async () => {
    const member = await addMember(account.orgId, "member");
    const created = await createKey(member.key, { member_id: account.memberId });
    expect((await keysOf(created.key)).map((one) => one.id)).toEqual([created.id, member.keyId]);
    expect((await send(`/v1/orgs/${account.orgId}`, { key: created.key })).status).toBe(200);
  });
});

/**
 * Returns a body that the test completes. `readStarted` resolves when the application starts to read it.
 */
function heldBody(body: object): {
  stream: ReadableStream;
  readStarted: Promise<void>;
  arrive: () => void;
} {
  const [readStarted, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pull = async (controller: ReadableStreamDefaultController): Promise<void> => {
    readStarted.resolve();
    await arrived.promise;
    controller.enqueue(new TextEncoder().encode(JSON.stringify(body)));
    controller.close();
  };
  const stream = new ReadableStream({ pull }, { highWaterMark: 0 });
  return { stream, readStarted: readStarted.promise, arrive: arrived.resolve };
}

describe("authentication at POST /v1/keys", () => {
  it.each([
    ["key was revoked", (id: string) => deleteKey(account.key, id)],
    [
      "member was removed",
      () =>
        env.DB.prepare("UPDATE members SET removed_at = 1 WHERE org_id = ? AND role = 'admin'")
          .bind(account.orgId)
          .run(),
    ],
  ])(
    "returns 401, and creates no key, if the caller's %s while the body arrived",
    async (_, end) => {
      const caller = await addMember(account.orgId, "admin");
      const body = heldBody({ name: "late" });
      const answer = send("/v1/keys", {
        method: "POST",
        key: caller.key,
        headers: { "content-type": "application/json" },
        body: body.stream,
        bindings: { ...env },
      });
      await body.readStarted;
      await end(caller.keyId);
      body.arrive();
      expect((await errorOf(await answer, 401)).type).toBe("invalid_api_key");
      expect((await keysOf(account.key)).map((one) => one.name)).not.toContain("late");
    },
  );
});

describe("POST /v1/keys at the maximum number of keys", () => {
  it("returns 409 above 1,000 active keys, even for concurrent calls, until a key is revoked", async () => {
    await fillKeys(account, 997);
    await fillKeys(account, 50, { revokedAt: 2 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => postKey(account.key, { name: "more" })),
    );
    expect(answers.filter((one) => one.status === 201)).toHaveLength(2);
    const refused = answers.filter((one) => one.status !== 201);
    for (const one of refused) {
      expect(one.headers.get("x-should-retry")).toBe("false");
      expect(await errorOf(one, 409)).toMatchObject({ code: "too_many_keys", param: null });
    }
    const [newest] = await keysOf(account.key);
    expect((await deleteKey(account.key, newest?.id ?? "")).status).toBe(200);
    expect((await postKey(account.key, { name: "more" })).status).toBe(201);
    await errorOf(await postKey(account.key, { name: "more" }), 409);
  });

  it("returns 409 above 10,000 new keys in 24 hours, counting revoked keys, even to operators", async () => {
    const now = Date.now();
    await fillKeys(account, 3, { createdAt: now - DAY_MS - 60_000, revokedAt: now });
    await fillKeys(account, 9998, { createdAt: now - DAY_MS + 60_000, revokedAt: now });
    // 10,000 keys together with the account's first one
    const { id } = await createKey(account.key);
    expect((await deleteKey(account.key, id)).status).toBe(200);
    const refused = await postKey(account.key, { name: "one more" });
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(await errorOf(refused, 409)).toMatchObject({ code: "too_many_keys" });
    const path = `/orgs/${account.orgId}/members/${account.memberId}/keys`;
    expect((await admin("POST", path, { name: "an operator's" })).status).toBe(409);
    expect((await send("/v1/models", { key: account.key })).status).toBe(200);
  });
});
