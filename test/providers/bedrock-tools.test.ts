import { expect, it, vi } from "vitest";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { CLAUDE, HAIKU, NOVA, sent } from "./bedrock-kit.ts";

const OPUS = "eu.anthropic.claude-opus-5-5";
const MISTRAL = "mistral.mistral-large-2402-v1:0";
const QWEN = "qwen.qwen3-32b-v1:0";
const OSS = "openai.gpt-oss-120b-1:0";
const GPT = "eu.openai.gpt-5.6-luna";
const NOVA_2 = "eu.amazon.nova-2-lite-v1:0";
const PARAMETERS = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const tool = (name: string, more: object = {}) => ({
  type: "function",
  function: { name, ...more },
});

const TOOLS = [tool("get_weather", { parameters: PARAMETERS, strict: true }), tool("get_time")];
const NAMED = { type: "function", function: { name: "get_time" } };
const SCHEMA = { type: "object", properties: { days: { type: "integer" } } };
const FORMAT = { type: "json_schema", json_schema: { name: "plan", schema: SCHEMA } };

const config = async (body: JsonObject, model = NOVA) =>
  (await sent({ tools: TOOLS, ...body }, model))["toolConfig"] as {
    readonly tools: readonly { readonly toolSpec: JsonObject }[];
    readonly toolChoice?: JsonObject;
  };
const additional = async (body: JsonObject, model: string) =>
  (await sent(body, model))["additionalModelRequestFields"];
const inference = async (body: JsonObject, model: string) =>
  (await sent(body, model))["inferenceConfig"];

it("the Bedrock adapter sends a tool's schema without the field 'strict', and for Nova only three schema keywords", async () => {
  const { tools } = await config({}, CLAUDE);
  expect(tools).toEqual([
    { toolSpec: { name: "get_weather", inputSchema: { json: PARAMETERS } } },
    { toolSpec: { name: "get_time", inputSchema: { json: { type: "object", properties: {} } } } },
  ]);
  vi.restoreAllMocks();
  const [nova] = (
    await config({ tools: [tool("f", { description: " ", parameters: PARAMETERS })] })
  ).tools;
  const { type, properties, required } = PARAMETERS;
  expect(nova?.toolSpec).toEqual({
    name: "f",
    inputSchema: { json: { type, properties, required } },
  });
});

it.each([
  [NOVA, "auto", { auto: {} }],
  [NOVA, "required", { any: {} }],
  [NOVA, NAMED, { tool: { name: "get_time" } }],
  [CLAUDE, "required", { any: {} }],
  [MISTRAL, "required", { any: {} }],
  [MISTRAL, NAMED, { any: {} }],
  [OPUS, "required", { auto: {} }],
  [QWEN, NAMED, { auto: {} }],
])(
  "the Bedrock adapter converts, for the model %s, the tool_choice %j to %j",
  async (model, choice, expected) => {
    expect((await config({ tool_choice: choice }, model)).toolChoice).toEqual(expected);
  },
);

it("the Bedrock adapter offers only the named tool if the model can't be forced to use that tool", async () => {
  const { tools } = await config({ tool_choice: NAMED }, MISTRAL);
  expect(tools.map(({ toolSpec }) => toolSpec["name"])).toEqual(["get_time"]);
});

it("the Bedrock adapter adds an instruction at the end if the model can't be forced to use a tool", async () => {
  const body = await sent({ tools: TOOLS, tool_choice: NAMED }, OPUS);
  expect(body["messages"]).toEqual([
    {
      role: "user",
      content: [{ text: "Hi" }, { text: "<system>Answer by calling the tool get_time.</system>" }],
    },
  ]);
});

it("the Bedrock adapter limits Claude to one tool call with Claude's own tool_choice, not Converse's", async () => {
  const body = { tools: TOOLS, tool_choice: NAMED, parallel_tool_calls: false };
  const request = await sent(body, CLAUDE);
  expect(request["toolConfig"]).not.toHaveProperty("toolChoice");
  expect(request["additionalModelRequestFields"]).toMatchObject({
    tool_choice: { type: "tool", name: "get_time", disable_parallel_tool_use: true },
  });
});

it("the Bedrock adapter sends Claude 4.5 and 4.6 a response schema in addition to tools and thinking", async () => {
  const body = { tools: TOOLS, response_format: FORMAT, reasoning_effort: "high" };
  const sonnet = "eu.anthropic.claude-sonnet-4-6";
  expect(await sent(body, sonnet)).toMatchObject({
    toolConfig: { tools: [{}, {}], toolChoice: { auto: {} } },
    additionalModelRequestFields: {
      thinking: { type: "adaptive" },
      output_config: {
        effort: "high",
        format: { type: "json_schema", schema: { ...SCHEMA, additionalProperties: false } },
      },
    },
  });
  expect(await additional({ response_format: FORMAT }, HAIKU)).toMatchObject({
    output_config: { format: { type: "json_schema" } },
  });
});

