import { describe, expect, it } from "vitest";
import { toMessagesApiRequest } from "../../src/models/protocols/messages/host-request.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { callOf } from "./adapter-kit.ts";

const HAIKU = "claude-haiku-4-5";

/** Returns `system` and `messages` of the request for these messages, or the failure. */
function sent(messages: readonly JsonObject[], more: JsonObject = {}, upstreamId = HAIKU) {
  const body = { messages, ...more };
  const request = toMessagesApiRequest(callOf({ upstreamId, cap: 8192, body }), null);
  if (!("body" in request)) return request as JsonObject;
  const { system, messages: sentMessages, thinking, tools, tool_choice: choice } = request.body;
  return JSON.parse(
    JSON.stringify({ system, messages: sentMessages, thinking, tools, choice, beta: request.beta }),
  ) as JsonObject;
}
function user(...texts: readonly string[]) {
  return { role: "user", content: texts.map(text) };
}
function assistant(...content: readonly object[]) {
  return { role: "assistant", content };
}
function text(words: string) {
  return { type: "text", text: words };
}
function call(id: string, name = "f", more: object = {}) {
  return { id, type: "function", function: { name, arguments: '{"a":1}' }, ...more };
}
const PNG = "data:image/png;base64,iVBORw0KGgo=";

it.each<[string, readonly JsonObject[], JsonObject]>([
  [
    "the first instructions become system blocks, and later instructions keep their place",
    [
      { role: "system", content: "One" },
      { role: "developer", content: [text("Two"), text("Three")] },
      { role: "user", content: "Hi" },
      { role: "system", content: "Four" },
    ],
    { system: [text("One"), text("Two\nThree")], messages: [user("Hi", "<system>Four</system>")] },
  ],
  [
    "instructions without other messages become the user's message",
    [{ role: "system", content: "Say hello" }],
    { messages: [user("Say hello")] },
  ],
  [
    "an empty conversation becomes a greeting",
    [
      { role: "system", content: " " },
      { role: "user", content: "\n" },
    ],
    { messages: [user("Hello.")] },
  ],
  [
    "adjacent messages of one role become one message without empty texts",
    [
      { role: "user", content: "a" },
      { role: "user", content: [text(" \n"), text("b")] },
      { role: "assistant", content: "" },
      { role: "user", content: "c" },
    ],
    { messages: [user("a", "b", "c")] },
  ],
  [
    "an image becomes inline data or a URL",
    [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: PNG } },
          { type: "image_url", image_url: { url: "data:image/jpg;base64,/9j/" } },
          { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
        ],
      },
    ],
    {
      messages: [
        {
          role: "user",
          content: [
            image({ type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" }),
            image({ type: "base64", media_type: "image/jpeg", data: "/9j/" }),
            image({ type: "url", url: "https://example.com/a.png" }),
          ],
        },
      ],
    },
  ],
  [
    "tool results of one turn become one message, before the user's text",
    [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Wait", tool_calls: [call("t1"), call("t2", "g")] },
      { role: "tool", tool_call_id: "t1", content: "one" },
      { role: "tool", tool_call_id: "t2", content: "" },
      { role: "user", content: "And?" },
    ],
    {
      messages: [
        user("Hi"),
        assistant(text("Wait"), use("t1", "f"), use("t2", "g")),
        { role: "user", content: [result("t1", "one"), result("t2"), text("And?")] },
      ],
      tools: [
        { name: "f", input_schema: { type: "object", properties: {} } },
        { name: "g", input_schema: { type: "object", properties: {} } },
      ],
      choice: { type: "none" },
    },
  ],
  [
    "a greeting precedes a first assistant message, and a continuation follows a last assistant message",
    [{ role: "assistant", content: "Welcome \n" }],
    { messages: [user("Hello."), assistant(text("Welcome"))] },
  ],
  [
    "a refusal becomes the assistant's text",
    [
      { role: "user", content: "Hi" },
      { role: "assistant", content: null, refusal: "No." },
      { role: "user", content: "Why?" },
    ],
    { messages: [user("Hi"), assistant(text("No.")), user("Why?")] },
  ],
])("the Anthropic adapter converts conversations: %s", (_, messages, expected) => {
  expect(sent(messages)).toEqual({ beta: null, ...expected });
});

function image(source: object) {
  return { type: "image", source };
}
function use(id: string, name = "f") {
  return { type: "tool_use", id, name, input: { a: 1 } };
}
function result(id: string, content?: string) {
  return { type: "tool_result", tool_use_id: id, ...(content !== undefined && { content }) };
}

