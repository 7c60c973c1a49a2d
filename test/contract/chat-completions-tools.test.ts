import { beforeAll, describe, expect, it } from "vitest";
import { chat, errorOf, eventsOf, openAccount } from "./client.ts";
import { chunksOf, completionOf } from "./response-schemas.ts";
import type { Chunk, Completion } from "./response-schemas.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city", "days"],
    },
  },
};
const CLOCK = { type: "function", function: { name: "read_clock" } };
const named = { type: "function", function: { name: "get_weather" } };
const prompt = [{ role: "user", content: "get_weather in Oslo, please" }];

const complete = async (fields: Record<string, unknown>): Promise<Completion> =>
  completionOf(await chat(key, { messages: prompt, tools: [WEATHER, CLOCK], ...fields }));
const stream = async (fields: Record<string, unknown>): Promise<Chunk[]> => {
  const body = { messages: prompt, tools: [WEATHER, CLOCK], stream: true, ...fields };
  return chunksOf(await eventsOf(await chat(key, body)));
};
const deltasOf = (chunks: readonly Chunk[]) =>
  chunks.flatMap((one) => one.choices[0]?.delta.tool_calls ?? []);

describe("POST /v1/chat/completions with tools", () => {
  it("calls a forced tool with JSON arguments that match the tool's schema", async () => {
    const [choice] = (await complete({ tool_choice: named })).choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(choice?.message.content).toBeNull();
    expect(choice?.message.tool_calls).toHaveLength(1);
    const [call] = choice?.message.tool_calls ?? [];
    expect(call?.function.name).toBe("get_weather");
    const args = JSON.parse(call?.function.arguments ?? "") as unknown;
    expect(args).toEqual({ city: expect.any(String), days: expect.any(Number) });
  });

  it("calls no tool for tool_choice none, but calls a tool for auto and required", async () => {
    const [none] = (await complete({ tool_choice: "none" })).choices;
    expect(none).toMatchObject({ finish_reason: "stop", message: { content: prompt[0]?.content } });
    expect(none?.message).not.toHaveProperty("tool_calls");
    const [auto] = (await complete({ tool_choice: "auto" })).choices;
    expect(auto?.message.tool_calls?.[0]?.function.name).toBe("get_weather");
    const [required] = (await complete({ tool_choice: "required", tools: [CLOCK] })).choices;
    expect(required).toMatchObject({ finish_reason: "tool_calls" });
  });

  it("returns the arguments {} for a call of a tool without parameters", async () => {
    const [choice] = (await complete({ tools: [CLOCK], tool_choice: "required" })).choices;
    expect(choice?.message.tool_calls?.[0]?.function.arguments).toBe("{}");
    const args = deltasOf(await stream({ tools: [CLOCK], tool_choice: "required" }))
      .map((delta) => delta.function?.arguments ?? "")
      .join("");
    expect(args).toBe("{}");
  });

  it("makes two parallel tool calls, or only one call if parallel_tool_calls is false", async () => {
    const twice = { messages: [{ role: "user", content: "get_weather, get_weather" }] };
    const calls = async (parallel_tool_calls: boolean) => {
      const [choice] = (await complete({ ...twice, parallel_tool_calls })).choices;
      return choice?.message.tool_calls ?? [];
    };
    const both = await calls(true);
    expect(both).toHaveLength(2);
    expect(new Set(both.map((call) => call.id)).size).toBe(2);
    expect(await calls(false)).toHaveLength(1);
  });

  it("returns text after a tool result", async () => {
    const first = await complete({ tool_choice: "auto" });
    const message = first.choices[0]?.message;
    const tool_call_id = message?.tool_calls?.[0]?.id;
    const result = { role: "tool", tool_call_id, content: "sunny, 21 degrees" };
    const messages = [...prompt, message, result];
    const answer = await complete({ messages });
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.choices[0]?.message.content).toContain("sunny, 21 degrees");
    const streamed = await stream({ messages });
    const text = streamed.map((one) => one.choices[0]?.delta.content ?? "").join("");
    expect(text).toBe(answer.choices[0]?.message.content);
  });

  it("streams each tool call's ID, type and name once, and the arguments in pieces that form valid JSON", async () => {
    const chunks = await stream({ tool_choice: named });
    const [first, ...rest] = deltasOf(chunks);
    expect(first).toEqual({
      index: 0,
      id: expect.any(String),
      type: "function",
      function: { name: "get_weather", arguments: "" },
    });
    for (const delta of rest) {
      expect(delta).toEqual({ index: 0, function: { arguments: expect.any(String) } });
    }
    const args = rest.map((delta) => delta.function?.arguments ?? "").join("");
    expect(JSON.parse(args)).toEqual({ city: expect.any(String), days: expect.any(Number) });
    expect(chunks.at(-1)?.choices[0]).toMatchObject({ delta: {}, finish_reason: "tool_calls" });
    expect(chunks[0]?.choices[0]?.delta).toMatchObject({ role: "assistant", content: null });
  });

  it("streams parallel tool calls one after the other", async () => {
    const messages = [{ role: "user", content: "get_weather, get_weather" }];
    const deltas = deltasOf(await stream({ messages }));
    const indexes = deltas.map((delta) => delta.index);
    expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
    expect(new Set(indexes)).toEqual(new Set([0, 1]));
    expect(deltas.filter((delta) => delta.id !== undefined)).toHaveLength(2);
  });

  it("truncates a tool call's arguments at the output cap with finish_reason length", async () => {
    const [choice] = (await complete({ tool_choice: named, max_tokens: 1 })).choices;
    expect(choice?.finish_reason).toBe("length");
  });

  it("holds credits for the full size of a 1 MB tool schema that contains a circular $ref", async () => {
    const filler = Object.fromEntries(
      Array.from({ length: 9_999 }, (_, i) => [`field_${i}`, { $ref: "#/$defs/node" }]),
    );
    const parameters = {
      type: "object",
      properties: { next: { $ref: "#/$defs/node" }, note: { const: "x".repeat(600_000) } },
      required: ["next"],
      $defs: {
        node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } },
        ...filler,
      },
    };
    const tools = [{ type: "function", function: { name: "walk", parameters } }];
    const { key: poor } = await openAccount({ credits: 20_000 });
    const refused = await errorOf(await chat(poor, { tools, tool_choice: "required" }), 402);
    expect(refused.required_micro).toBeGreaterThan(20_000);
    const [choice] = (await complete({ tools, tool_choice: "required" })).choices;
    expect(choice?.message.tool_calls?.[0]?.function.name).toBe("walk");
  });
});
