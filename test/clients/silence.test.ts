import { OpenAIProvider, Agent, Runner } from "@openai/agents";
import { ChatOpenAI } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { codexTexts } from "./codex.ts";
import { gateway } from "./gateway.ts";

/** Silence between two words is ten times as long as a keep-alive waits: comments, and then an event. */
const at = gateway({ KEEP_ALIVE_MS: "15" });
const model = "sandbox/slow-stream";
const SAID = "Hello from a slow client";

const CLIENTS: Readonly<Record<string, () => Promise<string>>> = {
  "the OpenAI SDK's raw stream": async () => {
    const client = new OpenAI({ apiKey: at.key, baseURL: at.baseUrl, maxRetries: 0 });
    let text = "";
    for await (const one of await client.responses.create({ model, input: SAID, stream: true })) {
      if (one.type === "response.output_text.delta") text += one.delta;
    }
    return text;
  },
  "the OpenAI SDK's helper": async () => {
    const client = new OpenAI({ apiKey: at.key, baseURL: at.baseUrl, maxRetries: 0 });
    const whole = await client.responses.stream({ model, input: SAID }).finalResponse();
    return whole.output_text;
  },
  "AI SDK": async () => {
    const openai = createOpenAI({ apiKey: at.key, baseURL: at.baseUrl });
    return streamText({ model: openai(model), prompt: SAID, maxRetries: 0 }).text;
  },
  "the Agents SDK": async () => {
    const modelProvider = new OpenAIProvider({ apiKey: at.key, baseURL: at.baseUrl });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const run = await runner.run(new Agent({ name: "Slow", model }), SAID, { stream: true });
    await run.completed;
    return String(run.finalOutput);
  },
  LangChain: async () => {
    const configuration = { baseURL: at.baseUrl };
    const own = { apiKey: at.key, configuration, maxRetries: 0, useResponsesApi: true };
    let text = "";
    for await (const part of await new ChatOpenAI({ ...own, model }).stream(SAID))
      text += part.text;
    return text;
  },
  Codex: async () => (await codexTexts(at, { prompt: SAID, model })).join(""),
};

describe("silence in the midst of a Responses stream", () => {
  it("is filled with comments, and then with events that no type of the SDK's knows", async () => {
    const headers = { authorization: `Bearer ${at.key}`, "content-type": "application/json" };
    const body = JSON.stringify({ model, input: SAID, stream: true });
    const answer = await fetch(`${at.baseUrl}/responses`, { method: "POST", headers, body });
    const text = await answer.text();
    expect(text.match(/^: keep-alive$/gm)?.length).toBeGreaterThan(4);
    expect(text).toContain("event: keepalive\ndata: {");
  });

  it.each(Object.entries(CLIENTS))("is borne by %s", async (_, ask) => {
    expect(await ask()).toBe(SAID);
  });
});
