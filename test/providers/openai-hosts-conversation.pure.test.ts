import { expect, it } from "vitest";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import { toOpenAiChatRequest } from "../../src/models/protocols/chat/request.ts";
import type { JsonObject, ProviderFailure } from "../../src/models/core/provider.ts";
import { callOf } from "./adapter-kit.ts";

type Sent = { readonly messages: readonly JsonObject[] } & JsonObject;

function request(profile: string, body: JsonObject, upstreamId = "m") {
  const found = PROVIDER_HOST_PROFILES.get(profile);
  if (found === undefined) throw new Error(`no profile ${profile}`);
  return toOpenAiChatRequest(callOf({ upstreamId, body }), found);
}

function sent(profile: string, body: JsonObject, upstreamId?: string): Sent {
  const result = request(profile, body, upstreamId);
  if (!("body" in result)) throw new Error(result.message);
  return result.body as Sent;
}

function refused(profile: string, body: JsonObject): ProviderFailure {
  const result = request(profile, body);
  if ("body" in result) throw new Error("not refused");
  return result;
}

const PLAIN = [...PROVIDER_HOST_PROFILES]
  .filter(([, { plainStyle: plain }]) => plain !== undefined)
  .map(([name]) => name);
const call = (id: string, name: string, args: string) => {
  return { id, type: "function", function: { name, arguments: args } };
};
const roles = (messages: readonly JsonObject[]) => messages.map((message) => message["role"]);
const thinking = (text: string) => ({ type: "thinking", thinking: [{ type: "text", text }] });

const DETAILS = [{ type: "reasoning.encrypted", data: "secret" }];

/** Conversations that began at three other providers, whose IDs Mistral would reject. */
const FOREIGN = [
  { role: "user", content: "Weather?" },
  {
    role: "assistant",
    content: null,
    reasoning_content: "Look it up.",
    reasoning_details: DETAILS,
    tool_calls: [
      { ...call("call_0abcdefghijklmnopqrstuvw", "f", '{"a":1}'), extra_content: { google: {} } },
      call("toolu_01A09q90qw90lq917835lq9", "g", ""),
      call("abcdefGH1", "h", "{}"),
    ],
  },
  { role: "tool", tool_call_id: "toolu_01A09q90qw90lq917835lq9", content: "B" },
  {
    role: "tool",
    tool_call_id: "call_0abcdefghijklmnopqrstuvw",
    content: [{ type: "text", text: "A" }],
  },
  { role: "tool", tool_call_id: "abcdefGH1", content: "C", name: "h" },
  { role: "user", content: "Stop." },
];

it("the OpenAI-compatible adapter adds an assistant message between tool result and user message for Mistral, and drops empty messages", () => {
  const { messages } = sent("mistral", {
    messages: [...FOREIGN, { role: "assistant", content: "" }],
  });
  expect(roles(messages)).toEqual([
    "user",
    "assistant",
    "tool",
    "tool",
    "tool",
    "assistant",
    "user",
  ]);
  expect(messages[5]).toEqual({ role: "assistant", content: "Done." });
  expect(roles(sent("groq", { messages: FOREIGN }).messages)).toEqual(
    FOREIGN.map(({ role }) => role),
  );
});