it("the Bedrock adapter omits the thinking budget if an earlier tool call lacks its thinking", async () => {
  const call = { id: "a", type: "function", function: { name: "get_time", arguments: "{}" } };
  const loop = (more: object) => [
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, tool_calls: [call], ...more },
    { role: "tool", tool_call_id: "a", content: "12:00" },
  ];
  const body = { tools: TOOLS, reasoning_effort: "high", response_format: { type: "json_object" } };
  const detail = { type: "anthropic.thinking", thinking: "Hm.", signature: "sig" };
  const fields = async (more: object) =>
    (await sent({ ...body, messages: loop(more) }, HAIKU, 4096))["additionalModelRequestFields"];
  expect(await fields({})).toBeUndefined();
  expect(await fields({ reasoning_details: [detail] })).toMatchObject({
    thinking: { type: "enabled", budget_tokens: 2457 },
  });
});

it("the Bedrock adapter forces a named tool even if response_format is set", async () => {
  const { tools, toolChoice } = await config({ tool_choice: NAMED, response_format: FORMAT });
  expect(tools).toHaveLength(2);
  expect(toolChoice).toEqual({ tool: { name: "get_time" } });
});

it("the Bedrock adapter adds the schema tool to the client's tools under a unique name", async () => {
  const { tools, toolChoice } = await config({ tools: [tool("json")], response_format: FORMAT });
  expect(tools.map(({ toolSpec }) => toolSpec["name"])).toEqual(["json", "json_"]);
  expect(toolChoice).toEqual({ any: {} });
});

it.each([
  [QWEN, FORMAT, /JSON schema, and nothing else: \{"type":"object"/],
  [OPUS, FORMAT, /JSON schema/],
  [NOVA, { type: "json_object" }, /one JSON object/],
])("the Bedrock adapter instructs %s to answer as %j", async (model, format, words) => {
  const body = await sent({ response_format: format }, model);
  expect(body["toolConfig"]).toBeUndefined();
  expect(JSON.stringify(body["messages"]).replaceAll("\\", "")).toMatch(words);
});

it.each([
  [NOVA_2, "low", { reasoningConfig: { type: "enabled", maxReasoningEffort: "low" } }],
  [NOVA_2, "max", { reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" } }],
  [NOVA_2, "none", undefined],
  [NOVA, "high", undefined],
  [OSS, "xhigh", { reasoning_effort: "high" }],
  [GPT, "high", { reasoning: { effort: "high" } }],
  [QWEN, "high", undefined],
  [
    CLAUDE,
    "low",
    { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "low" } },
  ],
])(
  "the Bedrock adapter converts, for the model %s, the effort %s to %j",
  async (model, effort, expected) => {
    expect(await additional({ reasoning_effort: effort }, model)).toEqual(expected);
  },
);

it("the Bedrock adapter sends temperature or top_p only to older Claude models, and sends GPT no stop sequences", async () => {
  const body = { temperature: 0.5, top_p: 0.5, reasoning_effort: "low" };
  expect(await inference(body, HAIKU)).toEqual({ maxTokens: 256, temperature: 0.5 });
  expect(await inference(body, CLAUDE)).toEqual({ maxTokens: 256 });
  expect(await inference({ top_p: 0.5 }, HAIKU)).toEqual({ maxTokens: 256, topP: 0.5 });
  expect(await inference({ ...body, stop: "x" }, GPT)).toEqual({ maxTokens: 256 });
});

it("the Bedrock adapter returns Claude's thinking unchanged to Claude, but to no other model", async () => {
  const detail = { type: "anthropic.thinking", thinking: "Hm.", signature: "sig" };
  const other = { type: "google.thought", signature: "x" };
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yes", reasoning_details: [detail, other] },
    { role: "user", content: "Go on" },
  ];
  const back = { reasoningContent: { reasoningText: { text: "Hm.", signature: "sig" } } };
  const contentOf = async (model: string) =>
    ((await sent({ messages }, model))["messages"] as JsonObject[])[1]?.["content"];
  expect(await contentOf(CLAUDE)).toEqual([back, { text: "Yes" }]);
  const lost = { role: "assistant", content: null, reasoning_details: [detail] };
  expect(await sent({ messages: [...messages, lost] }, CLAUDE)).toMatchObject({
    messages: [{ role: "user" }, { role: "assistant" }, { role: "user" }],
  });
  expect(await contentOf(NOVA)).toEqual([{ text: "Yes" }]);
  expect(await contentOf(OPUS)).toEqual([{ text: "Yes" }]); // belongs to the preceding messages
});
