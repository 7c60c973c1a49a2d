import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/models/core/provider.ts";
import { callSandbox, chunkChoices, complete, contentOf, streamed, user } from "./sandbox-call.ts";
import type { Completion } from "./sandbox-call.ts";
import { countTokens } from "../../../src/models/providers/sandbox/tokens.ts";

function tool(name: string, description: string, parameters?: JsonObject) {
  return { type: "function", function: { name, description, ...(parameters && { parameters }) } };
}

const place = {
  type: "object",
  properties: { city: { type: "string" }, unit: { type: "string", enum: ["C", "F"] } },
  required: ["city"],
};
const weather = tool("get_weather", "Get the forecast for a city", place);
const time = tool("get_time", "Current hour somewhere", { type: "object", properties: {} });
const search = tool("searchFiles", "Find documents by keyword");
const tools = [weather, time, search];

function names(completion: Completion): string[] {
  const calls = completion.choices[0].message.tool_calls ?? [];
  return calls.map((call) => call.function.name);
}

async function chosen(text: string, body: JsonObject = {}): Promise<string[]> {
  return names(await complete({ messages: [user(text)], tools, ...body }));
}

const allow = (mode: string): JsonObject => ({
  type: "allowed_tools",
  allowed_tools: { mode, tools: [{ type: "function", function: { name: "get_time" } }] },
});

describe("the sandbox's choice of tools", () => {
  it("calls the tools named in the text for tool_choice auto", async () => {
    expect(await chosen("Please use get_time")).toEqual(["get_time"]);
    expect(await chosen("GET_WEATHER and get_time, please")).toEqual(["get_weather", "get_time"]);
    expect(await chosen("What's the weather in Paris?")).toEqual([]);
  });

  it("makes the tool calls that the user's text lists, one per response, and then returns text", async () => {
    const orders = 'call get_time {} then\ncall searchFiles {"q":"a } b","n":{"x":1}}';
    const messages: JsonObject[] = [user(orders)];
    const called = [];
    for (let round = 0; round < 3; round++) {
      const { message, finish_reason } = (await complete({ messages, tools })).choices[0];
      const [call] = message.tool_calls ?? [];
      called.push(
        call === undefined ? finish_reason : [call.function.name, call.function.arguments],
      );
      messages.push(message);
      messages.push({ role: "tool", tool_call_id: call?.id, content: `result ${round}` });
    }
    expect(called).toEqual([
      ["get_time", "{}"],
      ["searchFiles", '{"q":"a } b","n":{"x":1}}'],
      "stop",
    ]);
  });

  it("ignores a listed call that names an unknown tool or lacks a JSON object, in limited time", async () => {
    expect(await chosen('call nothing {"a":1}')).toEqual([]);
    expect(await chosen("call get_timer {")).toEqual([]);
    expect(await chosen(`call get_tim {${"}".repeat(100_000)}`)).toEqual([]);
  });

  it("calls the first tool with a short text for the model sandbox/agent, and then returns the result", async () => {
    const agent = { upstreamId: "agent" };
    const first = await complete({ messages: [user("hello")], tools }, agent);
    expect(names(first)).toEqual(["get_weather"]);
    expect(first.choices[0].message.content).toBe("I call get_weather.");
    expect(contentOf(await streamed({ messages: [user("hello")], tools }, agent))).toBe(
      "I call get_weather.",
    );
    const [call] = first.choices[0].message.tool_calls ?? [];
    const messages = [
      user("hello"),
      first.choices[0].message as JsonObject,
      { role: "tool", tool_call_id: call?.id, content: "sunny" },
    ];
    const then = await complete({ messages, tools }, agent);
    expect(then.choices[0].message.content).toBe("get_weather returned: sunny");
    expect(names(await complete({ messages: [user("hello")] }, agent))).toEqual([]);
  });

  it("calls the matching tool for tool_choice required, or the first tool if none matches", async () => {
    expect(await chosen("hello", { tool_choice: "required" })).toEqual(["get_weather"]);
    expect(await chosen("get_time", { tool_choice: "required" })).toEqual(["get_time"]);
  });

  it("calls the function that tool_choice names, whatever the text", async () => {
    const choice = { type: "function", function: { name: "searchFiles" } };
    expect(await chosen("weather", { tool_choice: choice })).toEqual(["searchFiles"]);
  });

  it("calls only the tools in allowed_tools, whether a call is forced or not", async () => {
    expect(await chosen("weather", { tool_choice: allow("required") })).toEqual(["get_time"]);
    expect(await chosen("weather", { tool_choice: allow("auto") })).toEqual([]);
  });

  it("calls no tool for tool_choice none", async () => {
    expect(await chosen("weather", { tool_choice: "none" })).toEqual([]);
  });

  it("calls a tool twice with different arguments if the text names it twice, unless parallel calls are disabled", async () => {
    const twice = { messages: [user("get_weather here, get_weather there")], tools };
    const completion = await complete(twice);
    expect(names(completion)).toEqual(["get_weather", "get_weather"]);
    const args = completion.choices[0].message.tool_calls?.map((call) => call.function.arguments);
    expect(args).toEqual(['{"city":"city"}', '{"city":"city 2"}']);
    const single = { parallel_tool_calls: false };
    expect(await chosen("get_weather, get_weather", single)).toEqual(["get_weather"]);
    expect(await chosen("get_weather and get_time", single)).toEqual(["get_weather"]);
  });

  it("rejects an impossible choice with 400 and the field as param", async () => {
    const unknown = { type: "function", function: { name: "nope" } };
    const custom = { type: "custom", custom: { name: "x" } };
    const messages = [user("x")];
    const bodies = [
      { messages, tools, tool_choice: unknown },
      { messages, tools, tool_choice: custom },
    ];
    for (const body of bodies) {
      expect(await callSandbox(body)).toMatchObject({
        kind: "failure",
        failure: { kind: "refused", param: "tool_choice", message: expect.any(String) as string },
      });
    }
  });
});

