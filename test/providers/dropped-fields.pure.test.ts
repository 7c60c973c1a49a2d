import { expect, it } from "vitest";
import { toMessagesApiRequest } from "../../src/models/protocols/messages/host-request.ts";
import { toConverseRequest } from "../../src/models/protocols/converse/converse-request.ts";
import { toCohereChatRequest as cohereRequest } from "../../src/models/protocols/cohere/request.ts";
import { toGeminiChatRequest as googleRequest } from "../../src/models/protocols/gemini/request.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import { toOpenAiChatRequest } from "../../src/models/protocols/chat/request.ts";
import type { HostProfile } from "../../src/models/protocols/chat/profile.ts";
import {
  toResponsesNativeBody,
  toResponsesApiRequest,
} from "../../src/models/protocols/responses/host-request.ts";
import type { JsonObject, ChatCall } from "../../src/models/core/provider.ts";
import { toWorkersAiChatInputs } from "../../src/models/protocols/workers-ai/request.ts";
import { callOf } from "./adapter-kit.ts";

type Build = (call: ChatCall) => unknown;

const compatible =
  (profile: HostProfile): Build =>
  (call) =>
    toOpenAiChatRequest(call, profile);
const HOSTS_MODELS = [
  "gpt-5.4",
  "gpt-4o",
  "o4-mini",
  "grok-4.6",
  "mistral-small",
  "gpt-oss-120b",
  "qwen3-32b",
];

/** Every protocol, with models that accept different fields. */
const PROTOCOLS: readonly (readonly [name: string, build: Build, models: readonly string[]])[] = [
  [
    "anthropic",
    (call) => toMessagesApiRequest(call, null),
    ["claude-opus-4-8", "claude-sonnet-4-5", "claude-3-haiku-20240307", "claude-sonnet-5"],
  ],
  [
    "bedrock",
    toConverseRequest,
    [
      "eu.anthropic.claude-sonnet-4-6",
      "eu.amazon.nova-2-lite-v1:0",
      "openai.gpt-oss-120b-1:0",
      "mistral.mistral-large-3",
    ],
  ],
  ["google", googleRequest, ["gemini-3.5-flash", "gemini-2.5-pro", "gemma-3-27b-it"]],
  ["cohere", cohereRequest, ["command-a-03-2025", "command-a-reasoning-08-2025"]],
  [
    "workers-ai",
    toWorkersAiChatInputs,
    ["@cf/zai-org/glm-5.3-flash", "@cf/openai/gpt-oss-120b", "@cf/meta/llama-3.1-8b-instruct"],
  ],
  ["responses", toResponsesApiRequest, ["gpt-6.1-sol"]],
  ...[...PROVIDER_HOST_PROFILES].map(
    ([name, profile]) => [name, compatible(profile), HOSTS_MODELS] as const,
  ),
];

const TOOLS = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

/** Fields with an effect, each with other required fields. */
const FIELDS: readonly (readonly [field: string, value: unknown, otherFields?: JsonObject])[] = [
  ["temperature", 0.37],
  ["top_p", 0.83],
  ["seed", 4711],
  ["stop", ["END"]],
  ["frequency_penalty", 0.21],
  ["presence_penalty", 0.22],
  ["logit_bias", { "50256": -100 }],
  ["logprobs", true],
  ["top_logprobs", 3, { logprobs: true }],
  ["parallel_tool_calls", false, { tools: TOOLS }],
  ["reasoning_effort", "high"],
  ["reasoning_effort", "low"],
  ["verbosity", "low"],
  ["prompt_cache_key", "a-key"],
  ["safety_identifier", "someone"],
  ["top_k", 40],
  ["metadata", { a: "b" }],
  ["a_field_nobody_knows", 1],
];

/** Returns the request as text, and the fields reported as dropped. */
async function built(build: Build, upstreamId: string, body: JsonObject) {
  const named: string[] = [];
  const onDropped = (fields: readonly string[]): unknown => named.push(...fields);
  const sent = await build({
    ...callOf({ upstreamId, cap: 20_000, body }),
    onDropped,
  });
  return { text: JSON.stringify(sent), named };
}

const CASES = PROTOCOLS.flatMap(([name, build, models]) =>
  models.map((model) => [name, model, build] as const),
);

it.each(CASES)(
  "each requested field is either sent or reported as dropped: %s, %s",
  async (_, model, build) => {
    for (const [field, value, otherFields = {}] of FIELDS) {
      const [plain, withField] = [
        await built(build, model, otherFields),
        await built(build, model, { ...otherFields, [field]: value }),
      ];
      // The request was rejected or not served, so the client gets an error.
      if (withField.text.includes('"kind":')) continue;
      const isSent = withField.text !== plain.text;
      const isNamed = withField.named.includes(field);
      expect([field, value, isSent, isNamed]).toEqual([field, value, isSent, !isSent]);
    }
  },
);

it.each([
  [
    "an empty value",
    {
      stop: "",
      frequency_penalty: 0,
      logit_bias: {},
      logprobs: false,
      top_logprobs: 0,
      parallel_tool_calls: true,
    },
  ],
  ["null", { seed: null, top_k: null, metadata: null }],
  [
    "the default",
    {
      n: 1,
      user: "u",
      store: false,
      service_tier: "auto",
      modalities: ["text"],
      stream: false,
      stream_options: {},
    },
  ],
])("a field without an effect isn't reported as dropped: %s", async (_, body) => {
  for (const [, build, models] of PROTOCOLS) {
    for (const model of models) expect((await built(build, model, body)).named).toEqual([]);
  }
});

it("temperature or top_p is reported as dropped if the gateway sends only one of them", async () => {
  const both = { temperature: 0.3, top_p: 0.9 };
  for (const [build, model] of [
    [(call: ChatCall) => toMessagesApiRequest(call, null), "claude-sonnet-4-5"],
    [toConverseRequest, "eu.anthropic.claude-sonnet-4-5"],
  ] as const) {
    expect((await built(build, model, both)).named).toEqual(["top_p"]);
  }
});

it("sampling parameters that the model rejects are reported as dropped for a Responses request", async () => {
  const body = {
    temperature: 0.3,
    top_logprobs: 2,
    include: ["message.output_text.logprobs"],
    input: "Hi",
  };
  const native = (call: ChatCall) =>
    toResponsesNativeBody({ ...call, native: { body, headers: {} } });
  expect((await built(native, "gpt-5.4", {})).named).toEqual([
    "temperature",
    "top_logprobs",
    "include",
  ]);
  expect((await built(native, "gpt-4o", {})).named).toEqual([]);
});
