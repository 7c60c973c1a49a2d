import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { addCredits, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { createKey } from "./key-client.ts";
import { createSession } from "./session-client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
  await addCredits(account.orgId, 5_000_000);
});
afterEach(() => shiftClock(null));

const patch = (path: string, body: unknown): Promise<Response> =>
  send(path, { method: "PATCH", key: account.key, body });
const settings = (budgets: unknown): Promise<Response> =>
  patch(`/v1/orgs/${account.orgId}/settings`, { budgets });

async function bodyOf(response: Response, status = 200): Promise<Record<string, unknown>> {
  expect(response.status).toBe(status);
  return response.json<Record<string, unknown>>();
}

const ownKey = async (key: string): Promise<Record<string, unknown>> =>
  bodyOf(await send("/v1/key", { key }));

const usageOf = (body: Record<string, unknown>): { id: string; usage: number }[] =>
  (body["budgets"] as { id: string; usage: number }[]).map(({ id, usage }) => ({ id, usage }));

describe("a budget of an organization", () => {
  it("rejects requests above the budget, appears in the error, and resets with each time window", async () => {
    const body = await bodyOf(await settings([{ limit_requests: 2, window: "5m" }]));
    expect(body["budgets"]).toMatchObject([
      { scope: "organization", limit_requests: 2, window: "5m", usage: 0, held: 0 },
    ]);
    for (let i = 0; i < 2; i++) {
      expect((await chat(account.key)).status).toBe(200);
    }
    const refused = await chat(account.key);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(await errorOf(refused, 402)).toMatchObject({
      code: "budget_exceeded",
      scope: "organization",
      window: "5m",
      limit_requests: 2,
      left_requests: 0,
      required_requests: 1,
    });
    shiftClock(5 * 60_000 + 5000);
    expect((await chat(account.key)).status).toBe(200);
  });

  it("shows the same usage in GET /v1/keys and GET /v1/key", async () => {
    const budgets = [
      { limit_requests: 5, window: "60m" },
      { limit_dollars: 1, window: "day" },
      { limit_tokens: 1000, window: "total" },
    ];
    const { id, key } = await createKey(account.key, { budgets });
    expect((await chat(key)).status).toBe(200);
    const used = Object.fromEntries(usageOf(await ownKey(key)).map((one) => [one.id, one.usage]));
    expect(Object.values(used).every((one) => one > 0)).toBe(true);
    await vi.waitFor(async () => {
      await env.WALLET.getByName(account.orgId).poke();
      const { keys } = await bodyOf(await send("/v1/keys", { key: account.key }));
      const listed = (keys as { id: string; budgets_used?: object }[]).find((one) => one.id === id);
      expect(listed?.budgets_used).toEqual(used);
    });
  });

  it("appears in GET /v1/key next to the key's budget; effective_budget is the lower budget", async () => {
    await settings([{ limit_dollars: 3, window: "day", alert_at: 0.5 }]);
    const { key } = await createKey(account.key, {
      budgets: [{ limit_dollars: 1, window: "60m", models: ["sandbox/*"] }],
    });
    expect((await chat(key)).status).toBe(200);
    const own = await ownKey(key);
    expect(own["budgets"]).toMatchObject([
      { scope: "key", limit_dollars: 1, window: "60m", models: ["sandbox/*"] },
      { scope: "organization", limit_dollars: 3, window: "day", alert_at: 0.5 },
    ]);
    const [ofKey, ofOrganization] = own["budgets"] as { usage: number; limit_remaining: number }[];
    expect(ofKey?.usage).toBeGreaterThan(0);
    expect(ofKey?.usage).toBe(ofOrganization?.usage);
    expect(own["effective_budget"]).toMatchObject({
      scope: "key",
      limit: 1,
      limit_remaining: ofKey?.limit_remaining,
    });
  });

  it("counts only requests for the models in the budget", async () => {
    const everything = { limit_requests: 9, window: "5m" };
    await settings([everything, { ...everything, models: ["openai/*"] }]);
    expect((await chat(account.key)).status).toBe(200);
    expect(usageOf(await ownKey(account.key)).map(({ usage }) => usage)).toEqual([1, 0]);
  });

  it("adds only one wallet call to GET /v1/key, besides the admission call", async () => {
    await settings([{ limit_dollars: 3, window: "60m" }]);
    const budgets = [{ limit_dollars: 1, window: "day" }];
    const { key } = await createKey(account.key, { budgets, max_concurrent: 5 });
    const counted = countedBindings();
    const read = () => send("/v1/key", { key, bindings: counted.bindings });
    expect((await read()).status).toBe(200); // an isolate looks up a new key once
    Object.assign(counted, { objects: 0, statements: 0 });
    const response = await read();
    expect(await bodyOf(response)).toMatchObject({ effective_budget: { scope: "key" } });
    expect(counted).toMatchObject({ objects: 2, statements: 1 });
  });

  it("keeps its ID and usage when another budget is added, which starts with usage 0", async () => {
    expect((await chat(account.key)).status).toBe(200);
    const [before] = usageOf(await bodyOf(await settings([{ limit_dollars: 2, window: "day" }])));
    expect(before?.usage).toBeGreaterThan(0);
    const changed = await settings([
      { limit_dollars: 1, window: "total" },
      { limit_dollars: 1, window: "day" },
    ]);
    const [total, day] = usageOf(await bodyOf(changed));
    expect(day).toEqual(before);
    expect(total?.usage).toBe(0);
    expect(usageOf(await bodyOf(await settings([])))).toEqual([]);
  });
});

