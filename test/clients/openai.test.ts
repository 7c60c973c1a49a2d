import OpenAI, { AuthenticationError, BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import OpenAI6 from "openai6";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { EXPECTED_CONVERSATION, TURNS, Weather } from "./conversation.ts";
import { CLAUDE, GPT, authorGateway } from "./author-gateway.ts";

const at = await authorGateway();
const client = (apiKey = at.key) => new OpenAI({ apiKey, baseURL: at.baseUrl, maxRetries: 0 });
const hello = [{ role: "user" as const, content: "Hello from a client" }];

it("the openai package completes a chat, and reads the chat's cost", async () => {
  const before = await at.balance();
  const { data, response } = await client()
    .chat.completions.create({ model: "sandbox/echo", messages: hello })
    .withResponse();
  expect(data.choices[0]?.message.content).toContain("Hello from a client");
  expect(await at.balance()).toBe(before - Number(response.headers.get("x-cost-micro")));
});

it("the openai package streams a chat with the package's stream helper", async () => {
  const runner = client().chat.completions.stream({
    model: "sandbox/echo",
    messages: hello,
    stream_options: { include_usage: true },
  });
  const parts: string[] = [];
  runner.on("content", (part) => parts.push(part));
  expect(await runner.finalContent()).toBe(parts.join(""));
  expect((await runner.totalUsage()).total_tokens).toBeGreaterThan(0);
});

it("the openai package parses a chat completion with a schema", async () => {
  const City = z.object({ city: z.string(), people: z.number() });
  const { choices } = await client().chat.completions.parse({
    model: "sandbox/echo",
    messages: hello,
    response_format: zodResponseFormat(City, "city"),
  });
  expect(City.parse(choices[0]?.message.parsed)).toBeTruthy();
});

it("the openai package calls a tool with runTools, and ends the loop", async () => {
  let calls = 0;
  const runner = client().chat.completions.runTools({
    model: "sandbox/echo",
    messages: [{ role: "user", content: 'call get_weather {"city":"Paris"}' }],
    tools: [
      {
        type: "function",
        function: {
          name: "get_weather",
          description: "The weather of a city",
          parse: JSON.parse,
          function: () => {
            calls += 1;
            return "21 degrees";
          },
          parameters: { type: "object", properties: { city: { type: "string" } } },
        },
      },
    ],
  });
  expect(await runner.finalContent()).toBeTruthy();
  expect(calls).toBe(1);
});

it("the openai package creates embeddings, lists models, and throws OpenAI's error classes", async () => {
  const { data } = await client().embeddings.create({ model: "sandbox/embed", input: ["a", "b"] });
  expect(data.map(({ embedding }) => embedding.length)).toEqual([256, 256]);
  const names = [];
  for await (const { id } of client().models.list()) names.push(id);
  expect(names).toContain("sandbox/echo");
  const chat = client().chat.completions;
  await expect(chat.create({ model: "sandbox/none", messages: hello })).rejects.toBeInstanceOf(
    NotFoundError,
  );
  await expect(
    chat.create({ model: "sandbox/echo", messages: hello, max_tokens: -1 }),
  ).rejects.toBeInstanceOf(BadRequestError);
  await expect(client("svc_sk_none").models.list()).rejects.toBeInstanceOf(AuthenticationError);
});

it("the openai package creates a response, and reads the response's cost", async () => {
  const before = await at.balance();
  const { data, response } = await client()
    .responses.create({ model: "sandbox/echo", input: "Hello from a client" })
    .withResponse();
  expect(data.output_text).toContain("Hello from a client");
  expect(await at.balance()).toBe(before - Number(response.headers.get("x-cost-micro")));
});

it("the openai package streams a response with the package's stream helper, which checks the event order", async () => {
  const stream = client().responses.stream({ model: "sandbox/echo", input: "Hello from a client" });
  let text = "";
  stream.on("response.output_text.delta", ({ delta }) => (text += delta));
  const whole = await stream.finalResponse();
  expect(whole.output_text).toBe(text);
  expect(text).toContain("Hello from a client");
  expect(whole.usage?.total_tokens).toBeGreaterThan(0);
});

it("the openai package parses the output of a response with a schema", async () => {
  const City = z.object({ city: z.string(), people: z.number() });
  const { output_parsed: parsed } = await client().responses.parse({
    model: "sandbox/echo",
    input: "Hello from a client",
    text: { format: zodTextFormat(City, "city") },
  });
  expect(City.parse(parsed)).toBeTruthy();
});

it("the openai package runs a tool loop over the Responses API, as JSON and as a stream", async () => {
  const tools: OpenAI.Responses.Tool[] = [
    {
      type: "function",
      name: "get_weather",
      parameters: { type: "object", properties: { city: { type: "string" } } },
      strict: false,
    },
  ];
  const input: OpenAI.Responses.ResponseInput = [
    { role: "user", content: 'call get_weather {"city":"Paris"}' },
  ];
  const options = { model: "sandbox/echo", tools, store: false };
  const first = await client().responses.create({ ...options, input, tool_choice: "required" });
  const calls = first.output.filter((item) => item.type === "function_call");
  expect(calls).toHaveLength(1);
  for (const item of first.output) if (item.type !== "program") input.push(item as never);
  for (const { call_id } of calls) {
    input.push({ type: "function_call_output", call_id, output: "21 degrees" });
  }
  const second = await client()
    .responses.stream({ ...options, input })
    .finalResponse();
  expect(second.status).toBe("completed");
  expect(second.output_text).toBeTruthy();
});

it("the openai package throws OpenAI's error classes for errors of the Responses API", async () => {
  const request = { model: "sandbox/echo", input: "x" };
  await expect(
    client().responses.create({ ...request, previous_response_id: "resp_1" }),
  ).rejects.toBeInstanceOf(BadRequestError);
  await expect(client().responses.retrieve("resp_1")).rejects.toBeInstanceOf(NotFoundError);
  const cut = await client().responses.create({ ...request, model: "sandbox/cut", stream: true });
  const read = async () => {
    for await (const event of cut) void event;
  };
  await expect(read()).rejects.toThrow("provider failed");
});

/** The supported major versions. The calls in this file have the same types in both. */
const MAJORS = { 6: OpenAI6 as unknown as typeof OpenAI, 7: OpenAI };
type Talk = { readonly own: OpenAI; readonly model: string; readonly streamed: boolean };

/** Runs the conversation by chat completions. The SDK's own runner calls the tool. */
async function chat({ own, model, streamed }: Talk): Promise<typeof EXPECTED_CONVERSATION> {
  const { call, cities, ...weather } = tool();
  const tools = [
    { type: "function" as const, function: { ...weather, function: call, parse: JSON.parse } },
  ];
  let messages: OpenAI.ChatCompletionMessageParam[] = [];
  const texts: string[] = [];
  for (const content of TURNS) {
    messages.push({ role: "user", content });
    const request = { model, messages, tools: tools as never };
    const { completions } = own.chat;
    const runner = streamed
      ? completions.runTools({ ...request, stream: true })
      : completions.runTools(request);
    texts.push(String(await runner.finalContent()));
    messages = [...runner.messages];
  }
  return { cities, texts };
}

/**
 * Runs the conversation by Responses without a runner, either with the whole input each time or by
 * the previous ID.
 */
async function responses(
  { own, model, streamed }: Talk,
  isChained = false,
): Promise<typeof EXPECTED_CONVERSATION> {
  const { call, cities, ...weather } = tool();
  const tools = [{ type: "function" as const, ...weather, strict: true }];
  const texts: string[] = [];
  let input: OpenAI.Responses.ResponseInput = [];
  let before: string | null = null;
  for (const content of TURNS) {
    input.push({ role: "user", content });
    for (let text = ""; text === "";) {
      const request = { model, input, tools, ...(isChained && { previous_response_id: before }) };
      const answer: OpenAI.Responses.Response = streamed
        ? await own.responses.stream(request).finalResponse()
        : await own.responses.create(request);
      before = answer.id;
      const calls = answer.output.filter((item) => item.type === "function_call");
      const results = calls.map((item) => ({
        type: "function_call_output" as const,
        call_id: item.call_id,
        output: call(JSON.parse(item.arguments) as { city: string }),
      }));
      input = [...(isChained ? [] : [...input, ...(answer.output as typeof input)]), ...results];
      if (calls.length === 0) text = answer.output_text;
      if (text !== "") texts.push(text);
    }
  }
  return { cities, texts };
}

function tool() {
  const weather = new Weather();
  const { name, description, parameters, cities } = weather;
  const call = ({ city }: { city: string }): string => weather.call(city);
  return { name, description, parameters, cities, call };
}

describe.each(Object.entries(MAJORS))(
  "a conversation of three messages with a tool in openai %s",
  (_, Sdk) => {
    const own = (apiKey = at.key) => new Sdk({ apiKey, baseURL: at.baseUrl, maxRetries: 0 });
    const cases = ["sandbox/agent", GPT, CLAUDE].flatMap((model) =>
      [false, true].map((streamed) => ({ model, streamed })),
    );

    it.each(cases)(
      "completes with chat completions, $model, streamed: $streamed",
      async (options) => {
        expect(await chat({ own: own(), ...options })).toEqual(EXPECTED_CONVERSATION);
      },
    );

    it.each(cases)("completes with responses, $model, streamed: $streamed", async (options) => {
      expect(await responses({ own: own(), ...options })).toEqual(EXPECTED_CONVERSATION);
    });

    it.each(cases)(
      "completes with responses that continue the previous response by ID, $model, streamed: $streamed",
      async (options) => {
        const chain = async (apiKey: string) => responses({ own: own(apiKey), ...options }, true);
        await expect(chain(at.key)).rejects.toMatchObject({ code: "previous_response_not_found" });
        expect(await chain(await at.storingKey())).toEqual(EXPECTED_CONVERSATION);
      },
    );
  },
);