it("the OpenAI-compatible adapter sends non-empty arguments, textual results, and only fields that every model accepts", () => {
  for (const profile of PLAIN) {
    const { messages } = sent(profile, { messages: FOREIGN });
    const text = JSON.stringify(messages);
    expect(/reasoning_details|secret/.test(text)).toBe(profile === "openrouter");
    expect(text).not.toMatch(/extra_content|"name":"h","content|google/);
    const calls = messages[1]?.["tool_calls"] as { function: JsonObject }[];
    expect(calls.map((one) => one.function["arguments"])).toEqual(['{"a":1}', "{}", "{}"]);
    expect(messages.filter(({ role }) => role === "tool").map(({ content }) => content)).toEqual([
      "B",
      "A",
      "C",
    ]);
  }
});

it.each([
  ["deepseek", "deepseek-v4-pro", { reasoning_content: "Look it up." }],
  ["deepseek", "deepseek-reasoner", {}],
  ["fireworks", "accounts/fireworks/models/kimi-k3", { reasoning_content: "Look it up." }],
  ["groq", "openai/gpt-oss-120b", { reasoning: "Look it up." }],
  ["groq", "llama-3.3-70b-versatile", {}],
  ["cerebras", "gpt-oss-120b", { reasoning: "Look it up." }],
  ["openrouter", "x/y", { reasoning_details: DETAILS }],
  ["together", "zai-org/GLM-5.2", {}],
  ["xai", "grok-4.6", {}],
  ["mistral", "mistral-large-2512", {}],
  ["openai", "gpt-5.4", { content: null }],
  ["vllm", "any", { content: null, reasoning_content: "Look it up.", reasoning_details: DETAILS }],
  ["ollama", "any", { content: null, reasoning: "Look it up." }],
])(
  "the OpenAI-compatible adapter sends, to %s for the model %s, earlier reasoning as %j",
  (profile, model, want) => {
    const message = sent(profile, { messages: FOREIGN }, model).messages[1] ?? {};
    const { tool_calls: _calls, ...rest } = message;
    expect(rest).toEqual({ role: "assistant", content: "", ...want });
  },
);

it("the OpenAI-compatible adapter sends earlier reasoning to Mistral as a part of the content", () => {
  const thought = { role: "assistant", content: "So.", reasoning_content: "Hm." };
  const { messages } = sent("mistral", { messages: [...FOREIGN, thought] }, "mistral-small-2603");
  expect(messages[1]?.["content"]).toEqual([thinking("Look it up.")]);
  expect(messages.at(-1)?.["content"]).toEqual([thinking("Hm."), { type: "text", text: "So." }]);
});

it("the OpenAI-compatible adapter keeps images as content parts, and joins texts and refusals", () => {
  const image = {
    type: "image_url",
    image_url: { url: "data:image/png;base64,AA==", detail: null },
  };
  const messages = [
    { role: "user", content: [{ type: "text", text: "a" }, image] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "b" },
        { type: "refusal", refusal: "c" },
      ],
    },
    {
      role: "system",
      content: [
        { type: "text", text: "d" },
        { type: "text", text: "e" },
      ],
    },
  ];
  for (const profile of PLAIN) {
    expect(sent(profile, { messages }).messages).toMatchObject([
      {
        content: [
          { type: "text", text: "a" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        ],
      },
      { content: "b\nc" },
      { content: "d\ne" },
    ]);
    expect(JSON.stringify(sent(profile, { messages }))).not.toContain("null");
  }
});

it("the OpenAI-compatible adapter resolves allowed_tools, keeps a named tool choice, and drops a tool choice that has no tools", () => {
  const tools = ["f", "g"].map((name) => ({ type: "function", function: { name, strict: true } }));
  const allowed = { mode: "required", tools: [{ type: "function", function: { name: "g" } }] };
  const choice = { type: "function", function: { name: "f" } };
  for (const profile of PLAIN) {
    const some = sent(profile, {
      tools,
      tool_choice: { type: "allowed_tools", allowed_tools: allowed },
    });
    expect(some["tools"]).toMatchObject([
      { type: "function", function: { name: "g", strict: true } },
    ]);
    expect(some["tool_choice"]).toBe(profile === "mistral" ? "any" : "required");
    expect(sent(profile, { tools, tool_choice: choice })["tool_choice"]).toEqual(choice);
    expect(sent(profile, { tools: [], tool_choice: "required" })).not.toHaveProperty("tool_choice");
    expect(sent(profile, { tools })).not.toHaveProperty("tool_choice");
  }
});

it("the OpenAI-compatible adapter rejects features that only OpenAI supports, with their field as param", () => {
  const custom = { type: "custom", custom: { name: "c" } };
  const assistant = { role: "assistant", content: null };
  const bodies: [JsonObject, string][] = [
    [{ functions: [{ name: "f" }] }, "functions"],
    [{ tools: [custom] }, "tools[0]"],
    [{ messages: [{ role: "function", name: "f", content: "x" }] }, "messages[0]"],
    [{ messages: [{ ...assistant, function_call: { name: "f", arguments: "" } }] }, "messages[0]"],
    [
      {
        messages: [
          {
            ...assistant,
            tool_calls: [{ id: "a", type: "custom", custom: { name: "c", input: "" } }],
          },
        ],
      },
      "messages[0].tool_calls[0]",
    ],
  ];
  for (const profile of PLAIN) {
    for (const [body, param] of bodies) {
      expect(refused(profile, body)).toMatchObject({ kind: "refused", param });
    }
  }
  expect(sent("openai", { tools: [custom] })["tools"]).toEqual([custom]);
});