it.each(["data:image/tiff;base64,AA==", "data:,x", "file://h/a.png", "ftp://h/a.png"])(
  "the Anthropic adapter rejects the image %s before sending",
  (url) => {
    const content = [text("See:"), { type: "image_url", image_url: { url } }];
    expect(sent([user("Hi"), { role: "user", content }])).toMatchObject({
      kind: "refused",
      param: "messages[1].content[1].image_url",
      code: "invalid_value",
    });
  },
);

it.each<[string, string, object?]>([
  ["Mistral", "Xk2n9AbC1"],
  ["OpenAI", "call_9XyZabcdefghijklmnopqrst"],
  ["Gemini", "call_g", { extra_content: { google: { thought_signature: "c2ln" } } }],
  ["an ID with characters that Anthropic rejects", "functions.f:0/ä"],
  ["a long ID of Bedrock", "tooluse_".padEnd(90, "x")],
])(
  "the Anthropic adapter gives another provider's tool call and its result the same valid ID (%s)",
  (_, id, more = {}) => {
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: null, tool_calls: [call(id, "f", more), call(`${id}2`)] },
      { role: "tool", tool_call_id: `${id}2`, content: "two" },
      { role: "tool", tool_call_id: id, content: "one" },
    ];
    const { messages: sentMessages } = sent(messages);
    const [, { content: calls }, { content: results }] = sentMessages as [
      object,
      { content: { id: string }[] },
      { content: { tool_use_id: string }[] },
    ];
    const [first, second] = calls.map((one) => one.id);
    expect(results.map((one) => one.tool_use_id)).toEqual([second, first]);
    expect(first).not.toBe(second);
    for (const one of [first, second]) expect(one).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(sent(messages)["messages"]).toEqual(sentMessages);
  },
);

describe("a thinking block of an earlier Claude response", () => {
  const thinking = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
  const redacted = { type: "redacted_thinking", data: "ZGF0YQ" };
  const own = [
    { ...thinking, type: "anthropic.thinking" },
    { ...redacted, type: "anthropic.redacted_thinking" },
  ];
  const foreign = [
    { type: "reasoning.encrypted", data: "x" },
    { type: "anthropic.thinking", thinking: "No signature" },
    { type: "anthropic.redacted_thinking" },
  ];
  const question = { role: "user", content: "Hi" };
  const toolResult = { role: "tool", tool_call_id: "t1", content: "one" };
  const loop = (details: readonly object[]) => [
    question,
    { role: "assistant", content: null, tool_calls: [call("t1")], reasoning_details: details },
    toolResult,
  ];

  it("precedes its tool call in the next request, while other providers' blocks are dropped", () => {
    const expected = [user("Hi"), assistant(thinking, redacted, use("t1")), expect.anything()];
    for (const model of [HAIKU, "claude-sonnet-5", "claude-opus-5-5"]) {
      const request = sent(loop([...foreign, ...own]), { reasoning_effort: "high" }, model);
      expect(request["messages"], model).toEqual(expected);
    }
  });

  it("may be dropped by Anthropic without an error if the client changed the conversation", () => {
    const bound = sent(loop(own), {}, "claude-opus-5-5");
    expect(bound["thinking"]).toEqual({
      type: "adaptive",
      display: "summarized",
      block_binding: { prefix_mismatch_behavior: "drop_block" },
    });
    expect(bound["beta"]).toBe("thinking-binding-controls-2026-08-01");
    for (const request of [
      sent(loop([]), {}, "claude-opus-5-5"),
      sent(loop(own), {}, "claude-opus-5"),
    ]) {
      expect(JSON.stringify(request)).not.toContain("binding");
    }
  });

  it("disables thinking in the next request only if the block is missing before a tool result", () => {
    const effort = { reasoning_effort: "high" };
    expect(sent(loop(foreign), effort)["thinking"]).toBeUndefined();
    expect(sent(loop(own), effort)["thinking"]).toMatchObject({ type: "enabled" });
    expect(sent([...loop([]), question], effort)["thinking"]).toMatchObject({ type: "enabled" });
    expect(sent(loop([]), effort, "claude-sonnet-5")["thinking"]).toMatchObject({
      type: "adaptive",
    });
  });

  it("never becomes the last block of a message", () => {
    const lost = { role: "assistant", content: "", reasoning_details: own };
    const request = sent([question, lost, question], {}, "claude-sonnet-5");
    expect(request["messages"]).toEqual([user("Hi"), user("Hi")]);
  });
});
