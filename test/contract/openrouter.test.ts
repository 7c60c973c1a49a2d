import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  balanceOf,
  chat,
  embed,
  errorOf,
  eventsOf,
  HELLO,
  openAccount,
  send,
} from "./client.ts";
import type { Account } from "./client.ts";
import { chunksOf } from "./response-schemas.ts";

type Json = { readonly [name: string]: unknown };

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

const SAY = { model: "sandbox/echo", messages: HELLO };

async function dataOf(path: string, key = account.key): Promise<Json> {
  const response = await send(path, { key });
  const body = await response.json<{ data: Json }>();
  expect([path, response.status, body]).toEqual([path, 200, expect.anything()]);
  return body.data;
}

async function costOf(response: Response): Promise<readonly [unknown, unknown]> {
  const { usage } = await response.json<{ usage: Json }>();
  return [usage["cost"], usage["cost_micro"]];
}

describe("the usage object of a response", () => {
  it.each<[string, Json]>([
    ["/v1/chat/completions", SAY],
    ["/v1/completions", { model: "sandbox/echo", prompt: "Hello" }],
    ["/v1/responses", { model: "sandbox/echo", input: "Hello" }],
    ["/v1/messages", { ...SAY, max_tokens: 20 }],
    ["/v1/embeddings", { model: "sandbox/embed", input: "Hello" }],
  ])("reports the cost of %s in dollars and in micro-credits", async (path, body) => {
    const { key } = await openAccount();
    const before = await balanceOf(key);
    const response = await send(path, { key, body: { ...body, usage: { include: true } } });
    expect(response.headers.get("x-dropped")).toBeNull();
    const [cost, micro] = await costOf(response);
    expect(micro).toBe(before - (await balanceOf(key)));
    expect(cost).toBe(Number(micro) / 1_000_000);
    expect(micro).toBeGreaterThan(0);
  });

  it.each([
    ["/v1/chat/completions", SAY],
    ["/v1/completions", { model: "sandbox/echo", prompt: "Hello" }],
  ])("contains the cost in the last chunk of %s with usage.include", async (path, body) => {
    const sent = { ...body, stream: true, usage: { include: true } };
    const events = await eventsOf(await send(path, { key: account.key, body: sent }));
    const last = JSON.parse(events.at(-2) ?? "") as { usage: Json };
    expect(last.usage["cost"]).toBe(Number(last.usage["cost_micro"]) / 1_000_000);
    expect(last.usage["cost"]).toBeGreaterThan(0);
  });

  it("doesn't appear in a stream with usage.include: false", async () => {
    const body = { ...SAY, stream: true, usage: { include: false } };
    const chunks = chunksOf(await eventsOf(await chat(account.key, body)));
    expect(chunks.every(({ usage }) => usage === undefined)).toBe(true);
  });

  it.each([
    [{ include: "yes" }, "usage.include"],
    ["all", "usage"],
  ])("causes a 400 with the param for an invalid usage request %j", async (usage, param) => {
    const response = await chat(account.key, { ...SAY, usage });
    expect((await errorOf(response, 400)).param).toBe(param);
  });
});

