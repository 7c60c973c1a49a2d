import { expect, it } from "vitest";
import { toConversation, parseTools } from "../../src/models/core/conversation.ts";
import type { Conversation } from "../../src/models/core/conversation.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { chatOf } from "./adapter-kit.ts";

function conversation(...messages: JsonObject[]): Conversation {
  const read = toConversation(chatOf({ messages }));
  if ("kind" in read) throw new Error(JSON.stringify(read));
  return read;
}

const user = (content: unknown) => ({ role: "user", content });
const call = (id: string, args: string, more: JsonObject = {}) => ({
  id,
  type: "function",
  function: { name: `f_${id}`, arguments: args },
  ...more,
});

const textPart = (text: string) => ({ kind: "text", text });

it("the shared conversation reader separates leading instructions, but keeps later instructions in place", () => {
  const read = conversation(
    { role: "system", content: "one" },
    {
      role: "developer",
      content: [
        { type: "text", text: "two" },
        { type: "text", text: "three" },
      ],
    },
    user("hi"),
    { role: "system", content: "four" },
    { role: "assistant", content: "yes" },
  );
  expect(read).toEqual({
    system: ["one", "two\nthree"],
    turns: [
      { role: "user", parts: [textPart("hi"), textPart("<system>four</system>")] },
      { role: "assistant", parts: [textPart("yes")] },
    ],
  });
});

it("the shared conversation reader alternates user and assistant, and puts named tool results before user text", () => {
  const read = conversation(
    user("a"),
    user("b"),
    { role: "assistant", content: null, tool_calls: [call("1", '{"x":1}'), call("2", "")] },
    { role: "tool", tool_call_id: "2", content: "two" },
    user("and?"),
    { role: "tool", tool_call_id: "1", content: [{ type: "text", text: "one" }] },
    { role: "tool", tool_call_id: "unknown", content: "" },
  );
  expect(read.turns).toEqual([
    { role: "user", parts: [textPart("a"), textPart("b")] },
    {
      role: "assistant",
      parts: [
        { kind: "call", id: "1", name: "f_1", input: { x: 1 }, extra: null },
        { kind: "call", id: "2", name: "f_2", input: {}, extra: null },
      ],
    },
    {
      role: "user",
      parts: [
        { kind: "result", id: "2", name: "f_2", text: "two" },
        { kind: "result", id: "1", name: "f_1", text: "one" },
        { kind: "result", id: "unknown", name: "", text: "" },
        textPart("and?"),
      ],
    },
  ]);
});

it("the shared conversation reader reads images as bytes or URLs, skips empty texts, and puts reasoning before text", () => {
  const png = "data:image/PNG;base64,iVBORw0KGgo=";
  const detail = { type: "anthropic.thinking", thinking: "hm", signature: "s" };
  const extra = { google: { thought_signature: "t" } };
  const read = conversation(
    user([
      { type: "text", text: "" },
      { type: "image_url", image_url: { url: png } },
      { type: "image_url", image_url: { url: "https://example.com/a.png" } },
      { type: "image_url", image_url: { url: "data:image/png,notbase64" } },
    ]),
    {
      role: "assistant",
      content: "so",
      reasoning_details: [detail],
      tool_calls: [call("1", "{}", { extra_content: extra })],
    },
    user(""),
  );
  expect(read.turns).toEqual([
    {
      role: "user",
      parts: [
        {
          kind: "image",
          image: { mediaType: "image/png", base64: "iVBORw0KGgo=" },
          at: "messages[0].content[1].image_url",
        },
        {
          kind: "image",
          image: { url: "https://example.com/a.png" },
          at: "messages[0].content[2].image_url",
        },
        {
          kind: "image",
          image: { url: "data:image/png,notbase64" },
          at: "messages[0].content[3].image_url",
        },
      ],
    },
    {
      role: "assistant",
      parts: [
        { kind: "thought", detail },
        textPart("so"),
        { kind: "call", id: "1", name: "f_1", input: {}, extra },
      ],
    },
  ]);
});

it.each(["{oops", "[1]"])(
  "the shared conversation reader wraps the arguments %s in an object",
  (args) => {
    const messages = [user("a"), { role: "assistant", tool_calls: [call("1", args)] }];
    const { turns } = toConversation(chatOf({ messages })) as Conversation;
    expect(turns[1]?.parts).toMatchObject([{ kind: "call", input: { invalid_arguments: args } }]);
  },
);

it("the shared conversation reader rejects custom tools and legacy functions, with their fields as param", () => {
  const custom = { id: "1", type: "custom", custom: { name: "c", input: "x" } };
  const messages = [user("a"), { role: "assistant", tool_calls: [custom] }];
  expect(toConversation(chatOf({ messages }))).toMatchObject({
    kind: "refused",
    param: "messages[1].tool_calls[0]",
  });
  const legacy = [{ role: "function", name: "f", content: "1" }];
  expect(toConversation(chatOf({ messages: legacy }))).toMatchObject({
    kind: "refused",
    param: "messages",
  });
  expect(parseTools(chatOf({ functions: [] }))).toMatchObject({
    kind: "refused",
    param: "functions",
  });
  for (const tools of [TWO, [], undefined]) {
    const tool_choice = { type: "function", function: { name: "the model identifier" } };
    expect(parseTools(chatOf({ tools, tool_choice }))).toMatchObject({
      kind: "refused",
      param: "tool_choice",
      message: expect.not.stringContaining("identifier"),
    });
  }
  expect(parseTools(chatOf({ tools: [{ type: "custom", custom: { name: "c" } }] }))).toMatchObject({
    kind: "refused",
    param: "tools[0]",
  });
});

const tool = (name: string, more: JsonObject = {}) => ({
  type: "function",
  function: { name, ...more },
});

const TWO = [
  tool("a", { description: "A", parameters: { type: "object" }, strict: true }),
  tool("b"),
];

const among = (...names: string[]) => ({
  type: "allowed_tools",
  allowed_tools: { mode: "required", tools: names.map((name) => tool(name)) },
});

it("the shared conversation reader rejects an unsupported tool_choice", () => {
  const custom = { type: "custom", custom: { name: "a" } };
  for (const tool_choice of [custom, among("c"), among("a", "c"), among()]) {
    const refused = parseTools(chatOf({ tools: TWO, tool_choice }));
    expect(refused).toMatchObject({ kind: "refused", param: "tool_choice" });
  }
});

it.each<[string, JsonObject, object]>([
  ["nothing", {}, { list: [], choice: "auto", parallel: true }],
  ["tools", { tools: TWO }, { choice: "auto", parallel: true }],
  ["none", { tools: TWO, tool_choice: "none" }, { choice: "none" }],
  ["required", { tools: TWO, tool_choice: "required" }, { choice: "required" }],
  [
    "a named tool",
    { tools: TWO, tool_choice: { type: "function", function: { name: "b" } } },
    { choice: { name: "b" } },
  ],
  [
    "allowed tools",
    {
      tools: TWO,
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "b" } }] },
      },
    },
    { choice: "required", list: [{ name: "b" }] },
  ],
  ["one call at a time", { tools: TWO, parallel_tool_calls: false }, { parallel: false }],
  ["a choice without tools", { tool_choice: "required" }, { choice: "auto", list: [] }],
])("the shared conversation reader reads tools and their choice: %s", (_, body, want) => {
  expect(parseTools(chatOf(body))).toMatchObject(want);
});
