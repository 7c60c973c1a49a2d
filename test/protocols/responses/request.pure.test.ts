import { describe, expect, it } from "vitest";
import {
  parseRequest,
  core,
  messages,
  rejectionOf,
  call,
  output,
  coreCall,
  tool,
  IMAGE,
  fn,
} from "./request-kit.ts";

function encoded(type: string) {
  const file_data = `data:${type};base64,${btoa("# Hi")}`;
  return { role: "user", content: [{ type: "input_file", filename: "a.txt", file_data }] };
}

function file(part: object) {
  return { input: [{ role: "user", content: [{ type: "input_file", ...part }] }] };
}

function image(part: object) {
  return { input: [{ role: "user", content: [{ type: "input_image", ...part }] }] };
}

describe("the input of a Responses request", () => {
  it("may be a text, or messages with and without a type, in all roles", () => {
    expect(messages("Hi")).toEqual([{ role: "user", content: "Hi" }]);
    expect(
      messages(
        [
          { role: "developer", content: "Be brief" },
          { type: "message", role: "system", content: [{ type: "input_text", text: "A" }] },
          { role: "user", content: [{ type: "input_text", text: "B" }] },
          {
            type: null,
            role: "assistant",
            content: [{ type: "output_text", text: "C" }],
            phase: "x",
          },
          { role: "user", content: "D" },
        ],
        { instructions: "First" },
      ),
    ).toEqual([
      { role: "system", content: "First" },
      { role: "developer", content: "Be brief" },
      { role: "system", content: "A" },
      { role: "user", content: "B" },
      { role: "assistant", content: "C" },
      { role: "user", content: "D" },
    ]);
  });

  it("becomes one assistant message for a text and its tool calls, with every output after its call", () => {
    const assistantMessage = { role: "assistant", content: "Look" };
    expect(
      messages([
        { role: "user", content: "Go" },
        assistantMessage,
        call("a"),
        call("b", "g", '{"x":1}'),
        output("b", "B"),
        { role: "user", content: "And?" },
        output("a", "A"),
      ]),
    ).toEqual([
      { role: "user", content: "Go" },
      { ...assistantMessage, tool_calls: [coreCall("a"), coreCall("b", "g", '{"x":1}')] },
      tool("a", "A"),
      tool("b", "B"),
      { role: "user", content: "And?" },
    ]);
  });

  it("becomes another assistant message for a second text, or for a tool call after an output", () => {
    expect(
      messages([
        { role: "assistant", content: "One" },
        { role: "assistant", content: "Two" },
        call("a"),
        output("a"),
        call("b"),
        output("b"),
      ]),
    ).toEqual([
      { role: "assistant", content: "One" },
      { role: "assistant", content: "Two", tool_calls: [coreCall("a")] },
      tool("a"),
      { role: "assistant", content: null, tool_calls: [coreCall("b")] },
      tool("b"),
    ]);
  });

  it.each([
    [
      "parts",
      [
        { type: "input_text", text: "see" },
        { type: "input_image", image_url: IMAGE },
      ],
    ],
    [
      "parts in a text",
      JSON.stringify([
        { type: "input_text", text: "see" },
        { type: "input_image", image_url: IMAGE },
      ]),
    ],
  ])("contains a tool's image, given as %s, as an image", (_, imageOutput) => {
    const converted = messages([call("a"), call("b"), output("a", imageOutput), output("b")]);
    expect(converted).toEqual([
      { role: "assistant", content: null, tool_calls: [coreCall("a"), coreCall("b")] },
      tool("a", "see"),
      tool("b"),
      {
        role: "user",
        content: [
          { type: "text", text: "Output of the call a:" },
          { type: "image_url", image_url: { url: IMAGE } },
        ],
      },
    ]);
  });

  it("contains a tool's text as text even if the text resembles a list of parts", () => {
    const text = '[{"type":"input_text","text":"a"},{"type":"row"}]';
    expect(messages([call("a"), output("a", text)])).toContainEqual(tool("a", text));
  });

  it("contains images as URLs, and maps OpenAI's special level of detail to a common level", () => {
    const content = [{ type: "input_image", image_url: IMAGE, detail: "original" }];
    expect(messages([{ role: "user", content }])).toEqual([
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: IMAGE, detail: "high" } }],
      },
    ]);
  });

  it("contains a text file as text, and any other file as a file", () => {
    expect(messages([encoded("text/markdown")])).toEqual([
      { role: "user", content: 'File "a.txt":\n# Hi' },
    ]);
    expect(rejectionOf({ input: [encoded("application/zip")] }).param).toBe(
      "input[0].content[0].file_data",
    );
    const pdf = encoded("application/pdf");
    expect(messages([pdf])).toMatchObject([
      { role: "user", content: [{ type: "file", file: { filename: "a.txt" } }] },
    ]);
  });

  it("omits and reports items of tools that providers run", () => {
    const { dropped, request } = parseRequest({
      input: [
        { type: "web_search_call", id: "ws_1", status: "completed" },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "theirs" },
        { type: "agent_message", author: "a", content: [{ type: "input_text", text: "sub" }] },
        { role: "user", content: "Hi" },
      ],
    });
    expect(dropped).toEqual(["input.web_search_call", "input.reasoning"]);
    expect(request.body).toMatchObject({
      messages: [{ content: "sub" }, { role: "user", content: "Hi" }],
    });
  });

  it("causes an error with the client's field name if an image is invalid", () => {
    const { paramOf } = parseRequest({
      instructions: "x",
      input: [
        { role: "assistant", content: "y" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "a" },
            { type: "input_image", image_url: IMAGE },
          ],
        },
      ],
    });
    expect(paramOf?.("messages[2].content[1].image_url.url")).toBe(
      "input[1].content[1].image_url.url",
    );
    expect(paramOf?.("messages")).toBe("input");
    expect(paramOf?.("max_completion_tokens")).toBe("max_output_tokens");
    expect(paramOf?.("response_format.json_schema")).toBe("text.format");
  });
});

