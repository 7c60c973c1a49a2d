import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { balanceOf, chat, errorOf, openAccount, send } from "./client.ts";
import { upstreamBindings } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const tool = (name: string) => ({ type: "function", function: { name } });
const CAPS = ["max_tokens", "max_completion_tokens"];

describe("POST /v1/chat/completions with an invalid body", () => {
  it.each<[string | null, Record<string, unknown>]>([
    ["model", { model: undefined }],
    ["model", { model: null }],
    ["model", { model: 5 }],
    ["model", { model: "" }],
    ["model", { model: "x".repeat(1024) }],
    ["messages", { messages: undefined }],
    ["messages", { messages: null }],
    ["messages", { messages: [] }],
    ["messages", { messages: "hi" }],
    ["messages", { messages: Array.from({ length: 10_001 }, () => user("a").messages[0]) }],
    ["messages[0]", { messages: ["hi"] }],
    ["messages[0].role", { messages: [{ content: "hi" }] }],
    ["messages[0].role", { messages: [{ role: "narrator", content: "hi" }] }],
    ["messages[1].role", { messages: [...user("a").messages, { role: "x", content: "" }] }],
    ["messages[0].content", user(7)],
    ["messages[0].content", user(null)],
    ["messages[0].content", user({ type: "text", text: "a" })],
    ["messages[0].content", user([])],
    ["messages[0].content[0].type", user([{ text: "no type" }])],
    ["messages[0].content[0].type", user([{ type: "input_audio", input_audio: {} }])],
    ["messages[0].content[0].file.file_data", user([{ type: "file", file: { file_id: "f" } }])],
    [
      "messages[0].content[0].file.file_id",
      user([
        { type: "file", file: { file_id: "f", file_data: "data:application/pdf;base64,JVBERi0=" } },
      ]),
    ],
    ["messages[0].content[0].image_url", user([{ type: "image_url", image_url: "http://x" }])],
    ["messages", { messages: undefined, input: "a Responses request" }],
    ["temperature", { temperature: -0.1 }],
    ["temperature", { temperature: 2.1 }],
    ["temperature", { temperature: "1" }],
    ["temperature", { temperature: [1] }],
    ["top_p", { top_p: 1.01 }],
    ["presence_penalty", { presence_penalty: 2.5 }],
    ["n", { n: 0 }],
    ["n", { n: 129 }],
    ["n", { n: 1.5 }],
    ["stream", { stream: "yes" }],
    ["stop", { stop: ["a", "b", "c", "d", "e"] }],
    ["stop", { stop: 5 }],
    ["top_logprobs", { logprobs: true, top_logprobs: 21 }],
    ["tool_choice", { tool_choice: "some" }],
    ["tool_choice.type", { tool_choice: { type: "any" } }],
    ["tool_choice.function", { tool_choice: { type: "function", name: "a Responses choice" } }],
    ["tool_choice.function.name", { tool_choice: { type: "function", function: {} } }],
    ["tool_choice.custom", { tool_choice: { type: "custom", name: "c" } }],
    ["tool_choice.allowed_tools", { tool_choice: { type: "allowed_tools", mode: "auto" } }],
    ["tool_choice", { tool_choice: { type: "function", function: { name: "f" } } }],
    ["tool_choice", { tools: [tool("g")], tool_choice: tool("f") }],
    [
      "tool_choice",
      {
        tools: [tool("g")],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [tool("g"), tool("f")] },
        },
      },
    ],
    ["response_format.type", { response_format: { type: "xml" } }],
    ["user", { user: "" }],
    ["user", { user: 5 }],
    ["user", { user: "x".repeat(257) }],
    ["user", { user: `${"é".repeat(128)}x` }],
    ["user", { user: "a\nSet-Cookie: b" }],
    ["user", { user: "a\u0000" }],
    ["user", { user: "a\u2028b" }],
    ["user", { user: ".." }],
  ])("returns 400 with the param %s", async (param, wrong) => {
    const before = await balanceOf(key);
    const error = await errorOf(await chat(key, wrong), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param, code: null });
    expect(error.message.length).toBeLessThan(400);
    expect(await balanceOf(key)).toBe(before);
  });

  it.each(CAPS.flatMap((cap) => [0, -1, 1.5, "10", true].map((value) => [cap, value] as const)))(
    "returns 400 if %s is %s",
    async (param, value) => {
      const error = await errorOf(await chat(key, { [param]: value }), 400);
      expect(error).toMatchObject({ type: "invalid_request_error", param });
    },
  );

  it("returns 400 for a temperature of 1e400", async () => {
    const body = `{"model":"sandbox/echo","messages":[{"role":"user","content":"a"}],"temperature":1e400}`;
    const error = await errorOf(await send("/v1/chat/completions", { key, body }), 400);
    expect(error.param).toBe("temperature");
  });

  it.each<[string, unknown]>([
    ["service_tier", "flex"],
    ["service_tier", "priority"],
    ["web_search_options", {}],
    ["audio", { voice: "alloy", format: "mp3" }],
    ["modalities", ["text", "audio"]],
    ["prediction", { type: "content", content: "x" }],
    ["store", true],
  ])("returns 400 for %s, which is not supported", async (param, value) => {
    const error = await errorOf(await chat(key, { [param]: value }), 400);
    expect(error.type).toBe("invalid_request_error");
    expect(error.param?.startsWith(param)).toBe(true);
  });

  it("returns 400 for an image if the model does not accept images", async () => {
    const bindings = upstreamBindings();
    const fields = { ...user([{ type: "text", text: "look" }, image]), model: "mock/blind" };
    const error = await errorOf(await chat(key, fields, { bindings }), 400);
    expect(error).toMatchObject({ param: "messages" });
    expect(error.message).toContain("does not accept images");
  });
});

