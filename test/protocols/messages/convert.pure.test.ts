import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { convertMessagesToChatBody } from "../../../src/models/protocols/messages/client-convert.ts";
import { parseMessagesRequest } from "../../../src/models/protocols/messages/client-request.ts";
import { AcceptedToolNames } from "../../../src/models/core/tool-calls.ts";
import { serializeThoughts } from "../../../src/models/core/stored-thoughts.ts";

type Json = Record<string, unknown>;

const PNG = "iVBORw0KGgo=";
const base = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] };

/** Returns the chat body of a request, and the dropped fields. */
function converted(more: Json): { body: Json; dropped: string[] } {
  const parsed = parseMessagesRequest({ ...base, ...more }, "2023-06-01");
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  const result = convertMessagesToChatBody(parsed.value);
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  const { body, losses } = result.value;
  return { body, dropped: [...losses.dropped] };
}

/** Returns the field that an error names. */
function refused(more: Json): unknown {
  const parsed = parseMessagesRequest({ ...base, ...more }, "2023-06-01");
  const result = parsed.ok ? convertMessagesToChatBody(parsed.value) : parsed;
  if (result.ok) {
    const { lack } = result.value.losses;
    if (lack === null) throw new Error("it was taken");
    return lack.param;
  }
  expect(result.failure.kind).toBe("invalid_request");
  return result.failure.kind === "invalid_request" ? result.failure.param : null;
}

/** Returns the error for a request in version 2026-10-21, or null if it is accepted. */
function newer(more: Json): unknown {
  const parsed = parseMessagesRequest({ ...base, ...more }, "2026-10-21");
  return !parsed.ok && parsed.failure.kind === "invalid_request" ? parsed.failure.message : null;
}

const user = (...content: Json[]): Json => ({ messages: [{ role: "user", content }] });
const reference = (tool_name: string): Json => ({ type: "tool_reference", tool_name });
const text = (words: string): Json => ({ type: "text", text: words });

