import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gateway } from "./gateway.ts";

const at = gateway();
const MODELS = {
  "@ai-sdk/openai, as it is": () =>
    createOpenAI({ apiKey: at.key, baseURL: at.baseUrl })("sandbox/echo"),
  "@ai-sdk/openai, chat": () =>
    createOpenAI({ apiKey: at.key, baseURL: at.baseUrl }).chat("sandbox/echo"),
  "@ai-sdk/anthropic": () =>
    createAnthropic({ apiKey: at.key, baseURL: at.baseUrl })("sandbox/echo"),
};

describe.each(Object.entries(MODELS))("%s", (_, model) => {
  it("text", async () => {
    const { text, usage } = await generateText({ model: model(), prompt: "Hello from a client" });
    expect(text).toContain("Hello from a client");
    expect(usage.outputTokens).toBeGreaterThan(0);
  });

  it("a stream", async () => {
    const { textStream, text } = streamText({ model: model(), prompt: "Hello from a client" });
    const parts: string[] = [];
    for await (const part of textStream) parts.push(part);
    expect(await text).toBe(parts.join(""));
    expect(parts.join("")).toContain("Hello");
  });

  it("two steps, with a tool between them", async () => {
    let calls = 0;
    const { steps } = await generateText({
      model: model(),
      prompt: 'call get_weather {"city":"Paris"}',
      stopWhen: stepCountIs(3),
      tools: {
        get_weather: tool({
          description: "The weather of a city",
          inputSchema: z.object({ city: z.string() }),
          execute: () => {
            calls += 1;
            return "21 degrees";
          },
        }),
      },
    });
    expect(calls).toBe(1);
    expect(steps).toHaveLength(2);
  });
});
