import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { HELLO, addCredits, admin, chat, errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey, keysOf } from "./key-client.ts";

const DAY_MS = 86_400_000;
const TERMS = {
  budget_dollars: 2.5,
  budget_period: "day",
  tpm_limit: 5000,
  max_concurrent: 20,
  allowed_models: ["sandbox/*", "smart"],
  end_user: "ann",
  expires_at: "2099-01-31T00:00:00.000Z",
};
const NONE = {
  budget_dollars: null,
  budget_period: null,
  tpm_limit: null,
  max_concurrent: null,
  allowed_models: null,
  end_user: null,
  expires_at: null,
};

let account: Account;
beforeEach(async () => {
  account = await openAccount();
  await addCredits(account.orgId, 5_000_000);
});
afterEach(() => shiftClock(null));

function patch(key: string, id: string, body: unknown): Promise<Response> {
  return send(`/v1/keys/${id}`, { method: "PATCH", key, body });
}

async function ownKey(key: string): Promise<Record<string, unknown>> {
  const response = await send("/v1/key", { key });
  expect(response.status).toBe(200);
  return response.json<Record<string, unknown>>();
}

describe("POST /v1/keys with limits", () => {
  it("returns 201 with all limits, which the customer's and the operator's lists of keys include", async () => {
    const { key, ...created } = await createKey(account.key, TERMS);
    expect(created).toMatchObject({ ...TERMS, spent_dollars: 0 });
    expect((await keysOf(account.key)).find((one) => one.id === created.id)).toEqual(created);
    const path = `/orgs/${account.orgId}/keys/${created.id}`;
    expect(await (await admin("GET", path)).json()).toMatchObject({ ...TERMS, id: created.id });
    expect((await chat(key, { user: undefined })).status).toBe(200);
  });

  it("returns 201 without limits for omitted or null limits", async () => {
    for (const fields of [{}, NONE]) {
      const created = await createKey(account.key, fields);
      expect(Object.keys(created)).not.toContain("budget_dollars");
      expect(
        await env.DB.prepare("SELECT * FROM key_terms WHERE key_id = ?").bind(created.id).first(),
      ).toBeNull();
    }
  });
});

describe("PATCH /v1/keys/{id}", () => {
  it("sets the given limits, leaves all others unchanged, and removes limits set to null", async () => {
    const created = await createKey(account.key, TERMS);
    const changed = await patch(account.key, created.id, { budget_dollars: 4, name: "renamed" });
    expect(await changed.json()).toMatchObject({ ...TERMS, budget_dollars: 4, name: "renamed" });
    const free = await (await patch(account.key, created.id, { ...NONE, rpm_limit: 9 })).json();
    expect(free).toMatchObject({ id: created.id, rpm_limit: 9 });
    expect(Object.keys(free as object)).not.toContain("budget_dollars");
    const again = await patch(account.key, created.id, { tpm_limit: 7 });
    expect(await again.json()).toMatchObject({ ...NONE, tpm_limit: 7 });
  });

  it("accepts its own response body as the next request body", async () => {
    const created = await createKey(account.key, TERMS);
    const read = (await keysOf(account.key)).find((one) => one.id === created.id);
    const response = await patch(account.key, created.id, read);
    expect([response.status, await response.json()]).toEqual([200, read]);
  });

  it("lets members and billing members tighten, but not loosen, the limits of their own keys", async () => {
    const member = await addMember(account.orgId, "member");
    const own = await createKey(member.key, { ...TERMS, budget_dollars: 2, rpm_limit: 10 });
    for (const tighter of [
      { budget_dollars: 1 },
      { tpm_limit: 4000 },
      { allowed_models: ["sandbox/echo"] },
      { expires_at: "2098-01-01T00:00:00Z" },
      { rpm_limit: 5 },
      { name: "mine" },
    ]) {
      expect([tighter, (await patch(member.key, own.id, tighter)).status]).toEqual([tighter, 200]);
    }
    for (const wider of [
      { budget_dollars: 1.5 },
      { budget_dollars: null },
      { budget_period: "month" },
      { tpm_limit: 4001 },
      { allowed_models: null },
      { allowed_models: ["sandbox/echo", "smart"] },
      { end_user: null },
      { end_user: "bob" },
      { expires_at: "2098-01-01T00:00:01Z" },
      { expires_at: null },
      { rpm_limit: 6 },
    ]) {
      const error = await errorOf(await patch(member.key, own.id, wider), 403);
      expect([wider, error.code]).toEqual([wider, "role_required"]);
    }
    expect((await keysOf(member.key)).find((one) => one.id === own.id)).toMatchObject({
      budget_dollars: 1,
      tpm_limit: 4000,
      allowed_models: ["sandbox/echo"],
      rpm_limit: 5,
    });
    await errorOf(await patch(member.key, account.keyId, { name: "x" }), 404);
    const admins = await addMember(account.orgId, "admin");
    expect((await patch(admins.key, own.id, { budget_dollars: 9 })).status).toBe(200);
  });

  it("stores the same limits in the database and the key's object after concurrent changes", async () => {
    const created = await createKey(account.key, TERMS);
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map((budget_dollars) => patch(account.key, created.id, { budget_dollars })),
    );
    const ok = answers.filter(({ status }) => status === 200);
    expect(ok.length).toBeGreaterThan(0);
    const listed = (await keysOf(account.key)).find((one) => one.id === created.id) as unknown;
    const { budget_dollars } = listed as { budget_dollars: number };
    const { limits } = await ownKey(created.key);
    expect(limits).toMatchObject({ budget: { left_dollars: budget_dollars } });
  });

  it("applies an operator's change immediately", async () => {
    const created = await createKey(account.key);
    const path = `/orgs/${account.orgId}/keys/${created.id}`;
    expect((await chat(created.key)).status).toBe(200);
    expect((await admin("PATCH", path, { budget_dollars: 0 })).status).toBe(200);
    expect((await errorOf(await chat(created.key), 402)).code).toBe("key_budget_exceeded");
    expect((await admin("PATCH", path, { budget_dollars: null })).status).toBe(200);
    expect((await chat(created.key)).status).toBe(200);
  });
});

