import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, chat, openAccount } from "./client.ts";
import { completionOf } from "./response-schemas.ts";
import type { Completion } from "./response-schemas.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const complete = async (fields: Record<string, unknown> = {}): Promise<Completion> =>
  completionOf(await chat(key, fields));
const withPrompt = (content: unknown) => ({ messages: [{ role: "user", content }] });
const text = (value: string) => [{ type: "text", text: value }];
const LONG = Array.from({ length: 200 }, (_, i) => `word${i}`).join(" ");

describe("POST /v1/chat/completions", () => {
  it("returns OpenAI's completion format for a minimal body, with null only in refusal and logprobs", async () => {
    const before = Math.floor(Date.now() / 1000);
    const response = await chat(key);
    const raw = await response.clone().text();
    const answer = await completionOf(response);
    expect(answer.choices).toEqual([
      {
        index: 0,
        finish_reason: "stop",
        logprobs: null,
        message: { role: "assistant", content: "Hello there", refusal: null },
      },
    ]);
    expect(answer.model).toBe("sandbox/echo");
    expect(answer.created).toBeGreaterThanOrEqual(before);
    expect(answer.created).toBeLessThanOrEqual(Math.floor(Date.now() / 1000));
    expect(raw.match(/"\w+":null/g)?.toSorted()).toEqual(['"logprobs":null', '"refusal":null']);
    const id = response.headers.get("x-request-id") ?? "";
    expect(answer.id).toBe(`chatcmpl-${id.slice("req_".length)}`);
  });

  it.each(["smart", "fast", "cheap"])(
    "returns the actual model name for the alias %s",
    async (alias) => {
      expect((await complete({ model: alias })).model).toBe("sandbox/echo");
    },
  );

  it("returns the cost in x-cost-micro, which equals the change in balance", async () => {
    const before = await balanceOf(key);
    const response = await chat(key, withPrompt(LONG));
    const cost = Number(response.headers.get("x-cost-micro"));
    const { usage } = await completionOf(response);
    expect(cost).toBe(usage.prompt_tokens + 2 * usage.completion_tokens);
    expect(before - (await balanceOf(key))).toBe(cost);
    expect(response.headers.get("x-route")).toBe("sandbox:echo");
    expect(response.headers.get("x-attempts")).toBe("1");
    expect(response.headers.has("x-granted-max-tokens")).toBe(false);
  });

  it.each([
    ["max_tokens", { max_tokens: 16 }],
    ["max_completion_tokens", { max_completion_tokens: 16 }],
    ["both fields, the lower one first", { max_tokens: 16, max_completion_tokens: 64 }],
    ["both fields, the lower one second", { max_tokens: 64, max_completion_tokens: 16 }],
  ])(
    "limits the output to 16 tokens with finish_reason length if the limit is in %s",
    async (_, cap) => {
      const answer = await complete({ ...withPrompt(LONG), ...cap });
      expect(answer.choices[0]?.finish_reason).toBe("length");
      expect(answer.usage.completion_tokens).toBe(16);
      expect(LONG.startsWith(answer.choices[0]?.message.content ?? "-")).toBe(true);
    },
  );

  it("lowers max_tokens to the model's maximum", async () => {
    const { key: poor } = await openAccount({ credits: 40_000 });
    const response = await chat(poor, { max_tokens: 1e15 });
    // The balance covers 2 x 16,384 micro-credits.
    expect(response.headers.has("x-granted-max-tokens")).toBe(false);
    await completionOf(response);
  });

  it("allows 4096 output tokens if no cap is set, or fewer if the balance doesn't cover 4096", async () => {
    const { key: poor } = await openAccount({ credits: 1000 });
    const response = await chat(poor, withPrompt(LONG));
    const granted = Number(response.headers.get("x-granted-max-tokens"));
    expect(granted).toBeGreaterThanOrEqual(64);
    expect(2 * granted).toBeLessThanOrEqual(1000);
    await completionOf(response);
  });

  it("returns n numbered choices, and charges each choice", async () => {
    const one = await complete(withPrompt("count me"));
    const before = await balanceOf(key);
    const response = await chat(key, { ...withPrompt("count me"), n: 3 });
    const three = await completionOf(response);
    expect(three.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
    expect(three.usage.completion_tokens).toBe(3 * one.usage.completion_tokens);
    const cost = three.usage.prompt_tokens + 2 * three.usage.completion_tokens;
    expect(before - (await balanceOf(key))).toBe(cost);
  });

  it.each([
    ["a string", " three"],
    ["an array of 4", ["x", " three", "y", "z"]],
  ])("ends the output before a stop sequence, given as %s", async (_, stop) => {
    const answer = await complete({ ...withPrompt("one two three four"), stop });
    expect(answer.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: "one two" },
    });
  });

  it("returns logprobs and top_logprobs for each token", async () => {
    const answer = await complete({ ...withPrompt("one two"), logprobs: true, top_logprobs: 2 });
    const content = answer.choices[0]?.logprobs?.content ?? [];
    expect(content.map((one) => one.token).join("")).toBe("one two");
    for (const one of content) expect(one.top_logprobs).toHaveLength(2);
  });

  it("returns valid JSON for json_object, and JSON that matches the schema for json_schema", async () => {
    const object = await complete({ response_format: { type: "json_object" } });
    expect(JSON.parse(object.choices[0]?.message.content ?? "")).toBeTypeOf("object");
    const schema = {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 3 } },
      required: ["city", "days"],
      additionalProperties: false,
    };
    const json_schema = { name: "trip", strict: true, schema };
    const fitted = await complete({ response_format: { type: "json_schema", json_schema } });
    const trip = JSON.parse(fitted.choices[0]?.message.content ?? "") as Record<string, unknown>;
    expect(Object.keys(trip).toSorted()).toEqual(["city", "days"]);
    expect(trip).toEqual({ city: expect.any(String), days: expect.any(Number) });
    expect(trip["days"]).toBeGreaterThanOrEqual(3);
  });

  it("accepts every message role and every valid form of content", async () => {
    const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
    const messages = [
      { role: "developer", content: "d" },
      { role: "system", content: text("s"), name: "rules" },
      { role: "user", content: text("first") },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: text("result") },
      { role: "assistant", content: "", refusal: null },
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }], refusal: "no" },
      { role: "assistant", content: "a", function_call: null, audio: null },
      { role: "user", content: "last" },
    ];
    const answer = await complete({ messages });
    expect(answer.choices[0]?.message.content).toBe("last");
  });

  it("treats null as a missing value in the body and in messages", async () => {
    const nullable =
      "temperature top_p n max_tokens max_completion_tokens stop seed frequency_penalty presence_penalty " +
      "logit_bias logprobs top_logprobs stream stream_options reasoning_effort verbosity modalities audio " +
      "prediction service_tier store metadata safety_identifier prompt_cache_key prompt_cache_retention " +
      "web_search_options user tools tool_choice response_format parallel_tool_calls functions function_call";
    const nulls = Object.fromEntries(nullable.split(" ").map((field) => [field, null]));
    const messages = [
      { role: "user", content: "hi", name: null },
      { role: "assistant", content: "yes", name: null, tool_calls: null, function_call: null },
      { role: "user", content: [{ type: "text", text: "again", cache_control: null }] },
    ];
    const answer = await complete({ ...nulls, messages });
    expect(answer.choices[0]?.message.content).toBe("again");
  });

  it("accepts newer fields, unknown fields and vendor extensions", async () => {
    const fields = {
      ...withPrompt([{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }]),
      reasoning_effort: "low",
      verbosity: "low",
      prompt_cache_key: "k",
      safety_identifier: "s",
      metadata: { a: "b" },
      store: false,
      service_tier: "auto",
      seed: 7,
      top_k: 40,
      min_p: 0.1,
      provider: { order: ["sandbox"] },
      plugins: [],
      chat_template_kwargs: {},
      stream_options: { include_usage: true },
    };
    expect((await complete(fields)).choices[0]?.message.content).toBe("hi");
  });

  it("accepts an image for a model with image input", async () => {
    const url = "data:image/png;base64,iVBORw0KGgo=";
    for (const detail of [undefined, "low", null]) {
      const image = { type: "image_url", image_url: { url, detail } };
      const answer = await complete(withPrompt([{ type: "text", text: "look" }, image]));
      expect(answer.choices[0]?.message.content).toBe("look\n[image]");
    }
  });

  it("serves a 1 MB body with 64 tools", async () => {
    const tools = Array.from({ length: 64 }, (_, i) => ({
      type: "function",
      function: { name: `tool_${i}`, parameters: { type: "object", properties: {} } },
    }));
    const { choices } = await complete({
      ...withPrompt("lorem ipsum ".repeat(90_000)),
      tools,
      tool_choice: "none",
      max_tokens: 5,
    });
    expect(choices[0]?.finish_reason).toBe("length");
  });

  it("accepts a new end user", async () => {
    for (const user of ["é".repeat(128), "a/b c?d", crypto.randomUUID()]) {
      expect((await complete({ user })).model).toBe("sandbox/echo");
    }
  });

  it("returns multi-byte characters intact", async () => {
    const sent = "Grüße 世界 🌍 e\u0301 \u0000\u0007 \u2028 done";
    expect((await complete(withPrompt(sent))).choices[0]?.message.content).toBe(sent);
  });

  it("returns the right output and a unique ID to each of 50 concurrent requests", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => complete(withPrompt(`number ${i}`))),
    );
    expect(new Set(answers.map((answer) => answer.id)).size).toBe(50);
    for (const [i, answer] of answers.entries()) {
      expect(answer.choices[0]?.message.content).toBe(`number ${i}`);
    }
  });
});