describe("the conversion of a Messages request", () => {
  test("puts the system prompt first, sets the output cap, and adds no other field", () => {
    expect(converted({ system: "Be brief.", stream: true, temperature: 0.5 })).toEqual({
      dropped: [],
      body: {
        model: "m",
        messages: [
          { role: "system", content: [text("Be brief.")] },
          { role: "user", content: "Hi" },
        ],
        max_completion_tokens: 100,
        stream: true,
        temperature: 0.5,
      },
    });
  });

  test("drops a coding agent's attribution text", () => {
    const system = [text("x-anthropic-billing-header: cc_version=2; cch=1;"), text("You code.")];
    const { body } = converted({ system });
    expect(JSON.stringify(body)).not.toContain("billing-header");
    expect(body["messages"]).toEqual([
      { role: "system", content: [text("You code.")] },
      { role: "user", content: "Hi" },
    ]);
  });

  test("puts each tool result in its own message, and puts the results' images before the user's text", () => {
    const { body } = converted(
      user(
        text("Go on."),
        {
          type: "tool_result",
          tool_use_id: "a",
          content: [
            text("one"),
            { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
          ],
        },
        { type: "tool_result", tool_use_id: "b", content: "broke", is_error: true },
        { type: "tool_result", tool_use_id: "c" },
      ),
    );
    expect(body["messages"]).toEqual([
      { role: "tool", tool_call_id: "a", content: "one" },
      { role: "tool", tool_call_id: "b", content: "Error: broke" },
      { role: "tool", tool_call_id: "c", content: "" },
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
          text("Go on."),
        ],
      },
    ]);
  });

  test("sends thinking and a tool call's extra content back to the provider that wrote them", () => {
    const openai = { type: "reasoning.encrypted", data: "x" };
    const extra = { google: { thought_signature: "s" } };
    const { body } = converted({
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [
            {
              type: "thinking",
              thinking: "Hm.",
              signature: serializeThoughts({ details: [openai], extras: { a: extra }, text: "" }),
            },
            { type: "thinking", thinking: "Claude's", signature: "c2ln" },
            { type: "redacted_thinking", data: "zz" },
            text("Well,"),
            { type: "tool_use", id: "a", name: "look", input: { at: 1 } },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "x" }] },
      ],
    });
    expect((body["messages"] as Json[])[1]).toEqual({
      role: "assistant",
      content: "Well,",
      reasoning_content: "Hm.",
      reasoning_details: [
        openai,
        { type: "anthropic.thinking", thinking: "Claude's", signature: "c2ln" },
        { type: "anthropic.redacted_thinking", data: "zz" },
      ],
      tool_calls: [
        {
          id: "a",
          type: "function",
          function: { name: "look", arguments: '{"at":1}' },
          extra_content: extra,
        },
      ],
    });
  });

  test.each(["tk1.@@@", "tk1.e30", `tk1.${btoa("[1,{},[]]")}.x`])(
    "drops thinking with an altered signature (%s) without causing an error",
    (signature) => {
      const { body } = converted({
        messages: [
          {
            role: "assistant",
            content: [{ type: "thinking", thinking: "Hm.", signature }, text("Well.")],
          },
          { role: "user", content: "Go on" },
        ],
      });
      expect((body["messages"] as Json[])[0]).toEqual({
        role: "assistant",
        content: "Well.",
        reasoning_content: "Hm.",
      });
    },
  );

  test("converts documents and search results to text, and rejects a PDF with the PDF's field as param", () => {
    const document = {
      type: "document",
      title: "Law",
      source: { type: "text", media_type: "text/plain", data: "Be good." },
    };
    const found = { type: "search_result", source: "u", title: "t", content: [text("c")] };
    const { body } = converted(user(document, found));
    expect(body["messages"]).toEqual([
      { role: "user", content: [text("Law\nBe good."), text("t\nu\nc")] },
    ]);
    const pdf = { type: "base64", media_type: "application/pdf", data: PNG };
    expect(refused(user({ type: "document", source: pdf }))).toBe("messages[0].content[0].source");
  });

  const tool = { name: "look", description: "Looks", input_schema: { type: "object" } };
  test.each([
    [{ type: "auto" }, "auto", undefined],
    [{ type: "any", disable_parallel_tool_use: true }, "required", false],
    [{ type: "none" }, "none", undefined],
    [{ type: "tool", name: "look" }, { type: "function", function: { name: "look" } }, undefined],
  ])("maps tool_choice %j to %j", (choice, expected, parallel) => {
    const { body } = converted({ tools: [{ type: null, ...tool }], tool_choice: choice });
    expect(body["tools"]).toEqual([
      {
        type: "function",
        function: { name: "look", description: "Looks", parameters: { type: "object" } },
      },
    ]);
    expect(body["tool_choice"]).toEqual(expected);
    expect(body["parallel_tool_calls"]).toBe(parallel);
  });

  test("drops and reports a tool that the provider bills, and rejects a request that forces such a tool", () => {
    const search = { type: "web_search_20260318", name: "web_search" };
    const { body, dropped } = converted({ tools: [search, tool] });
    expect(dropped).toEqual(["tools[0]:web_search_20260318"]);
    expect(body["tools"]).toHaveLength(1);
    const forced = { tools: [search, tool], tool_choice: { type: "tool", name: "web_search" } };
    expect(refused(forced)).toBe("tool_choice");
    expect(refused({ tools: [search], tool_choice: { type: "any" } })).toBe("tool_choice");
    expect(refused({ tools: [{ type: "bash_20250124", name: "bash" }] })).toBe("tools[0].type");
  });

  test("shortens tool names to valid, unique and stable names, and restores the original names later", () => {
    const letter = fc.constantFrom("a", "b", "_", ".", "é");
    const long = fc.tuple(
      fc.string({ unit: letter, maxLength: 3 }),
      fc.integer({ max: 130, min: 0 }),
    );
    const name = long.map(([some, more]) => `${some}x${"-".repeat(more)}`);
    fc.assert(
      fc.property(fc.array(name, { minLength: 1 }), (names) => {
        // a name that equals another one's shortened name
        const all = [...names, ...names.map((one) => new AcceptedToolNames([one]).nameFor(one))];
        const tools = new AcceptedToolNames(all);
        const sent = new Map(all.map((one) => [one, tools.nameFor(one)]));
        expect(new Set(sent.values()).size).toBe(sent.size);
        for (const [one, fitting] of sent) {
          expect(fitting).toMatch(/^[\w-]{1,64}$/);
          expect(tools.origins.get(fitting) ?? fitting).toBe(one);
          expect(new AcceptedToolNames([one]).nameFor(one)).toBe(
            new AcceptedToolNames([one]).nameFor(one),
          );
        }
      }),
    );
  });

  test("converts the result of a tool search to the tools that are now available", () => {
    const long = `mcp__${"n".repeat(80)}`;
    const { body, dropped } = converted({
      tools: [{ name: long, input_schema: {}, defer_loading: true }],
      ...user({
        type: "tool_result",
        tool_use_id: "s",
        content: [reference("look"), reference(long)],
      }),
    });
    const [{ function: sent }] = body["tools"] as [{ function: { name: string } }];
    const names = ["look", sent.name].map(
      (name) => `The tool ${name} is available now: call it by this name.`,
    );
    expect(body["messages"]).toEqual([
      { role: "tool", tool_call_id: "s", content: names.join("\n") },
    ]);
    expect(dropped).toEqual([]);
  });

  test("rejects a forced tool that doesn't exist, unless a toolset contains the tool", () => {
    const tool_choice = { type: "tool", name: "there" };
    expect(refused({ tools: [tool], tool_choice })).toBe("tool_choice");
    expect(refused({ tool_choice })).toBe("tool_choice");
    const set = { type: "computer_toolset_20260801" };
    // A native route accepts it.
    expect(refused({ tools: [tool, set], tool_choice })).toBe("tools[1].type");
  });

  test.each([
    [{ thinking: { type: "disabled" } }, "none"],
    [{ thinking: { type: "between_tools" } }, "none"],
    [{ thinking: { type: "adaptive" } }, "medium"],
    [{ thinking: { type: "adaptive" }, output_config: { effort: "max" } }, "max"],
    [{ max_tokens: 10_000, thinking: { type: "enabled", budget_tokens: 1024 } }, "low"],
    [{ max_tokens: 10_000, thinking: { type: "enabled", budget_tokens: 9000 } }, "xhigh"],
    [{}, undefined],
  ])("maps thinking %j to the effort %s", (more, effort) => {
    expect(converted(more).body["reasoning_effort"]).toBe(effort);
  });

  test.each<[string, Json]>([
    ["max_tokens", { max_tokens: 0 }],
    ["max_tokens", { max_tokens: undefined }],
    ["container", { container: "c" }],
    ["mcp_servers", { mcp_servers: [{ type: "url" }] }],
    ["thread", { thread: {} }],
    ["fallbacks", { fallbacks: ["x"] }],
    ["speed", { speed: "fast" }],
    [
      "context_management.edits[0].type",
      { context_management: { edits: [{ type: "compact_20260112" }] } },
    ],
    [
      "messages[0].content[0].source.file_id",
      user({ type: "image", source: { type: "file", file_id: "f" } }),
    ],
    [
      "messages[0].content[0].source.file_id",
      user({ type: "document", source: { type: "file", file_id: "f" } }),
    ],
    ["messages[0].content[0].type", user({ type: "container_upload", file_id: "f" })],
    ["messages[0].content[0]", user({ type: "tool_use", id: "a", name: "b", input: {} })],
    ["tools[0].input_schema", { tools: [{ name: "a" }] }],
    ["tools[0].name", { tools: [{ input_schema: {} }] }],
    ["temperature", { temperature: 1.5 }],
  ])("rejects an invalid request, and returns the param %s", (param, more) => {
    expect(refused(more)).toBe(param);
  });

  test("drops and reports top_k, context edits and the fifth stop sequence", () => {
    const { dropped, body } = converted({
      top_k: 5,
      context_management: { edits: [{ type: "clear_thinking_20251015" }] },
      stop_sequences: ["a", "b", "c", "d", "e", " "],
    });
    expect(dropped).toEqual(["top_k", "context_management", "stop_sequences"]);
    expect(body["stop"]).toEqual(["a", "b", "c", "d"]);
  });

  test("rejects sampling parameters and a user's citations in the newer API version", () => {
    expect(newer({})).toBeNull();
    expect(newer({ temperature: null, top_p: null, top_k: null })).toBeNull();
    expect(newer({ temperature: 1 })).toBe("temperature: Extra inputs are not permitted");
    expect(newer(user({ ...text("x"), citations: [{}] }))).toContain("citations");
    expect(newer(user({ ...text("x"), citations: [] }))).toBeNull();
  });
});