describe("a rejected Responses request", () => {
  it.each([
    ["input", { input: [] }],
    ["input", { input: null }],
    ["input", { input: "" }],
    ["input[0].id", { input: [{ type: "item_reference", id: "msg_1" }] }, /store/],
    ["input[0].id", { input: [{ id: "rs_1", type: null }] }, /store/],
    ["input[0].type", { input: [{ type: "compaction", encrypted_content: "x" }] }],
    ["input[0].type", { input: [{ type: "computer_call", call_id: "a" }] }],
    ["input[1].call_id", { input: [{ role: "user", content: "x" }, output("a")] }],
    ["input[2].call_id", { input: [call("a"), output("a"), output("a")] }, /two outputs/],
    ["input", { input: [call("a"), call("a"), output("a")] }],
    ["input", { input: [call("a")] }, /No tool output/],
    ["input[0].call_id", { input: [{ type: "function_call_output", output: "x" }] }],
    ["input[0].content[0].file_id", file({ file_id: "file_1" })],
    ["input[0].content[0].file_url", file({ file_url: "https://x.test/a.pdf" })],
    ["input[0].content[0].file_id", image({ file_id: "file_1" })],
    [
      "input[0].content[0].type",
      { input: [{ role: "system", content: [{ type: "input_image" }] }] },
    ],
    ["previous_response_id", { previous_response_id: "resp_1" }, /whole input/],
    ["conversation", { conversation: "conv_1" }],
    ["prompt", { prompt: { id: "pmpt_1" } }],
    ["background", { background: true }],
    ["max_output_tokens", { max_output_tokens: 15 }],
    ["service_tier", { service_tier: "priority" }],
    ["truncation", { truncation: "some" }],
    ["reasoning.mode", { reasoning: { mode: "pro" } }],
    ["context_management", { context_management: [{ type: "compaction" }] }],
    ["moderation", { moderation: { model: "x" } }],
    ["prompt_cache_options.prewarm", { prompt_cache_options: { prewarm: true } }],
    ["include[0]", { include: ["everything"] }],
    ["metadata", { metadata: Object.fromEntries([...Array(17).keys()].map((n) => [n, ""])) }],
    ["user", { user: "" }],
    ["text.format.schema", { text: { format: { type: "json_schema", name: "x" } } }],
    ["tools[0].name", { tools: [{ type: "function", name: "a b" }] }],
    [
      "tools[0].tools[0].name",
      { tools: [{ type: "namespace", name: "n", tools: [{ type: "custom" }] }] },
    ],
    [
      "tools[1].name",
      { tools: [fn("n__f"), { type: "namespace", name: "n", tools: [fn("f")] }] },
      /same name/,
    ],
    ["tool_choice", { tools: [{ type: "web_search" }], tool_choice: { type: "web_search" } }],
    ["tool_choice", { tools: [fn("f")], tool_choice: { type: "function", name: "g" } }],
    ["tool_choice", { tools: [{ type: "web_search" }], tool_choice: "required" }],
  ])("returns 400 with the param of %s: %j", (param, body, message = /./) => {
    const failure = rejectionOf(body);
    expect(failure.param).toBe(param);
    expect(failure.message).toMatch(message);
  });
});

