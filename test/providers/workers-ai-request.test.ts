import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { toWorkersAiChatInputs } from "../../src/models/protocols/workers-ai/request.ts";
import { CHAT_BODIES } from "../fixtures/chat-bodies.ts";
import { WORKERS_AI_CHAT } from "../fixtures/workers-ai-replies.ts";
import { answerTo, callOf } from "./adapter-kit.ts";
import { WORKERS_AI_PROVIDER as provider } from "./workers-ai-binding.ts";

const LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast";
const GLM = "@cf/zai-org/glm-4.7-flash";
const inputsOf = (body: JsonObject, upstreamId = LLAMA, stream = false) =>
  toWorkersAiChatInputs(callOf({ body, upstreamId, stream }));

it("the Workers AI adapter calls the binding for a raw response, with the model and output cap but without the client's ID", async () => {
  const body = { model: "smart", user: "u", stream_options: {}, temperature: 0.5 };
  const { requests } = await answerTo(
    provider,
    { body, upstreamId: LLAMA },
    WORKERS_AI_CHAT.text.json,
  );
  expect(requests[0]?.headers.get("cf-consn-model-id")).toBe(LLAMA);
  expect(requests[0]?.init.signal).toBeInstanceOf(AbortSignal);
  expect(requests[0]?.json).toEqual({
    inputs: { messages: [{ role: "user", content: "Hi" }], temperature: 0.5, max_tokens: 256 },
    options: { returnRawResponse: true },
  });
});

it("the Workers AI adapter converts other providers' conversations to system role, text content and named tool results", () => {
  const call = { id: "toolu_01", type: "function", function: { name: "f", arguments: "" } };
  const messages = [
    { role: "developer", content: [{ type: "text", text: "Be brief." }] },
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, tool_calls: [call], reasoning_content: "secret" },
    { role: "tool", tool_call_id: "toolu_01", content: "done" },
  ];
  expect(inputsOf({ messages })).toMatchObject({
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ ...call, function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "toolu_01", content: "done", name: "f" },
    ],
  });
  expect(JSON.stringify(inputsOf({ messages }))).not.toContain("secret");
});

it("the Workers AI adapter converts tool call IDs to nine letters for Mistral, the same for a call and its result", () => {
  const call = {
    id: "call_of_another",
    type: "function",
    function: { name: "f", arguments: "{}" },
  };
  const messages = [
    { role: "assistant", tool_calls: [call] },
    { role: "tool", tool_call_id: "call_of_another", content: "done" },
  ];
  const inputs = inputsOf({ messages }, "@cf/mistralai/mistral-small-3.1-24b-instruct");
  const [assistant = {}, result] = (inputs as { messages: JsonObject[] }).messages;
  const [mapped] = assistant["tool_calls"] as { id: string }[];
  expect(mapped?.id).toMatch(/^[a-zA-Z0-9]{9}$/);
  expect(result).toMatchObject({ tool_call_id: mapped?.id, name: "f" });
});

const image = (url: string) => ({ type: "image_url", image_url: { url } });

const withImage = (url: string) => [
  { role: "system", content: "Look." },
  { role: "user", content: [{ type: "text", text: "What is it?" }, image(url)] },
];

it("the Workers AI adapter sends images as data URLs, and rejects other URLs with the field as param", () => {
  const inline = withImage("data:image/png;base64,AAAA");
  expect(inputsOf({ messages: inline })).toMatchObject({ messages: inline });
  expect(inputsOf({ messages: withImage("https://example.com/a.png") })).toMatchObject({
    kind: "refused",
    param: "messages[1].content[1].image_url",
  });
});

it("the Workers AI adapter sends older models only the JSON schema, and newer models OpenAI's format", () => {
  const schema = { type: "object", properties: { city: { type: "string" } } };
  const response_format = { type: "json_schema", json_schema: { name: "n", strict: true, schema } };
  expect(inputsOf({ response_format })).toMatchObject({
    response_format: { type: "json_schema", json_schema: schema },
  });
  for (const model of [GLM, "@cf/openai/gpt-oss-120b", "@cf/moonshotai/kimi-k2.6"]) {
    expect(inputsOf({ response_format }, model)).toMatchObject({ response_format });
  }
  expect(inputsOf({ response_format: { type: "json_object" } })).toMatchObject({
    response_format: { type: "json_object" },
  });
  expect(inputsOf({ response_format: { type: "text" } })).not.toHaveProperty("response_format");
});

const tool = (name: string) => ({ type: "function", function: { name, parameters: {} } });

