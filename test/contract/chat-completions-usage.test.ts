import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, chat, eventsOf, openAccount } from "./client.ts";
import { mockUpstream, upstreamCompletion, upstreamStream } from "./upstream.ts";
import { chunksOf, completionOf, textOf } from "./response-schemas.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const part = (content: string, usage?: unknown, finish_reason: string | null = null) => ({
  id: "x",
  created: 1,
  choices: [{ index: 0, delta: { content }, finish_reason }],
  ...(usage !== undefined && { usage }),
});

const usageOf = (output: number) => ({
  prompt_tokens: 10,
  completion_tokens: output,
  total_tokens: 10 + output,
});

describe("usage reported by a provider", () => {
  it("causes a charge at the requested model's price, even if the provider returns another model name", async () => {
    const { bindings } = mockUpstream(() => upstreamCompletion());
    const before = await balanceOf(key);
    const response = await chat(key, { model: "mock/chat" }, { bindings });
    expect(response.headers.get("x-cost-micro")).toBe("20");
    expect(response.headers.get("x-route")).toBe("mock:up-chat");
    const answer = await completionOf(response);
    expect(answer.model).toBe("mock/chat");
    expect(answer.created).toBeGreaterThan(1_700_000_000);
    expect(before - (await balanceOf(key))).toBe(20);
  });

  it.each([
    [1, 0, 1],
    [7, 0, 2],
    [1, 1, 1],
    [10, 10, 8],
    [1_000, 0, 150],
  ])(
    "rounds the cost of %i and %i tokens at $0.15 and $0.60 per million up to %i micro-credits",
    async (...cost) => {
      const [prompt_tokens, completion_tokens, micros] = cost;
      const total_tokens = prompt_tokens + completion_tokens;
      const usage = { prompt_tokens, completion_tokens, total_tokens };
      const { bindings } = mockUpstream(() => upstreamCompletion(usage));
      const messages = [{ role: "user", content: "x".repeat(1000) }];
      const response = await chat(key, { model: "mock/blind", messages }, { bindings });
      expect(response.headers.get("x-cost-micro")).toBe(String(micros));
    },
  );

  it.each<[string, unknown]>([
    ["absent", undefined],
    ["null", null],
    ["a string", "12"],
    ["with negative counts", { prompt_tokens: -5, completion_tokens: -1, total_tokens: -6 }],
    ["with string counts", { prompt_tokens: "10", completion_tokens: "5", total_tokens: "15" }],
    ["without completion_tokens", { prompt_tokens: 10 }],
    [
      "with counts beyond safe integers",
      { prompt_tokens: 1e308, completion_tokens: 1e308, total_tokens: 1e308 },
    ],
  ])("never leads to a charge above the hold: %s", async (_, usage) => {
    const { bindings } = mockUpstream(() => upstreamCompletion(usage));
    const before = await balanceOf(key);
    const response = await chat(key, { model: "mock/chat", max_tokens: 10 }, { bindings });
    await completionOf(response);
    const cost = Number(response.headers.get("x-cost-micro"));
    expect(before - (await balanceOf(key))).toBe(cost);
    expect(cost).toBeGreaterThan(0);
    expect(cost).toBeLessThan(100);
  });

  it("never causes a negative charge, even with more cached tokens than prompt tokens", async () => {
    const prompt_tokens_details = { cached_tokens: 1000 };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const { bindings } = mockUpstream(() =>
      upstreamCompletion({ ...usage, prompt_tokens_details }),
    );
    const response = await chat(key, { model: "mock/chat" }, { bindings });
    // 10 cached tokens at half the price, 5 output tokens at 2
    expect(response.headers.get("x-cost-micro")).toBe("15");
  });

  it.each<[string, readonly unknown[]]>([
    ["on a chunk that also has choices", [part("a"), part("b", usageOf(5), "stop")]],
    [
      "in two chunks, of which only the last counts",
      [part("a", usageOf(1)), part("b", usageOf(5), "stop"), { choices: [], usage: usageOf(5) }],
    ],
  ])("leads to only one charge per stream: %s", async (_, events) => {
    const { bindings } = mockUpstream(() => upstreamStream(events));
    const fields = { model: "mock/chat", stream: true, stream_options: { include_usage: true } };
    const before = await balanceOf(key);
    const chunks = chunksOf(await eventsOf(await chat(key, fields, { bindings })));
    expect(textOf(chunks)).toBe("ab");
    expect(chunks.filter((one) => one.usage)).toHaveLength(1);
    expect(chunks.at(-1)?.usage).toMatchObject({ completion_tokens: 5, cost_micro: 20 });
    expect(chunks.at(-2)?.choices[0]).toMatchObject({ delta: {}, finish_reason: "stop" });
    expect(before - (await balanceOf(key))).toBe(20);
  });
});