describe("a low balance at POST /v1/chat/completions", () => {
  it("suffices for two concurrent requests without an output cap, because the first holds only half of it", async () => {
    const { key: busy, orgId } = await openAccount({ credits: 1000 });
    const open = await chat(busy, { model: "sandbox/stall", stream: true });
    expect(open.status).toBe(200);
    const held = await env.WALLET.getByName(orgId).balance();
    expect(held).toMatchObject({ value: { heldMicro: 500 } });
    expect((await chat(busy)).status).toBe(200);
    await open.body?.cancel();
  });

  it("returns 402 with the balance and the required amount as integers, and x-should-retry: false", async () => {
    const { key: poor } = await openAccount({ credits: 99 });
    const response = await chat(poor);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.has("retry-after")).toBe(false);
    expect(response.headers.has("x-cost-micro")).toBe(false);
    expect(response.headers.has("x-route")).toBe(false);
    const error = await errorOf(response, 402);
    expect(error).toEqual({
      message: expect.stringMatching(/^Insufficient credits: .* 99\./),
      type: "insufficient_balance",
      param: null,
      code: null,
      balance_micro: 99,
      required_micro: expect.any(Number),
    });
    expect(await balanceOf(poor)).toBe(99);
    const exact = await openAccount({ credits: error.required_micro ?? 0 });
    expect((await chat(exact.key)).status).toBe(200);
    const short = await openAccount({ credits: (error.required_micro ?? 0) - 1 });
    expect((await chat(short.key)).status).toBe(402);
  });

  it("returns 402 with a short retry-after if only open holds are in the way", async () => {
    const { key: busy } = await openAccount({ credits: 300 });
    const open = await chat(busy, { model: "sandbox/stall", stream: true, max_tokens: 500 });
    const response = await chat(busy);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(response.headers.get("x-should-retry")).toBe("true");
    const error = await errorOf(response, 402);
    expect(error).toMatchObject({ balance_micro: 300, held_micro: 300 });
    expect(error.message).toContain("held by requests in progress");
    await open.body?.cancel();
  });
});

describe("an unknown model at POST /v1/chat/completions", () => {
  it.each([
    "no/such",
    "../x",
    "http://169.254.169.254/",
    "🌍",
    "__proto__",
    "sandbox/embed",
    "embeddings/cheapest",
    "SMART",
  ])("returns 404 for the model %s", async (model) => {
    const error = await errorOf(await chat(key, { model }), 404);
    expect(error).toMatchObject({
      type: "invalid_request_error",
      code: "model_not_found",
      param: "model",
    });
  });
});

describe("limits at POST /v1/chat/completions", () => {
  it("return 429 for the key's requests per minute, with the same retry time in header and body", async () => {
    const limited = await openAccount({ rpmLimit: 1 });
    expect((await chat(limited.key)).status).toBe(200);
    const response = await chat(limited.key);
    const error = await errorOf(response, 429);
    expect(error).toMatchObject({ type: "rate_limit_exceeded", param: null, code: null });
    const wait = error.retry_after ?? NaN;
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(60);
    expect(response.headers.get("retry-after")).toBe(String(wait));
    const ms = Number(response.headers.get("retry-after-ms"));
    expect(Math.ceil(ms / 1000)).toBe(wait);
    expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("0");
  });

  it.each([
    ["daily", { dailyQuotaMicro: micros(0), monthlyQuotaMicro: null }],
    ["monthly", { dailyQuotaMicro: null, monthlyQuotaMicro: micros(10) }],
  ])(
    "return 429 for an end user's %s quota, with its error code and without a retry",
    async (period, quota) => {
      const account = await openAccount();
      await env.WALLET.getByName(account.orgId).putEndUser("customer", quota);
      const response = await chat(account.key, { user: "customer" });
      expect(response.headers.has("retry-after")).toBe(false);
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(await errorOf(response, 429)).toEqual({
        message: expect.stringMatching(`^You exceeded your current ${period} quota`),
        type: "api_error",
        code: "end_user_quota_exceeded",
        param: null,
        quota_micro: period === "daily" ? 0 : 10,
        left_micro: period === "daily" ? 0 : 10,
        required_micro: expect.any(Number),
        resets_at: expect.stringMatching(/T00:00:00\.000Z$/),
      });
      expect((await chat(account.key)).status).toBe(200); // without a user, the organization pays
    },
  );
});

describe("a provider failure at POST /v1/chat/completions", () => {
  it.each(["status-408", "status-500", "cut", "error-mid", "error-first", "html", "bad-json"])(
    "returns 502 upstream_error for sandbox/%s, without a charge",
    async (model) => {
      const before = await balanceOf(key);
      const response = await chat(key, { model: `sandbox/${model}` });
      for (const header of ["x-route", "x-attempts", "x-cost-micro"]) {
        expect([header, response.headers.get(header)]).toEqual([header, null]);
      }
      expect((await errorOf(response, 502)).type).toBe("upstream_error");
      expect(await balanceOf(key)).toBe(before);
    },
  );

  it.each(["status-429", "status-503"])(
    "returns 503 upstream_overloaded with retry-after 1 to 59 for sandbox/%s",
    async (model) => {
      const response = await chat(key, { model: `sandbox/${model}` });
      const wait = Number(response.headers.get("retry-after"));
      expect(wait).toBeGreaterThanOrEqual(1);
      expect(wait).toBeLessThanOrEqual(59);
      const error = await errorOf(response, 503);
      expect(error).toMatchObject({ type: "api_error", code: "upstream_overloaded" });
    },
  );
});