describe("GET /v1/key", () => {
  it("returns the caller's key and the remaining amount of each limit", async () => {
    const created = await createKey(account.key, {
      budget_dollars: 1,
      tpm_limit: 5000,
      rpm_limit: 50,
    });
    expect((await chat(created.key)).status).toBe(200);
    const own = await ownKey(created.key);
    const { requests, tokens, budget } = own["limits"] as Record<string, Record<string, number>>;
    expect(own).toMatchObject({ id: created.id, name: "fresh", budget_dollars: 1, revoked: false });
    expect(requests).toMatchObject({ limit: 50, remaining: 48 });
    expect(tokens?.["limit"]).toBe(5000);
    expect(tokens?.["remaining"]).toBeLessThan(5000);
    expect(budget?.["spent_dollars"]).toBeGreaterThan(0);
    expect((budget?.["spent_dollars"] ?? 0) + (budget?.["left_dollars"] ?? 0)).toBeCloseTo(1, 6);
    expect(budget?.["resets_at"]).toBeNull();
  });

  it("returns only the limit of requests per minute for a key without other limits", async () => {
    const { limits } = await ownKey(account.key);
    expect(limits).toMatchObject({ requests: { limit: 1000 }, tokens: null, budget: null });
  });
});

describe("a key with limits", () => {
  it("returns 401 everywhere after the key expires, and works again after the expiry is extended", async () => {
    const created = await createKey(account.key, {
      expires_at: new Date(Date.now() + DAY_MS).toISOString(),
    });
    expect((await chat(created.key)).status).toBe(200);
    shiftClock(DAY_MS + 1000);
    for (const response of [
      await chat(created.key),
      await send("/v1/models", { key: created.key }),
      await send("/v1/key", { key: created.key }),
    ]) {
      expect((await errorOf(response, 401)).message).toContain("expired");
    }
    const later = new Date(Date.now() + 3 * DAY_MS).toISOString();
    expect((await patch(account.key, created.id, { expires_at: later })).status).toBe(200);
    expect((await chat(created.key)).status).toBe(200);
  });
});

describe("a key's limit on tokens per minute", () => {
  it("admits a prompt by an estimate of its tokens, but counts the actual tokens", async () => {
    const created = await createKey(account.key, { tpm_limit: 20_000 });
    const prose = "The gateway counts what a prompt is likely to take. ".repeat(430); // 22,360 bytes
    const answer = await chat(created.key, { messages: [{ role: "user", content: prose }] });
    expect(answer.status).toBe(200);
    const { usage } = await answer.json<{ usage: { total_tokens: number } }>();
    expect(usage.total_tokens).toBeGreaterThan(4000);
    const { limits } = await ownKey(created.key);
    const { tokens } = limits as Record<string, { remaining: number }>;
    expect(tokens?.remaining).toBe(20_000 - usage.total_tokens);
  });

  it.each([
    ["/v1/chat/completions", { messages: HELLO, max_tokens: 400 }, "max_tokens"],
    ["/v1/responses", { input: "Hi", max_output_tokens: 400 }, "max_output_tokens"],
  ])(
    "returns 400 with the output cap's field name for a request above the limit: %s",
    async (...args) => {
      const [path, fields, param] = args;
      const { key } = await createKey(account.key, { tpm_limit: 300 });
      const response = await send(path, { key, body: { model: "sandbox/echo", ...fields } });
      expect(await errorOf(response, 400)).toMatchObject({ code: "tokens", param });
    },
  );
});
