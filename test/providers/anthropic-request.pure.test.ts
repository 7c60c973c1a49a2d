import { describe, expect, it } from "vitest";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import { toMessagesApiRequest } from "../../src/models/protocols/messages/host-request.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { ANTHROPIC_CHAT } from "../fixtures/anthropic-replies.ts";
import { answerTo, callOf } from "./adapter-kit.ts";

const HAIKU = "claude-haiku-4-5-20251001";
const PROVIDER = createAnthropicProvider({
  baseUrl: "https://upstream.test/v1//",
  secret: "sk-x",
  geo: null,
});
const OLD = "claude-sonnet-4-20250514";

/** Returns the request's body for these chat fields, or the failure. */
function sent(body: JsonObject, upstreamId = HAIKU, more: object = {}): JsonObject {
  const request = toMessagesApiRequest(callOf({ upstreamId, body, ...more }), null);
  return "body" in request ? request.body : request;
}
const HI = [{ role: "user", content: [{ type: "text", text: "Hi" }] }];
const PLAIN = { model: HAIKU, max_tokens: 256, messages: HI, service_tier: "standard_only" };
const WEATHER = { name: "get_weather", description: "Now", parameters: { type: "object", a: 1 } };
const TOOLS = [
  { type: "function", function: WEATHER },
  { type: "function", function: { name: "get_time" } },
];
const SENT_TOOLS = [
  { name: "get_weather", description: "Now", input_schema: { type: "object", a: 1 } },
  { name: "get_time", input_schema: { type: "object", properties: {} } },
];
const SCHEMA = { type: "object", properties: { n: { type: "integer", minimum: 1 } } };
const CLEAN = {
  type: "object",
  properties: { n: { type: "integer" } },
  additionalProperties: false,
};
const FORMAT = { type: "json_schema", json_schema: { name: "x", strict: true, schema: SCHEMA } };

it("the Anthropic adapter sends the headers of Anthropic's clients, with the key only in x-api-key", async () => {
  const { requests } = await answerTo(PROVIDER, { upstreamId: HAIKU }, ANTHROPIC_CHAT.text.json);
  const [{ url, headers, json, text, init } = {} as never] = requests;
  expect(url).toBe("https://upstream.test/v1/messages");
  expect([init.method, init.redirect]).toEqual(["POST", "manual"]);
  expect(Object.fromEntries(headers)).toEqual({
    accept: "application/json",
    "content-type": "application/json",
    "user-agent": "turnpike",
    "anthropic-version": "2023-06-01",
    "x-api-key": "sk-x",
  });
  expect(json).toEqual(PLAIN);
  expect(text).not.toContain("sk-x");
});

it("the Anthropic adapter sends only allowed fields, and no end user, URL or field that costs extra", () => {
  const body = {
    model: "cheap",
    user: "customer-7",
    safety_identifier: "customer-7",
    metadata: { user_id: "customer-7" },
    max_tokens: 9999,
    max_completion_tokens: 9999,
    service_tier: "auto",
    seed: 1,
    logprobs: true,
    logit_bias: { 1: 1 },
    frequency_penalty: 1,
    presence_penalty: 1,
    verbosity: "low",
    store: false,
    inference_geo: "us",
    thinking: { type: "enabled" },
    system: "x",
    top_k: 3,
    cache_control: { type: "ephemeral", ttl: "1h" },
    n: 1,
  };
  expect(sent(body)).toEqual(PLAIN);
});

it.each<[string, JsonObject, JsonObject]>([
  ["stop as text", { stop: "END" }, { stop_sequences: ["END"] }],
  ["stop without white space", { stop: [" ", "\n", "", "a "] }, { stop_sequences: ["a "] }],
  ["stop of white space only", { stop: ["\n\n"] }, {}],
  ["temperature", { temperature: 0.3 }, { temperature: 0.3 }],
  ["temperature above 1", { temperature: 1.7 }, { temperature: 1 }],
  ["top_p", { top_p: 0.5 }, { top_p: 0.5 }],
  ["temperature before top_p", { temperature: 0, top_p: 0.5 }, { temperature: 0 }],
  ["prompt_cache_key", { prompt_cache_key: "a" }, { cache_control: { type: "ephemeral" } }],
  [
    "a long cache becomes 5 minutes",
    { prompt_cache_retention: "24h" },
    { cache_control: { type: "ephemeral" } },
  ],
  ["prompt_cache_options", { prompt_cache_options: {} }, { cache_control: { type: "ephemeral" } }],
  [
    "an effort becomes a thinking budget, which removes sampling",
    { reasoning_effort: "low", temperature: 0.1, top_p: 0.1 },
    { max_tokens: 20_480, thinking: { type: "enabled", budget_tokens: 2048 } },
  ],
  ["tools", { tools: TOOLS }, { tools: SENT_TOOLS }],
  ["tool_choice auto", { tools: TOOLS, tool_choice: "auto" }, { tools: SENT_TOOLS }],
  ["tool_choice none", ...chosen("none", { type: "none" })],
  ["tool_choice required", ...chosen("required", { type: "any" })],
  ["a named tool", ...chosen(named("get_time"), { type: "tool", name: "get_time" })],
  ["one call per response", ...single(undefined, { type: "auto" })],
  ["one call, required", ...single("required", { type: "any" })],
  ["one call, named", ...single(named("get_time"), { type: "tool", name: "get_time" })],
  ["a choice without tools", { tool_choice: "required", parallel_tool_calls: false }, {}],
  [
    "allowed_tools",
    { tools: TOOLS, tool_choice: allowed("required", "get_time") },
    { tools: SENT_TOOLS.slice(1), tool_choice: { type: "any" } },
  ],
  [
    "json_object",
    { response_format: { type: "json_object" } },
    { system: [{ type: "text", text: expect.stringContaining("one JSON object") }] },
  ],
  ["response_format text", { response_format: { type: "text" } }, {}],
  [
    "json_schema",
    { response_format: FORMAT },
    { output_config: { format: { type: "json_schema", schema: CLEAN } } },
  ],
])("the Anthropic adapter converts a request's fields: %s", (_, body, fields) => {
  const more = fields["max_tokens"] === undefined ? {} : { cap: fields["max_tokens"] };
  expect(sent(body, HAIKU, more)).toEqual({ ...PLAIN, ...fields });
});

