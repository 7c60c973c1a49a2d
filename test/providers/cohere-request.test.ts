import * as fc from "fast-check";
import { expect, it } from "vitest";
import { createCohereProvider } from "../../src/models/providers/cohere.ts";
import { toCohereChatRequest } from "../../src/models/protocols/cohere/request.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { CHAT_BODIES } from "../fixtures/chat-bodies.ts";
import { COHERE_CHAT } from "../fixtures/cohere-replies.ts";
import { answerTo, callOf } from "./adapter-kit.ts";

const MODEL = "command-a-03-2025";
const requestOf = (body: JsonObject, upstreamId = MODEL) =>
  toCohereChatRequest(callOf({ body, upstreamId })) as JsonObject;

it("the Cohere adapter sends a request to /chat with the API key and output cap, but without the client's ID", async () => {
  const provider = createCohereProvider("https://api.cohere.com/v2/", "secret");
  const body = { model: "smart", user: "u", logit_bias: {}, parallel_tool_calls: false };
  const { requests } = await answerTo(provider, { body, upstreamId: MODEL }, COHERE_CHAT.text.json);
  expect(requests[0]?.url).toBe("https://api.cohere.com/v2/chat");
  expect(requests[0]?.headers.get("authorization")).toBe("Bearer secret");
  expect(requests[0]?.init.redirect).toBe("manual");
  expect(requests[0]?.json).toEqual({
    model: "command-a-03-2025",
    messages: [{ role: "user", content: "Hi" }],
    stream: false,
    max_tokens: 256,
  });
});

const callTo = (id: string, args: string) => ({
  id,
  type: "function",
  function: { name: "f", arguments: args },
});

it("the Cohere adapter keeps other providers' tool call IDs, and sends text before a tool call as a plan", () => {
  const messages = [
    { role: "developer", content: "Be brief." },
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: "Let me look.",
      tool_calls: [callTo("toolu_01", '{"a":1}'), callTo("call_2", "")],
    },
    { role: "tool", tool_call_id: "toolu_01", content: "one" },
    { role: "tool", tool_call_id: "call_2", content: "two" },
    { role: "assistant", content: "Done." },
    { role: "user", content: "Thanks" },
  ];
  expect(requestOf({ messages })["messages"]).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      tool_calls: [callTo("toolu_01", '{"a":1}'), callTo("call_2", "{}")],
      tool_plan: "Let me look.",
    },
    { role: "tool", tool_call_id: "toolu_01", content: "one" },
    { role: "tool", tool_call_id: "call_2", content: "two" },
    { role: "assistant", content: "Done." },
    { role: "user", content: "Thanks" },
  ]);
});

const image = (url: string) => ({ type: "image_url", image_url: { url } });

it("the Cohere adapter sends images unchanged, as data or URL", () => {
  const content = [
    { type: "text", text: "What?" },
    image("data:image/png;base64,AAAA"),
    image("https://example.com/a.png"),
  ];
  expect(requestOf({ messages: [{ role: "user", content }] })["messages"]).toEqual([
    { role: "user", content },
  ]);
});

it("the Cohere adapter uses Cohere's field names and limits", () => {
  const request = requestOf({
    temperature: 0.5,
    top_p: 1,
    top_k: 900,
    frequency_penalty: -1,
    presence_penalty: 1.5,
    seed: 7,
    stop: "end",
  });
  expect(request).toMatchObject({
    temperature: 0.5,
    p: 0.99,
    k: 500,
    frequency_penalty: 0,
    presence_penalty: 1,
    seed: 7,
    stop_sequences: ["end"],
  });
  expect(requestOf({ top_p: 0 })).toMatchObject({ p: 0.01 });
  expect(requestOf({ stop: ["a", "b"], seed: -1 })).toMatchObject({ stop_sequences: ["a", "b"] });
  expect(requestOf({ seed: -1 })).not.toHaveProperty("seed");
});

const tool = (name: string, strict?: boolean) => ({
  type: "function",
  function: { name, parameters: {}, ...(strict !== undefined && { strict }) },
});

const plain = (name: string) => ({ type: "function", function: { name, parameters: {} } });

it("the Cohere adapter maps tool_choice to Cohere's value, and sends only the named tool if one is named", () => {
  const tools = [tool("f", true), tool("g")];
  const named = { type: "function", function: { name: "f" } };
  const choice = (tool_choice: unknown) => {
    const request = requestOf({ tools, tool_choice });
    return [request["tools"], request["tool_choice"], request["strict_tools"]];
  };
  expect(choice("auto")).toEqual([[plain("f"), plain("g")], undefined, undefined]);
  expect(choice("required")).toEqual([[plain("f"), plain("g")], "REQUIRED", undefined]);
  expect(choice("none")).toEqual([[plain("f"), plain("g")], "NONE", undefined]);
  expect(choice(named)).toEqual([[plain("f")], "REQUIRED", true]);
});

const formatOf = (response_format: unknown) => requestOf({ response_format })["response_format"];

it("the Cohere adapter converts json_schema to json_object with a plain schema", () => {
  const schema = { type: "object" };
  expect(
    formatOf({ type: "json_schema", json_schema: { name: "n", strict: true, schema } }),
  ).toEqual({
    type: "json_object",
    json_schema: schema,
  });
  expect(formatOf({ type: "json_object" })).toEqual({ type: "json_object" });
  expect(formatOf({ type: "text" })).toBeUndefined();
});

const thinkingOf = (effort: string, model = "command-a-reasoning-08-2025") =>
  requestOf({ reasoning_effort: effort }, model)["thinking"];

it("the Cohere adapter converts an effort to a token budget below the output cap, but only for reasoning models", () => {
  expect(thinkingOf("none")).toEqual({ type: "disabled" });
  expect(thinkingOf("low")).toEqual({ type: "enabled", token_budget: 51 });
  expect(thinkingOf("high")).toEqual({ type: "enabled", token_budget: 204 });
  expect(thinkingOf("high", "command-a-03-2025")).toBeUndefined();
});

it("the Cohere adapter rejects unsupported features", () => {
  const custom = [{ type: "custom", custom: { name: "c" } }];
  expect(requestOf({ n: 2 })).toMatchObject({ kind: "refused", param: "n" });
  expect(requestOf({ tools: custom })).toMatchObject({ kind: "refused", param: "tools[0]" });
});

const SENT = new Set(
  "model messages stream max_tokens temperature p k frequency_penalty presence_penalty seed stop_sequences tools tool_choice strict_tools response_format thinking".split(
    " ",
  ),
);

it("the Cohere adapter either converts or rejects any valid request, and sends only known fields", () => {
  const models = fc.constantFrom("command-a-03-2025", "command-a-reasoning-08-2025");
  fc.assert(
    fc.property(CHAT_BODIES, models, (body, upstreamId) => {
      const request = toCohereChatRequest(callOf({ upstreamId, body }));
      // A rejection has no fields to check.
      const isRefused = request["kind" as keyof typeof request] === "refused";
      const sent = (isRefused ? { messages: [], max_tokens: 256 } : request) as JsonObject;
      expect(sent["max_tokens"]).toBe(256);
      expect(Object.keys(sent).filter((field) => !SENT.has(field))).toEqual([]);
      for (const message of sent["messages"] as JsonObject[]) {
        const hasCalls = message["tool_calls"] !== undefined;
        expect(message["content"] !== undefined).toBe(!hasCalls);
      }
    }),
  );
});
