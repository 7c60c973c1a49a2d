import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { balanceOf, chat, errorOf, openAccount } from "./client.ts";
import { upstreamBindings } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };

describe("POST /v1/chat/completions with an invalid body", () => {
  it("returns 400 for an image to a model that does not accept images", async () => {
    const bindings = upstreamBindings();
    const fields = { ...user([{ type: "text", text: "look" }, image]), model: "mock/blind" };
    const error = await errorOf(await chat(key, fields, { bindings }), 400);
    expect(error).toMatchObject({ param: "messages" });
    expect(error.message).toContain("does not accept images");
  });
});

describe("a low balance at POST /v1/chat/completions", () => {
  it("covers two concurrent requests without output caps, because the first request holds only half of the balance", async () => {
    const { key: busy, orgId } = await openAccount({ credits: 1000 });
    const open = await chat(busy, { model: "sandbox/stall", stream: true });
    expect(open.status).toBe(200);
    const balance = await env.WALLET.getByName(orgId).balance();
    expect(balance).toMatchObject({ value: { heldMicro: 500 } });
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

  it("returns 402 with a short retry-after if credits are insufficient only because of open holds", async () => {
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
  it.each(["no/such", "__proto__", "sandbox/embed", "embeddings/cheapest", "SMART"])(
    "returns 404 for the model %s",
    async (model) => {
      const error = await errorOf(await chat(key, { model }), 404);
      expect(error).toMatchObject({
        type: "invalid_request_error",
        code: "model_not_found",
        param: "model",
      });
    },
  );
});

describe("a limit at POST /v1/chat/completions", () => {
  it("returns 429 above the key's requests per minute, with the same retry time in header and body", async () => {
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
    "returns 429 above an end user's %s quota, with the quota's error code and x-should-retry: false",
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
