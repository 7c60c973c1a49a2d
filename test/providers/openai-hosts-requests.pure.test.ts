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

const tool = {
  type: "function",
  function: { name: "f", description: "d", parameters: { type: "object" } },
};
const MESSAGES = [
  { role: "developer", content: "Be kind.", name: "dev" },
  { role: "user", content: [{ type: "text", text: "Hi" }], name: "ann" },
  { role: "assistant", content: null, refusal: "No." },
];
/** Every field that a client can send free of charge. */
const FULL = {
  messages: MESSAGES,
  temperature: 0.5,
  top_p: 0.9,
  top_k: 5,
  min_p: 0.1,
  repetition_penalty: 1.1,
  n: 1,
  stop: ["x"],
  seed: 7,
  frequency_penalty: 0.1,
  presence_penalty: 0.2,
  logit_bias: { "5": 1 },
  logprobs: true,
  top_logprobs: 2,
  response_format: { type: "json_object" },
  tools: [tool],
  tool_choice: "required",
  parallel_tool_calls: false,
  reasoning_effort: "minimal",
  verbosity: "low",
  service_tier: "auto",
  prompt_cache_key: "k",
  safety_identifier: "s",
  user: "customer",
  metadata: { a: "b" },
  store: false,
  stream_options: { include_usage: false },
  safe_prompt: true,
  thinking: { type: "enabled" },
  context_length_exceeded_behavior: "truncate",
};
const PLAIN = [
  { role: "system", content: "Be kind." },
  { role: "user", content: "Hi" },
  { role: "assistant", content: "No." },
];
const NAMED = [
  { role: "system", content: "Be kind.", name: "dev" },
  { role: "user", content: "Hi", name: "ann" },
  { role: "assistant", content: "No." },
];
const CORE = {
  temperature: 0.5,
  top_p: 0.9,
  stop: ["x"],
  response_format: { type: "json_object" },
  tools: [tool],
  tool_choice: "required",
};
const PENALTIES = { frequency_penalty: 0.1, presence_penalty: 0.2 };
const LOGPROBS = { logprobs: true, top_logprobs: 2 };
const SAMPLERS = { top_k: 5, min_p: 0.1, repetition_penalty: 1.1 };
const STREAM = { stream: true, stream_options: { include_usage: true } };
const USUAL = { ...CORE, ...PENALTIES, ...LOGPROBS, seed: 7, parallel_tool_calls: false };

it.each([
  [
    "mistral",
    "mistral-small-2603",
    {
      ...CORE,
      ...PENALTIES,
      messages: PLAIN,
      n: 1,
      random_seed: 7,
      tool_choice: "any",
      parallel_tool_calls: false,
      prompt_cache_key: "k",
      reasoning_effort: "none",
      max_tokens: 256,
      stream: true,
    },
  ],
  [
    "groq",
    "openai/gpt-oss-120b",
    {
      ...CORE,
      ...PENALTIES,
      ...STREAM,
      messages: PLAIN,
      seed: 7,
      parallel_tool_calls: false,
      reasoning_effort: "low",
      max_tokens: 256,
    },
  ],
  [
    "deepseek",
    "deepseek-v4-flash",
    {
      ...CORE,
      ...PENALTIES,
      ...LOGPROBS,
      ...STREAM,
      messages: [
        ...NAMED.slice(0, 2),
        { role: "assistant", content: "No.", reasoning_content: "" },
      ],
      reasoning_effort: "low",
      max_tokens: 256,
    },
  ],
  [
    "together",
    "moonshotai/Kimi-K2.6",
    {
      ...USUAL,
      ...SAMPLERS,
      ...STREAM,
      messages: NAMED,
      n: 1,
      logit_bias: { "5": 1 },
      reasoning_effort: "low",
      max_tokens: 256,
    },
  ],
  [
    "fireworks",
    "accounts/fireworks/models/kimi-k3",
    {
      ...USUAL,
      ...SAMPLERS,
      ...STREAM,
      messages: NAMED,
      n: 1,
      logit_bias: { "5": 1 },
      prompt_cache_key: "k",
      reasoning_effort: "low",
      max_tokens: 256,
      context_length_exceeded_behavior: "error",
    },
  ],
  [
    "xai",
    "grok-3",
    {
      ...USUAL,
      ...STREAM,
      messages: NAMED,
      n: 1,
      prompt_cache_key: "k",
      reasoning_effort: "low",
      max_completion_tokens: 256,
    },
  ],
  [
    "cerebras",
    "gpt-oss-120b",
    {
      ...CORE,
      ...LOGPROBS,
      ...STREAM,
      messages: PLAIN,
      seed: 7,
      reasoning_effort: "low",
      max_completion_tokens: 256,
    },
  ],
  [
    "openrouter",
    "x/y",
    {
      ...USUAL,
      ...SAMPLERS,
      ...STREAM,
      messages: NAMED,
      logit_bias: { "5": 1 },
      verbosity: "low",
      reasoning_effort: "minimal",
      max_tokens: 256,
    },
  ],
])(
  "the OpenAI-compatible adapter sends %s exactly the supported fields",
  (profile, model, want) => {
    expect(sent(profile, model, FULL, true)).toEqual({ model, ...want });
  },
);
