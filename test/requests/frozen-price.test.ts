import { beforeEach, describe, expect, it, vi } from "vitest";
import { sendToWorker, openOrganization } from "../fixtures/worker-app.ts";

const USAGE = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
const PROVIDERS = JSON.stringify([
  { id: "local", base_url: "https://upstream.test/v1", profile: "generic", regions: ["eu"] },
]);
const messages = [{ role: "user", content: "what does it cost?" }];

let logged: string;
beforeEach(() => {
  logged = "";
  vi.spyOn(console, "log").mockImplementation((line) => {
    logged += JSON.stringify(line);
  });
});

/**
 * Returns a deployment that sells `local/a` and `local/b` at this price, with `smart` as alias of
 * one of them.
 */
function deployment(micros: number, smart = "local/a"): Readonly<Record<string, string>> {
  const model = (id: string) => ({
    id,
    kind: "chat",
    context: 8000,
    max_output: 1000,
    price: { input: micros * 1_000_000, output: micros * 1_000_000 },
    routes: [{ provider: "local", upstream_id: id }],
  });
  const MODELS = JSON.stringify([model("local/a"), model("local/b")]);
  return { PROVIDERS, MODELS, ALIASES: JSON.stringify({ smart }) };
}

/** Returns a provider that responds when the test lets it, with any model name. */
function slowUpstream(model = "chat-2031-01-01"): { called: Promise<void>; answer: () => void } {
  const called = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    called.resolve();
    await answered.promise;
    const message = { role: "assistant", content: "little" };
    return Response.json({
      id: "upstream-1",
      object: "chat.completion",
      created: 1,
      model,
      choices: [{ index: 0, message, finish_reason: "stop" }],
      usage: USAGE,
    });
  });
  return { called: called.promise, answer: () => answered.resolve() };
}

const TOKENS = USAGE.total_tokens;

describe("a price that changes during a request", () => {
  it("applies only to later requests, while the running request pays the price at its admission", async () => {
    const { key } = await openOrganization();
    const upstream = slowUpstream();
    const body = { model: "local/a", messages };
    const before = sendToWorker("/v1/chat/completions", { key, body, bindings: deployment(1) });
    await upstream.called;
    const after = sendToWorker("/v1/chat/completions", { key, body, bindings: deployment(9) });
    upstream.answer();
    expect((await before).headers.get("x-cost-micro")).toBe(String(TOKENS));
    expect((await after).headers.get("x-cost-micro")).toBe(String(9 * TOKENS));
    const balance = await sendToWorker("/v1/balance", { key });
    expect(await balance.json()).toMatchObject({ credits_micro: 1_000_000 - 10 * TOKENS });
  });
});

describe("an alias that changes during a request", () => {
  it("refers to one model and price until the request ends", async () => {
    const { key } = await openOrganization();
    const upstream = slowUpstream();
    const body = { model: "smart", messages };
    const before = sendToWorker("/v1/chat/completions", {
      key,
      body,
      bindings: deployment(1, "local/a"),
    });
    await upstream.called;
    const after = sendToWorker("/v1/chat/completions", {
      key,
      body,
      bindings: deployment(9, "local/b"),
    });
    upstream.answer();
    expect(await (await before).json()).toMatchObject({ model: "local/a" });
    expect((await before).headers.get("x-cost-micro")).toBe(String(TOKENS));
    expect(await (await after).json()).toMatchObject({ model: "local/b" });
  });
});

describe("a model name that a provider returns", () => {
  it.each(["chat-2031-01-01", "nobody/knows", "", "gpt-free"])(
    "affects neither the price nor the model in the response: %j",
    async (name) => {
      const { key } = await openOrganization();
      slowUpstream(name).answer();
      const body = { model: "local/a", messages };
      const response = await sendToWorker("/v1/chat/completions", {
        key,
        body,
        bindings: deployment(3),
      });
      expect(response.headers.get("x-cost-micro")).toBe(String(3 * TOKENS));
      expect(await response.json()).toMatchObject({ model: "local/a" });
    },
  );
});

describe("a model without a price", () => {
  it("makes the deployment return 503 misconfigured instead of serving the model for free", async () => {
    const { key } = await openOrganization();
    const upstream = vi.spyOn(globalThis, "fetch");
    const { MODELS = "", ...rest } = deployment(1);
    const [model] = JSON.parse(MODELS) as { price?: unknown }[];
    const bindings = { ...rest, MODELS: JSON.stringify([{ ...model, price: undefined }]) };
    const body = { model: "local/a", messages };
    const response = await sendToWorker("/v1/chat/completions", { key, body, bindings });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "misconfigured" } });
    expect(logged).toContain("MODELS");
    expect(upstream).not.toHaveBeenCalled();
  });
});
