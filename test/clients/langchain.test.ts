import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { AIMessageChunk } from "@langchain/core/messages";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import OpenAI from "openai";
import { expect, it } from "vitest";
import { gateway } from "./gateway.ts";

const at = gateway();
const options = () => ({
  apiKey: at.key,
  configuration: { baseURL: at.baseUrl },
  maxRetries: 0,
});

it("LangChain gets embeddings with LangChain's default settings", async () => {
  const embeddings = new OpenAIEmbeddings({ ...options(), model: "sandbox/embed" });
  const vectors = await embeddings.embedDocuments(["a text", "another one"]);
  expect(vectors.map((vector) => vector.length)).toEqual([256, 256]);
  expect(await embeddings.embedQuery("a text")).toEqual(vectors[0]);
});

it("LangChain embeds token IDs, the default input of LangChain's Python package", async () => {
  const { embeddings } = new OpenAI({ apiKey: at.key, baseURL: at.baseUrl, maxRetries: 0 });
  const model = "sandbox/embed";
  const ids = [[9906, 1917], [15339]]; // tokens of cl100k_base
  const { data, usage } = await embeddings.create({ model, input: ids });
  expect(data.map(({ embedding }) => embedding.length)).toEqual([256, 256]);
  expect(usage.prompt_tokens).toBe(3);
});

it("LangChain completes a chat, also as a stream", async () => {
  const chat = new ChatOpenAI({ ...options(), model: "sandbox/echo" });
  expect((await chat.invoke("Hello from a client")).text).toContain("Hello from a client");
  let text = "";
  for await (const part of await chat.stream("Hello from a client")) text += part.text;
  expect(text).toContain("Hello from a client");
});

it("LangChain uses the Responses API for a text, a stream and a tool call", async () => {
  const chat = new ChatOpenAI({ ...options(), model: "sandbox/echo", useResponsesApi: true });
  const whole = await chat.invoke("Hello from a client");
  expect(whole.text).toContain("Hello from a client");
  expect(whole.response_metadata).toMatchObject({ object: "response" });
  let text = "";
  for await (const part of await chat.stream("Hello from a client")) text += part.text;
  expect(text).toBe(whole.text);
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const bound = chat.bindTools([
    { type: "function", function: { name: "get_weather", parameters } },
  ]);
  const prompt = 'call get_weather {"city":"Paris"}';
  const called = await bound.invoke(prompt);
  expect(called.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
  let streamed: AIMessageChunk | undefined;
  for await (const part of await bound.stream(prompt)) {
    streamed = streamed === undefined ? part : streamed.concat(part);
  }
  expect(streamed?.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
  const id = called.tool_calls?.[0]?.id ?? "";
  const result = new ToolMessage({ content: "21 degrees", tool_call_id: id });
  const after = await bound.invoke([new HumanMessage(prompt), called, result]);
  expect(after.text).toContain("21 degrees");
});

it("LangChain uses the Messages API, and the stream matches the complete message", async () => {
  const chat = new ChatAnthropic({
    apiKey: at.key,
    anthropicApiUrl: at.origin,
    model: "sandbox/echo",
    maxTokens: 200,
    maxRetries: 0,
  });
  const whole = await chat.invoke("Hello from a client");
  expect(whole.text).toContain("Hello from a client");
  let streamed: AIMessageChunk | undefined;
  for await (const part of await chat.stream("Hello from a client")) {
    streamed = streamed === undefined ? part : streamed.concat(part);
  }
  expect(streamed?.text).toBe(whole.text);
  expect(streamed?.additional_kwargs).toMatchObject({ stop_reason: "end_turn" });
  // The SDK adds the output of start and end. Its input stays the gateway's estimate.
  const [counted, added] = [usedBy(whole), usedBy(streamed)];
  expect(added.output_tokens - counted.output_tokens).toBeOneOf([0, 1]);
  expect(added.input_tokens).toBeGreaterThan(0);
});

const usedBy = (message: unknown) =>
  (message as { usage_metadata: { input_tokens: number; output_tokens: number } }).usage_metadata;