describe("a tool call of the sandbox", () => {
  it("contains null as content, finish_reason tool_calls, a stable ID and valid arguments", async () => {
    const body = { messages: [user("get_weather")], tools };
    const completion = await complete(body);
    expect(completion.choices[0]).toMatchObject({
      message: {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: [
          {
            id: expect.stringMatching(/^call_[0-9A-Za-z]{24}$/) as string,
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"city"}' },
          },
        ],
      },
      finish_reason: "tool_calls",
    });
    expect(await complete(body)).toEqual(completion);
    expect(completion.usage?.output).toBeGreaterThan(0);
  });

  it("gets a different ID in each request, choice and response", async () => {
    const first = await complete({ messages: [user("get_weather, get_weather")], tools, n: 2 });
    const later = await complete({
      messages: [user("a"), user("get_weather, get_weather")],
      tools,
    });
    const calls = [...first.choices, ...later.choices].flatMap(
      (choice) => choice.message.tool_calls,
    );
    expect(new Set(calls.map((call) => call?.id)).size).toBe(6);
  });

  it("counts toward the output cap together with the text", async () => {
    for (let cap = 1; cap < 12; cap++) {
      const { choices, usage } = await complete(
        { messages: [user("hello")], tools },
        { upstreamId: "agent", cap },
      );
      const { content, tool_calls: calls = [] } = choices[0].message;
      const callTexts = calls.flatMap((call) => [call.function.name, call.function.arguments]);
      const tokens = [content ?? "", ...callTexts].reduce(
        (sum, text) => sum + countTokens(text),
        0,
      );
      expect(usage?.output).toBe(tokens);
      expect(choices[0].finish_reason).toBe(
        callTexts[1] === '{"city":"city"}' ? "tool_calls" : "length",
      );
      expect(tokens).toBeLessThanOrEqual(cap);
    }
  });

  it("ends inside its arguments at the cap, with finish_reason length", async () => {
    const completion = await complete(
      { messages: [user("get_weather, get_weather")], tools },
      { cap: 4 },
    );
    expect(completion.choices[0].finish_reason).toBe("length");
    expect(completion.usage?.output).toBeLessThanOrEqual(4);
    const tiny = await complete({ messages: [user("get_weather")], tools }, { cap: 1 });
    expect(tiny.choices[0]).toMatchObject({ message: { content: null }, finish_reason: "length" });
  });

  it("streams ID, type and name once, and then arguments in pieces, call by call", async () => {
    const body = { messages: [user("get_weather, get_weather and nothing else")], tools };
    const choices = chunkChoices(await streamed(body));
    expect(choices[0]?.delta).toEqual({ role: "assistant", content: null, refusal: null });
    expect(choices.at(-1)).toMatchObject({ delta: {}, finish_reason: "tool_calls" });
    const deltas = choices.slice(1, -1).map((choice) => choice.delta.tool_calls ?? []);
    expect(deltas.every((calls) => calls.length === 1)).toBe(true);
    const parts = deltas.flat();
    const order = parts.map((part) => part.index);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    const { choices: whole } = await complete(body);
    for (const [index, call] of (whole[0].message.tool_calls ?? []).entries()) {
      const [head, ...rest] = parts.filter((part) => part.index === index);
      const { id, type } = call;
      const { name } = call.function;
      expect(head).toEqual({ index, id, type, function: { name, arguments: "" } });
      expect(rest.length).toBeGreaterThan(1);
      for (const part of rest) {
        expect(Object.keys(part)).toEqual(["index", "function"]);
        expect(Object.keys(part.function)).toEqual(["arguments"]);
      }
      expect(rest.map((part) => part.function.arguments).join("")).toBe(call.function.arguments);
    }
  });
});

describe("a sandbox response to a tool result", () => {
  it("contains text with every result, even with a forced choice", async () => {
    const first = await complete({ messages: [user("get_weather and get_time")], tools });
    const assistant = first.choices[0].message;
    const contents = ['{"degrees":21}', [{ type: "text", text: "noon" }]];
    const results = (assistant.tool_calls ?? []).map((call, i) => ({
      role: "tool",
      tool_call_id: call.id,
      content: contents[i],
    }));
    const messages = [user("get_weather and get_time"), assistant, ...results];
    for (const body of [
      { messages, tools },
      { messages, tools, tool_choice: "required" },
    ]) {
      const [choice] = (await complete(body)).choices;
      expect(choice.finish_reason).toBe("stop");
      expect(choice.message.content).toBe(
        'get_weather returned: {"degrees":21}\nget_time returned: noon',
      );
    }
  });

  it("contains the tool call again if the user requests the call again", async () => {
    const result = { role: "tool", tool_call_id: "call_x", content: "21" };
    const messages = [user("get_weather"), { role: "assistant", content: null }, result];
    const text = (await complete({ messages, tools })).choices[0].message.content;
    expect(text).toBe("The tool returned: 21");
    expect(names(await complete({ messages: [...messages, user("get_time")], tools }))).toEqual([
      "get_time",
    ]);
  });
});
