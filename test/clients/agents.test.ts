import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { expect, it } from "vitest";
import { z } from "zod";
import { gateway } from "./gateway.ts";

const at = gateway();

const runner = (): Runner =>
  new Runner({
    modelProvider: new OpenAIProvider({ apiKey: at.key, baseURL: at.baseUrl }),
    tracingDisabled: true,
  });
const plain = (name: string): Agent => new Agent({ name, model: "sandbox/echo" });

it("OpenAI's Agents SDK runs an agent, and returns the same text with and without streaming", async () => {
  const input = "Hello from an agent";
  expect((await runner().run(plain("Echo"), input)).finalOutput).toBe(input);
  const streamed = await runner().run(plain("Echo"), input, { stream: true });
  let text = "";
  for await (const part of streamed.toTextStream()) text += part;
  await streamed.completed;
  expect([text, streamed.finalOutput]).toEqual([input, input]);
});

it("OpenAI's Agents SDK hands off to the named agent", async () => {
  const first = Agent.create({ ...plain("First"), handoffs: [plain("Second")] });
  const { lastAgent, finalOutput } = await runner().run(first, "call transfer_to_Second {}");
  expect(lastAgent?.name).toBe("Second");
  expect(finalOutput).toBeTruthy();
});

it("OpenAI's Agents SDK runs an agent loop with a tool over the Responses API without configuration", async () => {
  let calls = 0;
  const weather = tool({
    name: "get_weather",
    description: "The weather of a city",
    parameters: z.object({ city: z.string() }),
    execute: () => {
      calls += 1;
      return "21 degrees";
    },
  });
  const agent = new Agent({
    name: "Weather",
    instructions: "You tell the weather.",
    model: "sandbox/echo",
    tools: [weather],
  });
  const { finalOutput } = await runner().run(agent, 'call get_weather {"city":"Paris"}');
  expect(finalOutput).toBeTruthy();
  expect(calls).toBe(1);
});