describe("GET /v1/key", () => {
  const FIELDS = ["label", "usage", "is_free_tier", "is_provisioning_key", "rate_limit", "limit"];

  it("returns every field that Roo Code requires, also at /v1/auth/key", async () => {
    const data = await dataOf("/v1/key");
    expect(FIELDS.filter((field) => !Object.hasOwn(data, field))).toEqual([]);
    expect(await dataOf("/v1/auth/key")).toEqual(data);
    expect(data["rate_limit"]).toMatchObject({ requests: 1000 });
  });

  it("returns the charges of each period for a key without a budget", async () => {
    const { key } = await openAccount();
    const [cost] = await costOf(await chat(key));
    const [other] = await costOf(await embed(key));
    const usage = (Number(cost) * 1e6 + Number(other) * 1e6) / 1e6;
    expect(await dataOf("/v1/key", key)).toMatchObject({
      limit: null,
      limit_remaining: null,
      limit_reset: null,
      usage,
      usage_daily: usage,
      usage_weekly: usage,
      usage_monthly: usage,
    });
  });

  it("returns a key's budget and the remaining amount", async () => {
    const body = { name: "small", budget_dollars: 2, budget_period: "week" };
    const response = await send("/v1/keys", { key: account.key, body });
    const { key } = await response.json<{ key: string }>();
    const [cost] = await costOf(await chat(key));
    const usage = Number(cost);
    const shown = { limit: 2, limit_remaining: 2 - usage, limit_reset: "weekly", usage };
    expect(await dataOf("/v1/key", key)).toMatchObject({ label: "small", ...shown });
  });

  it("returns budgets in dollars in the format of OpenRouter's Python package", async () => {
    const budgets = [
      { limit_dollars: 1, window: "60m" },
      { limit_requests: 9, window: "day" },
    ];
    const body = { name: "two", budget_dollars: 2, budgets };
    const response = await send("/v1/keys", { key: account.key, body });
    const { key } = await response.json<{ key: string }>();
    const [cost] = await costOf(await chat(key));
    const spend_usd = Number(cost);
    const rolling = { scope: "api_key", limit_usd: 1, spend_usd, reset_interval: "60m" };
    const limit = { scope: "key_limit", limit_usd: 2, remaining_usd: 2 - spend_usd };
    expect(await dataOf("/v1/key", key)).toMatchObject({
      budgets: [{ ...limit, budget_id: null, reset_interval: null, resets_at: null }, rolling],
      effective_budget: rolling,
    });
  });

  it("returns only the session's own budget and charges to a session", async () => {
    await chat(account.key);
    const response = await send("/v1/sessions", {
      key: account.key,
      body: { budget_dollars: 0.5 },
    });
    const { token, id } = await response.json<{ token: string; id: string }>();
    const [cost] = await costOf(await chat(token));
    const data = await dataOf("/v1/key", token);
    expect(data).toMatchObject({ label: id, limit: 0.5, usage: cost, usage_monthly: cost });
  });
});

describe("GET /v1/credits", () => {
  it("returns total credits and total usage, whose difference is the balance", async () => {
    const { key } = await openAccount({ credits: 7_000_000 });
    await chat(key);
    const data = await dataOf("/v1/credits", key);
    const used = 7_000_000 - (await balanceOf(key));
    expect(data).toEqual({ total_credits: 7, total_usage: used / 1_000_000 });
    expect(used).toBeGreaterThan(0);
  });
});

describe("GET /v1/generation", () => {
  it("finds a request by the ID of the response, and returns the cost in dollars", async () => {
    const response = await chat(account.key, { ...SAY, user: "ann" });
    const { id, usage } = await response.json<{ id: string; usage: Json }>();
    expect(await dataOf(`/v1/generation?id=${id}`)).toMatchObject({
      id: response.headers.get("x-request-id"),
      model: "sandbox/echo",
      provider_name: "sandbox",
      total_cost: usage["cost"],
      usage: usage["cost"],
      native_tokens_prompt: usage["prompt_tokens"],
      tokens_completion: usage["completion_tokens"],
      external_user: "ann",
      streamed: false,
      cancelled: false,
      is_byok: false,
      provider_responses: [{ provider_name: "sandbox", status: 200 }],
    });
  });

  it("returns 404 to a member for a request that used another member's key", async () => {
    const { key } = await addMember(account.orgId, "member");
    const id = (await chat(account.key)).headers.get("x-request-id") ?? "";
    const response = await send(`/v1/generation?id=${id}`, { key });
    expect((await errorOf(response, 404)).code).toBe(null);
  });

  it("returns 400 without an ID", async () => {
    const response = await send("/v1/generation", { key: account.key });
    expect((await errorOf(response, 400)).param).toBe("id");
  });
});
