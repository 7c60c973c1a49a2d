import { expect, it } from "vitest";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import { toOpenAiChatRequest } from "../../src/models/protocols/chat/request.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { callOf } from "./adapter-kit.ts";

function sent(profile: string, upstreamId: string, body: JsonObject, stream = false): JsonObject {
  const found = PROVIDER_HOST_PROFILES.get(profile);
  if (found === undefined) throw new Error(`no profile ${profile}`);
  const request = toOpenAiChatRequest(callOf({ upstreamId, stream, body }), found);
  return "body" in request ? request.body : { failure: request };
}

it.each([
  ["gpt-5.4", {}, {}],
  ["o4-mini", {}, {}],
  [
    "gpt-5.4",
    { reasoning_effort: "none" },
    {
      temperature: 0.5,
      top_p: 0.9,
      frequency_penalty: 0.1,
      logit_bias: { "5": 1 },
      logprobs: true,
      reasoning_effort: "none",
    },
  ],
  [
    "gpt-4o",
    {},
    {
      temperature: 0.5,
      top_p: 0.9,
      frequency_penalty: 0.1,
      logit_bias: { "5": 1 },
      logprobs: true,
    },
  ],
  [
    "gpt-5-chat-latest",
    {},
    {
      temperature: 0.5,
      top_p: 0.9,
      frequency_penalty: 0.1,
      logit_bias: { "5": 1 },
      logprobs: true,
    },
  ],
])("OpenAI's %s gets, for %j, the sampling parameters %j", (model, more, want) => {
  const body = {
    temperature: 0.5,
    top_p: 0.9,
    frequency_penalty: 0.1,
    logit_bias: { "5": 1 },
    logprobs: true,
    ...more,
  };
  for (const profile of ["openai", "azure"]) {
    const { messages: _messages, ...rest } = sent(profile, model, body);
    const tier = profile === "openai" ? { service_tier: "default" } : {};
    expect(rest).toEqual({ model, max_completion_tokens: 256, ...tier, ...want });
  }
});

const stops = (profile: string, model: string) => "stop" in sent(profile, model, { stop: "x" });

it("stop sequences are sent only to models that accept them", () => {
  expect(["o3", "o3-pro", "o4-mini"].map((model) => stops("openai", model))).toEqual([
    false,
    false,
    false,
  ]);
  expect(["o1", "gpt-4o", "gpt-5.4"].map((model) => stops("openai", model))).toEqual([
    true,
    true,
    true,
  ]);
  const grok = [
    "grok-4.6",
    "grok-4.3",
    "grok-3-mini",
    "grok-code-fast-1",
    "grok-4-fast-non-reasoning",
    "grok-3",
  ];
  expect(grok.map((model) => stops("xai", model))).toEqual([
    false,
    false,
    false,
    false,
    true,
    true,
  ]);
});

it.each([
  ["mistral", "mistral-medium-3-5", ["none", "none", "high", "high", "high", "high", "high"]],
  ["mistral", "mistral-large-2512", Array(7)],
  ["groq", "openai/gpt-oss-120b", ["low", "low", "low", "medium", "high", "high", "high"]],
  ["groq", "qwen/qwen3.6-27b", ["none", ...Array<string>(6).fill("default")]],
  ["groq", "llama-3.3-70b-versatile", Array(7)],
  ["deepseek", "deepseek-v4-pro", [undefined, "low", "low", "high", "high", "high", "max"]],
  ["together", "openai/gpt-oss-120b", ["low", "low", "low", "medium", "high", "high", "high"]],
  ["together", "zai-org/GLM-5.2", [undefined, "low", "low", "medium", "high", "high", "high"]],
  ["together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", Array(7)],
  [
    "fireworks",
    "accounts/fireworks/models/kimi-k3",
    ["none", "low", "low", "medium", "high", "high", "high"],
  ],
  ["xai", "grok-4.6", ["none", "low", "low", "medium", "high", "xhigh", "xhigh"]],
  ["xai", "grok-4.3", ["none", "low", "low", "medium", "high", "high", "high"]],
  ["xai", "grok-4.20-0309-reasoning", Array(7)],
  ["cerebras", "zai-glm-4.7", ["none", "low", "low", "medium", "high", "high", "high"]],
  ["cerebras", "llama-3.3-70b", Array(7)],
  ["openrouter", "x/y", ["none", "minimal", "low", "medium", "high", "xhigh", "xhigh"]],
  ["ollama", "llama3.3", ["none", "low", "low", "medium", "high", "high", "high"]],
  ["generic", "any", ["none", "minimal", "low", "medium", "high", "xhigh", "max"]],
  ["openai", "gpt-6.1-sol", ["none", "low", "low", "medium", "high", "xhigh", "max"]],
])(
  "the efforts of %s %s for none, minimal, low, medium, high, xhigh and max are %j",
  (profile, model, want) => {
    const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    const sentEfforts = efforts.map(
      (reasoning_effort) => sent(profile, model, { reasoning_effort })["reasoning_effort"],
    );
    expect(sentEfforts).toEqual([...(want as unknown[])]);
  },
);

it("thinking that a provider enables by default is disabled in that provider's way", () => {
  const none = { reasoning_effort: "none" };
  expect(sent("deepseek", "deepseek-v4-pro", none)["thinking"]).toEqual({ type: "disabled" });
  expect(sent("together", "zai-org/GLM-5.2", none)["reasoning"]).toEqual({ enabled: false });
});

it("a request for more choices than the provider supports is rejected", () => {
  const failure = { kind: "refused", param: "n" };
  for (const profile of ["groq", "deepseek", "cerebras", "openrouter"]) {
    expect(sent(profile, "m", { n: 2 })).toMatchObject({ failure });
    expect(sent(profile, "m", { n: 1 })).not.toHaveProperty("n");
  }
  for (const profile of ["openai", "mistral", "xai", "together", "fireworks", "vllm"]) {
    expect(sent(profile, "m", { n: 2 })["n"]).toBe(2);
  }
});

const TOOLS = [{ type: "function", function: { name: "f" } }];

it.each([
  ["gpt-5.6-sol", { tools: TOOLS }, "none"],
  ["gpt-6-luna", { tools: TOOLS }, "none"],
  ["gpt-6.1-sol", { tools: TOOLS, reasoning_effort: "high" }, "high"], // its 400 states the remedy
  ["gpt-5.6-sol", {}, undefined],
  ["gpt-5.4", { tools: TOOLS }, undefined],
  ["gpt-4o", { tools: TOOLS }, undefined],
  ["gpt-5.6-sol", { reasoning_effort: "minimal" }, "low"],
  ["gpt-5.4", { reasoning_effort: "minimal" }, "low"],
  ["gpt-5-mini", { reasoning_effort: "minimal" }, "minimal"],
])("OpenAI's %s gets, for %j, the effort %s", (model, body, effort) => {
  for (const profile of ["openai", "azure"]) {
    expect(sent(profile, model, body)["reasoning_effort"]).toBe(effort);
  }
});