it("a Responses request may contain unknown fields, and null for every optional field", () => {
  const fields = `instructions stream max_output_tokens temperature top_p tools text tool_choice
    parallel_tool_calls reasoning include store metadata user previous_response_id
    conversation prompt background truncation moderation service_tier safety_identifier
    prompt_cache_key context_management`;
  const nulls = Object.fromEntries(fields.split(/\s+/).map((field) => [field, null]));
  expect(parseRequest({ ...nulls, client_metadata: { a: 1 }, vendor: null }).dropped).toEqual([]);
  expect(parseRequest({ vendor: [], __proto__of: 1 }).dropped).toEqual(["vendor", "__proto__of"]);
  expect(parseRequest({ background: false, store: true }).dropped).toEqual([]);
});

it("a Responses request reports the dropped fields that a client may miss", () => {
  const { dropped } = parseRequest({
    tools: [{ type: "web_search" }, { type: "x y" }, { type: "web_search" }, fn("f")],
    max_tool_calls: 3,
    prompt_cache_retention: "24h",
    prompt_cache_options: { mode: "auto" },
  });
  expect(dropped.join(" ")).toBe(
    "prompt_cache_options max_tool_calls prompt_cache_retention tools.web_search tools.x y",
  );
});

it("a Responses request's settings are mapped to internal settings", () => {
  expect(
    core({
      max_output_tokens: 16,
      temperature: 0.5,
      top_p: 0.1,
      presence_penalty: 1,
      top_logprobs: 3,
      include: ["message.output_text.logprobs"],
      reasoning: { effort: "high", summary: "auto" },
      text: {
        verbosity: "low",
        format: { type: "json_schema", name: "x", schema: { type: "object" }, strict: true },
      },
      metadata: { a: "b" },
      user: "u",
      prompt_cache_key: "k",
      safety_identifier: "s",
    }),
  ).toEqual({
    model: "m",
    messages: [{ role: "user", content: "Hi" }],
    max_completion_tokens: 16,
    temperature: 0.5,
    top_p: 0.1,
    presence_penalty: 1,
    logprobs: true,
    top_logprobs: 3,
    reasoning_effort: "high",
    verbosity: "low",
    response_format: {
      type: "json_schema",
      json_schema: { name: "x", schema: { type: "object" }, strict: true },
    },
  });
  expect(core({ top_logprobs: 3 })).not.toHaveProperty("logprobs");
});

describe("an image URL in a Responses request", () => {
  const long = `https://a.example/${"a".repeat(2048)}`;

  it("may have at most 2,048 characters unless it contains the image", () => {
    expect(rejectionOf(image({ image_url: long })).param).toContain("image_url");
    expect(core(image({ image_url: IMAGE.padEnd(9999, "A") }))["messages"]).toHaveLength(1);
  });

  it.each([
    ["a long URL", { image_url: long }],
    ["an unknown detail", { image_url: IMAGE, detail: "a".repeat(99) }],
  ])("remains text in a JSON output with %s", (_, part) => {
    const text = JSON.stringify([{ type: "input_image", ...part }]);
    const { native } = parseRequest({ input: [call("c"), output("c", text)] });
    expect(native?.body["input"]).toContainEqual(expect.objectContaining({ output: text }));
  });
});