function chosen(choice: unknown, field: JsonObject): [JsonObject, JsonObject] {
  return [
    { tools: TOOLS, tool_choice: choice },
    { tools: SENT_TOOLS, tool_choice: field },
  ];
}
function single(choice: unknown, field: JsonObject): [JsonObject, JsonObject] {
  const [body, fields] = chosen(choice, { ...field, disable_parallel_tool_use: true });
  return [{ ...body, parallel_tool_calls: false }, fields];
}
function named(name: string) {
  return { type: "function", function: { name } };
}
function allowed(mode: string, name: string) {
  return { type: "allowed_tools", allowed_tools: { mode, tools: [named(name)] } };
}

function geo(upstreamId: string, where: "us" | null): string {
  return JSON.stringify(toMessagesApiRequest(callOf({ upstreamId }), where));
}

describe("a request to Anthropic", () => {
  it("contains strict tools only for models that support schemas, and at most 20 of them", () => {
    const strict = (index: number) => ({
      type: "function",
      function: { name: `t${index}`, parameters: SCHEMA, strict: true },
    });
    const sentStrict = { name: "t0", input_schema: CLEAN, strict: true };
    expect(sent({ tools: [strict(0)] })["tools"]).toEqual([sentStrict]);
    expect(sent({ tools: [strict(0)] }, OLD)["tools"]).toEqual([
      { name: "t0", input_schema: SCHEMA },
    ]);
    const many = Array.from({ length: 21 }, (_, index) => strict(index));
    expect(JSON.stringify(sent({ tools: many }))).not.toContain("strict");
  });

  it("forces a tool whose input is the response schema if the model doesn't support schemas", () => {
    const json = { name: "json", input_schema: SCHEMA };
    const one = { disable_parallel_tool_use: true };
    expect(sent({ response_format: FORMAT }, OLD)).toEqual({
      ...PLAIN,
      model: OLD,
      tools: [json],
      tool_choice: { type: "tool", name: "json", ...one },
    });
    expect(sent({ response_format: FORMAT, tools: TOOLS }, OLD)).toMatchObject({
      tools: [...SENT_TOOLS, json],
      tool_choice: { type: "any", ...one },
    });
    const none = sent({ response_format: FORMAT, tools: TOOLS, tool_choice: "none" }, OLD);
    expect(none).toMatchObject({ tools: [json], tool_choice: { type: "tool", name: "json" } });
    const other = { response_format: FORMAT, tools: TOOLS, tool_choice: named("get_time") };
    expect(sent(other, OLD)).toMatchObject({
      tools: SENT_TOOLS,
      tool_choice: { type: "tool", name: "get_time" },
    });
    const thinking = { response_format: FORMAT, reasoning_effort: "high" };
    expect(sent(thinking, OLD, { cap: 9999 })["thinking"]).toBeUndefined();
    const clientTools = [{ type: "function", function: { name: "json" } }];
    expect(sent({ response_format: FORMAT, tools: clientTools }, OLD)).toMatchObject({
      tools: [{ name: "json" }, { name: "json_", input_schema: SCHEMA }],
    });
  });

  it("forces a tool and disables thinking, or adds an instruction if the model can't be forced", () => {
    const body = { tools: TOOLS, tool_choice: named("get_time"), reasoning_effort: "high" };
    expect(sent(body, "claude-sonnet-5")).toMatchObject({
      tool_choice: { type: "tool", name: "get_time" },
      thinking: { type: "disabled" },
    });
    const request = sent(body, "claude-opus-5-5");
    expect(request["tool_choice"]).toBeUndefined();
    expect(request["thinking"]).toMatchObject({ type: "adaptive" });
    expect(JSON.stringify(request["messages"])).toMatch(/Hi.*<system>.*get_time.*<\/system>/);
  });

  it("contains inference_geo for the US only if the model supports the field", () => {
    expect(geo("claude-sonnet-5", "us")).toContain('"inference_geo":"us"');
    expect(geo(HAIKU, "us")).not.toContain("inference_geo");
    expect(geo("claude-sonnet-5", null)).not.toContain("inference_geo");
  });
});

it.each<[string, JsonObject, string]>([
  ["several choices", { n: 2 }, "n"],
  ["legacy functions", { functions: [{ name: "f" }] }, "functions"],
  ["custom tools", { tools: [{ type: "custom", custom: { name: "c" } }] }, "tools[0]"],
])("the Anthropic adapter rejects %s before sending", (_, body, param) => {
  expect(sent(body)).toMatchObject({ kind: "refused", param });
});
