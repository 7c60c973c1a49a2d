import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { MINUTE_MS } from "../keys/register-fixture.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import {
  addMember,
  createKey,
  deleteKey,
  fillKeys,
  keysOf,
  postKey,
  suspend,
} from "./key-client.ts";

let account: Account;
let log: string[] = [];
beforeEach(async () => {
  account = await openAccount();
  log = [];
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((line: unknown) => void log.push(String(line)));
  }
});

const RECORD =
  "id member_id name prefix region scope rpm_limit created_at last_used_at revoked".split(" ");

describe("POST /v1/keys", () => {
  it("returns a key that works immediately and is shown and stored nowhere else", async () => {
    const response = await postKey(account.key, { name: "  spaced ÜÏ 🙂", rpm_limit: 9 });
    expect(response.status).toBe(201);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const made = await response.json<Record<string, string>>();
    expect(made).toEqual({
      id: expect.stringMatching(/^key_[0-9A-Za-z]{24}$/),
      member_id: account.memberId,
      name: "  spaced ÜÏ 🙂",
      prefix: made["key"]?.slice(0, "svc_sk_eu_live_".length + 4),
      region: "eu",
      scope: "regional",
      rpm_limit: 9,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      last_used_at: null,
      revoked: false,
      key: expect.stringMatching(/^svc_sk_eu_live_[0-9A-Za-z]{40}$/),
    });
    const used = await chat(made["key"] ?? "");
    expect(used.status).toBe(200);
    expect(used.headers.get("x-ratelimit-limit-requests")).toBe("9");
    expect(used.headers.get("openai-organization")).toBe(account.orgId);
    await errorOf(await chat(made["key"] ?? "", { model: "none" }), 404);
    expect(log.join("\n")).toContain(made["id"]); // the refusal has its line
    const rows = await env.DB.prepare("SELECT * FROM keys").all();
    const secret = made["key"]?.slice(-20) ?? "";
    for (const text of [
      JSON.stringify(rows.results),
      JSON.stringify(await keysOf(account.key)),
      log.join("\n"),
    ]) {
      expect(text).not.toContain(secret);
    }
  });

  it("creates a key for 60 requests per minute and this region by default or for null", async () => {
    for (const fields of [{}, { rpm_limit: null, scope: null }]) {
      const made = await (await postKey(account.key, { name: "x", ...fields })).json();
      expect(made).toMatchObject({ rpm_limit: 60, scope: "regional" });
    }
    for (const rpm_limit of [1, 1000]) {
      expect(await createKey(account.key, { rpm_limit })).toMatchObject({ rpm_limit });
    }
    const name = "n".repeat(100);
    expect(await createKey(account.key, { name })).toMatchObject({ name });
  });

  it("creates keys only for the caller's own member, so that nobody gains rights", async () => {
    const member = await addMember(account, "member");
    const made = await createKey(member.key, { member_id: account.memberId });
    expect((await keysOf(made.key)).map((one) => one.id)).toEqual([made.id, member.keyId]);
    expect((await send(`/v1/orgs/${account.orgId}`, { key: made.key })).status).toBe(200);
  });

  it("ignores read-only fields", async () => {
    const other = await openAccount();
    const wish = {
      id: "key_mine",
      key: "svc_sk_eu_live_mine",
      member_id: other.memberId,
      region: "us",
      revoked: true,
      prefix: "svc",
      created_at: "2020-01-01T00:00:00.000Z",
      last_used_at: "2020-01-01T00:00:00.000Z",
    };
    const made = await createKey(account.key, wish);
    expect(made).toMatchObject({ region: "eu", revoked: false, last_used_at: null });
    expect(Object.keys(made)).toEqual([...RECORD, "key"]);
    expect([made.id, made.key, made.prefix]).not.toEqual(
      expect.arrayContaining([wish.id, wish.key, wish.prefix]),
    );
    expect(Date.now() - Date.parse(made.created_at)).toBeLessThan(MINUTE_MS);
    expect(await keysOf(other.key)).toHaveLength(1);
    const [listed] = await keysOf(made.key);
    expect(listed).toMatchObject({ id: made.id, revoked: false });
    const organization = await (await send(`/v1/orgs/${account.orgId}`, { key: made.key })).json();
    expect(organization).toMatchObject({ is_personal: false });
  });
});

describe("an invalid POST /v1/keys", () => {
  it.each<[string, unknown]>([
    ["name", undefined],
    ["name", null],
    ["name", ""],
    ["name", "   "],
    ["name", "a\u0000b"],
    ["name", "a\nb"],
    ["name", "\u0085"],
    ["name", "n".repeat(101)],
    ["name", 5],
    ["rpm_limit", 0],
    ["rpm_limit", -1],
    ["rpm_limit", 1001],
    ["rpm_limit", 1.5],
    ["rpm_limit", "60"],
    ["rpm_limit", true],
    ["rpm_limit", 1e300],
    ["scope", "local"],
    ["scope", ""],
    ["scope", ["global"]],
  ])("returns 400 for an invalid %s: %j, and creates nothing", async (param, value) => {
    const response = await postKey(account.key, { name: "x", [param]: value });
    const error = await errorOf(response, 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
    expect(await keysOf(account.key)).toHaveLength(1);
  });

  it("returns 400 for an invalid body", async () => {
    for (const body of ["", "{", "[]", '"x"', "null", '{"name":"a","name":"b"}']) {
      await errorOf(await postKey(account.key, body), 400);
    }
    expect(await keysOf(account.key)).toHaveLength(1);
  });
});

/** A body that arrives when it is told to; `asked` resolves when the application begins to read it. */
function heldBody(body: object): {
  stream: ReadableStream;
  asked: Promise<void>;
  arrive: () => void;
} {
  const [asked, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pull = async (controller: ReadableStreamDefaultController): Promise<void> => {
    asked.resolve();
    await arrived.promise;
    controller.enqueue(new TextEncoder().encode(JSON.stringify(body)));
    controller.close();
  };
  const stream = new ReadableStream({ pull }, { highWaterMark: 0 });
  return { stream, asked: asked.promise, arrive: arrived.resolve };
}

describe("authentication of POST /v1/keys", () => {
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
    "returns 401 and creates nothing if the caller's %s while the body arrived",
    async (_, end) => {
      const caller = await addMember(account, "admin");
      const body = heldBody({ name: "late" });
      const answer = send("/v1/keys", {
        method: "POST",
        key: caller.key,
        headers: { "content-type": "application/json" },
        body: body.stream,
        bindings: { ...env },
      });
      await body.asked;
      await end(caller.keyId);
      body.arrive();
      expect((await errorOf(await answer, 401)).type).toBe("invalid_api_key");
      expect((await keysOf(account.key)).map((one) => one.name)).not.toContain("late");
    },
  );
});

describe("POST /v1/keys of a suspended organization", () => {
  it("returns 403 organization_suspended and creates nothing, and works again after the suspension", async () => {
    await suspend(account);
    const error = await errorOf(await postKey(account.key, { name: "x" }), 403);
    expect(error).toMatchObject({ type: "permission_denied", code: "organization_suspended" });
    expect((await errorOf(await chat(account.key), 403)).code).toBe("organization_suspended");
    expect(await keysOf(account.key)).toHaveLength(1);
    await suspend(account, false);
    expect((await postKey(account.key, { name: "x" })).status).toBe(201);
  });
});

describe("POST /v1/keys at the maximum number of keys", () => {
  it("returns 409 at 1,000 active keys, even for concurrent calls, until a key is revoked", async () => {
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
});