describe("a budget of a member, end user or session", () => {
  it("counts the total spend of all keys of a member", async () => {
    const { key: other } = await createKey(account.key, {});
    expect((await chat(account.key)).status).toBe(200);
    const member = `/v1/members/${account.memberId}`;
    const budgets = [{ limit_requests: 3, window: "day", alert_at: 0.5 }];
    const changed = await bodyOf(await patch(member, { budgets }));
    expect(changed).toMatchObject({ policy: null, budgets: [{ scope: "member", usage: 1 }] });
    const policy = { allowed_models: null, allowed_providers: null, allowed_data_regions: ["eu"] };
    expect(await bodyOf(await patch(member, { policy }))).toEqual({ ...changed, policy });
    expect(await bodyOf(await patch(member, { policy: null }))).toEqual(changed);
    expect((await chat(account.key)).status).toBe(200);
    expect((await chat(other)).status).toBe(200);
    expect(await errorOf(await chat(account.key), 402)).toMatchObject({
      code: "budget_exceeded",
      scope: "member",
    });
    expect((await ownKey(other))["budgets"]).toMatchObject([{ scope: "member", usage: 3 }]);
    expect(await bodyOf(await patch(member, { budgets: [] }))).toMatchObject({ budgets: [] });
    expect((await chat(other)).status).toBe(200);
  });

  it("rejects the end user's requests with 429 until the end user is deleted", async () => {
    const response = await send("/v1/users", {
      method: "POST",
      key: account.key,
      body: { external_id: "ann", budgets: [{ limit_requests: 1, window: "total" }] },
    });
    expect((await bodyOf(response, 201))["budgets"]).toMatchObject([{ scope: "end_user" }]);
    expect((await chat(account.key, { user: "ann" })).status).toBe(200);
    expect(await errorOf(await chat(account.key, { user: "ann" }), 429)).toMatchObject({
      code: "end_user_quota_exceeded",
      scope: "end_user",
    });
    expect((await chat(account.key, { user: "ben" })).status).toBe(200);
    await send("/v1/users/ann", { method: "DELETE", key: account.key });
    expect((await chat(account.key, { user: "ann" })).status).toBe(200);
  });

  it("stays hidden from sessions if the organization owns the budget", async () => {
    await settings([{ limit_dollars: 0, window: "1m" }]);
    const { token } = await createSession(account.key, {
      budgets: [{ limit_requests: 1, window: "total" }],
    });
    expect(await errorOf(await chat(token), 402)).not.toHaveProperty("scope");
    await settings([]);
    expect((await chat(token)).status).toBe(200);
    expect(await errorOf(await chat(token), 402)).toMatchObject({ scope: "session" });
    expect((await ownKey(token))["budgets"]).toMatchObject([{ scope: "session", usage: 1 }]);
  });

  it("counts both prompt and output tokens", async () => {
    await settings([{ limit_tokens: 500, window: "day" }]);
    const first = await bodyOf(await chat(account.key, { user: undefined }));
    const usage = first["usage"] as { total_tokens: number };
    const [budget] = (await ownKey(account.key))["budgets"] as { usage: number }[];
    expect(budget?.usage).toBe(usage.total_tokens);
  });
});
