import OpenAI, { AuthenticationError, BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { expect, it } from "vitest";
import { z } from "zod";
import { gateway } from "./gateway.ts";

const at = gateway();
const client = (apiKey = at.key) => new OpenAI({ apiKey, baseURL: at.baseUrl, maxRetries: 0 });
const hello = [{ role: "user" as const, content: "Hello from a client" }];

it("chat, and what it cost", async () => {
  const before = await at.balance();
  const { data, response } = await client()
    .chat.completions.create({ model: "sandbox/echo", messages: hello })
    .withResponse();
  expect(data.choices[0]?.message.content).toContain("Hello from a client");
  expect(await at.balance()).toBe(before - Number(response.headers.get("x-cost-micro")));
});

it("a stream, gathered by the SDK's own helper", async () => {
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

it("parse: an answer of the schema", async () => {
  const City = z.object({ city: z.string(), people: z.number() });
  const { choices } = await client().chat.completions.parse({
    model: "sandbox/echo",
    messages: hello,
    response_format: zodResponseFormat(City, "city"),
  });
  expect(City.parse(choices[0]?.message.parsed)).toBeTruthy();
});

it("runTools: the tool is called and the loop ends", async () => {
  let calls = 0;
  const runner = client().chat.completions.runTools({
    model: "sandbox/echo",
    messages: [{ role: "user", content: "The weather in Paris" }],
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

it("embeddings, models, and errors of its own classes", async () => {
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