it("the Workers AI adapter sends tools and tool choice in OpenAI's format, and no tools for tool_choice none", () => {
  const tools = [tool("f"), tool("g")];
  const named = { type: "function", function: { name: "f" } };
  expect(inputsOf({ tools, tool_choice: named })).toMatchObject({ tools, tool_choice: named });
  expect(inputsOf({ tools, tool_choice: "required" })).toMatchObject({ tool_choice: "required" });
  expect(inputsOf({ tools, tool_choice: "auto" })).not.toHaveProperty("tool_choice");
  expect(inputsOf({ tools, tool_choice: "none" })).not.toHaveProperty("tools");
  const allowed = {
    type: "allowed_tools",
    allowed_tools: { mode: "required", tools: [tool("g")] },
  };
  expect(inputsOf({ tools, tool_choice: allowed })).toMatchObject({
    tools: [tool("g")],
    tool_choice: "required",
  });
});

it("the Workers AI adapter maps an effort to the model's nearest effort, and disables reasoning only on request", () => {
  const rows: [string, string, unknown][] = [
    ["@cf/openai/gpt-oss-120b", "none", "low"],
    ["@cf/openai/gpt-oss-120b", "minimal", "low"],
    ["@cf/openai/gpt-oss-120b", "medium", "medium"],
    ["@cf/openai/gpt-oss-120b", "max", "high"],
    ["@cf/zai-org/glm-5.3-flash", "none", "low"],
    ["@cf/zai-org/glm-5.3-flash", "medium", "high"],
    ["@cf/zai-org/glm-5.2", "none", "none"],
    ["@cf/zai-org/glm-5.2", "minimal", "low"],
    ["@cf/moonshotai/kimi-k2.6", "minimal", "high"],
    ["@cf/moonshotai/kimi-k2.6", "low", "high"],
    ["@cf/qwen/qwen3.8-27b", "high", "xhigh"],
    ["@cf/moonshotai/kimi-k2.7-code", "low", undefined],
    [LLAMA, "high", undefined],
  ];
  for (const [model, effort, expected] of rows) {
    const inputs = inputsOf({ reasoning_effort: effort }, model) as JsonObject;
    expect([model, effort, inputs["reasoning_effort"]]).toEqual([model, effort, expected]);
  }
  expect(inputsOf({ reasoning_effort: "none" }, GLM)).toMatchObject({
    chat_template_kwargs: { enable_thinking: false },
  });
});

it("the Workers AI adapter rejects unsupported features", () => {
  const tools = [{ type: "custom", custom: { name: "c" } }];
  const custom = { id: "c", type: "custom", custom: { name: "c", input: "" } };
  expect(inputsOf({ n: 2 })).toMatchObject({ kind: "refused", param: "n" });
  expect(inputsOf({ tools })).toMatchObject({ kind: "refused", param: "tools[0]" });
  expect(inputsOf({ functions: [] })).toMatchObject({ kind: "refused", param: "functions" });
  expect(inputsOf({ messages: [{ role: "assistant", tool_calls: [custom] }] })).toMatchObject({
    kind: "refused",
    param: "messages[0].tool_calls[0]",
  });
  expect(inputsOf({ messages: [{ role: "function", name: "f", content: "" }] })).toMatchObject({
    kind: "refused",
    param: "messages[0]",
  });
});

const SENT = new Set(
  "messages temperature top_p top_k seed stop frequency_penalty presence_penalty repetition_penalty max_tokens stream tools tool_choice response_format reasoning_effort chat_template_kwargs".split(
    " ",
  ),
);

it("the Workers AI adapter either converts or rejects any valid request, and sends only known fields", () => {
  const models = fc.constantFrom(LLAMA, GLM, "@cf/openai/gpt-oss-20b", "@cf/mistral/x");
  fc.assert(
    fc.property(CHAT_BODIES, models, fc.boolean(), (body, upstreamId, stream) => {
      const inputs = toWorkersAiChatInputs(callOf({ upstreamId, stream, body }));
      // A rejection has no fields to check.
      const isRefused = inputs["kind" as keyof typeof inputs] === "refused";
      const sent = (isRefused ? { messages: [], max_tokens: 256 } : inputs) as JsonObject;
      expect(sent["max_tokens"]).toBe(256);
      expect(Object.keys(sent).filter((field) => !SENT.has(field))).toEqual([]);
      for (const message of sent["messages"] as JsonObject[]) {
        expect(message["content"]).not.toBeNull();
        expect(message["role"]).not.toBe("developer");
      }
    }),
  );
});
