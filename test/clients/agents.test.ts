import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { expect, it } from "vitest";
import { z } from "zod";
import { gateway } from "./gateway.ts";

const at = gateway();

it("an agent's loop with a tool, over Responses as it is", async () => {
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
  const modelProvider = new OpenAIProvider({ apiKey: at.key, baseURL: at.baseUrl });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const agent = new Agent({
    name: "Weather",
    instructions: "You tell the weather.",
    model: "sandbox/echo",
    tools: [weather],
  });
  const { finalOutput } = await runner.run(agent, 'call get_weather {"city":"Paris"}');
  expect(finalOutput).toBeTruthy();
  expect(calls).toBe(1);
});
