import { OpenAIProvider, Agent, Runner } from "@openai/agents";
import { ChatOpenAI } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import OpenAI from "openai";
import OpenAI6 from "openai6";
import { describe, expect, it } from "vitest";
import { codexTexts } from "./codex.ts";
import { gateway } from "./gateway.ts";

/**
 * The pause between two words is ten times as long as the keep-alive interval, which causes
 * comments and then an event.
 */
const at = gateway({ KEEP_ALIVE_MS: "15" });
const model = "sandbox/slow-stream";
const PROMPT = "Hello from a slow client";

/** Two major versions of the SDK. The newer one's types describe both. */
type Sdk = new (options: { apiKey: string; baseURL: string; maxRetries: number }) => OpenAI;

const clientOf = (Client: unknown): OpenAI =>
  new (Client as Sdk)({ apiKey: at.key, baseURL: at.baseUrl, maxRetries: 0 });

async function rawStream(Client: unknown): Promise<string> {
  let text = "";
  const request = { model, input: PROMPT, stream: true } as const;
  for await (const one of await clientOf(Client).responses.create(request)) {
    if (one.type === "response.output_text.delta") text += one.delta;
  }
  return text;
}

async function helper(Client: unknown): Promise<string> {
  return (await clientOf(Client).responses.stream({ model, input: PROMPT }).finalResponse())
    .output_text;
}

const CLIENTS: Readonly<Record<string, () => Promise<string>>> = {
  "the OpenAI SDK 7's raw stream": () => rawStream(OpenAI),
  "the OpenAI SDK 6's raw stream": () => rawStream(OpenAI6),
  "the OpenAI SDK 7's helper": () => helper(OpenAI),
  "the OpenAI SDK 6's helper": () => helper(OpenAI6),
  "AI SDK": async () => {
    const openai = createOpenAI({ apiKey: at.key, baseURL: at.baseUrl });
    return streamText({ model: openai(model), prompt: PROMPT, maxRetries: 0 }).text;
  },
  "the Agents SDK": async () => {
    const modelProvider = new OpenAIProvider({ apiKey: at.key, baseURL: at.baseUrl });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const run = await runner.run(new Agent({ name: "Slow", model }), PROMPT, { stream: true });
    await run.completed;
    return String(run.finalOutput);
  },
  LangChain: async () => {
    const configuration = { baseURL: at.baseUrl };
    const own = { apiKey: at.key, configuration, maxRetries: 0, useResponsesApi: true };
    let text = "";
    for await (const part of await new ChatOpenAI({ ...own, model }).stream(PROMPT))
      text += part.text;
    return text;
  },
  Codex: async () => (await codexTexts(at, { prompt: PROMPT, model })).join(""),
};

describe("a Responses stream of a silent model", () => {
  it("contains comments and keepalive events, which are missing from the SDK's types", async () => {
    const headers = { authorization: `Bearer ${at.key}`, "content-type": "application/json" };
    const body = JSON.stringify({ model, input: PROMPT, stream: true });
    const answer = await fetch(`${at.baseUrl}/responses`, { method: "POST", headers, body });
    const text = await answer.text();
    expect(text.match(/^: keep-alive$/gm)?.length).toBeGreaterThan(4);
    expect(text).toContain("event: keepalive\ndata: {");
  });

  it.each(Object.entries(CLIENTS))(
    "doesn't end a stream early in the client %s",
    async (_, readText) => {
      expect(await readText()).toBe(PROMPT);
    },
  );
});
