import { describe, expect, test } from "vitest";
import { NATIVE_BLOCK_FIELDS } from "../../../src/models/protocols/messages/client-native-fields.ts";
import { requestsOneHourCache } from "../../../src/models/protocols/messages/host-native.ts";
import {
  parseBetaHeader,
  toClaudeNativeRequest,
} from "../../../src/models/protocols/messages/client-native.ts";
import { parseMessagesRequest } from "../../../src/models/protocols/messages/client-request.ts";
import { NO_THOUGHTS, serializeThoughts } from "../../../src/models/core/stored-thoughts.ts";

type Json = Record<string, unknown>;

const base = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] };

function native(more: Json, beta = ""): { body: Json; dropped: string[] } {
  const parsed = parseMessagesRequest({ ...base, ...more }, "2023-06-01");
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  const converted = toClaudeNativeRequest(parsed.value, parseBetaHeader(beta));
  if (!converted.ok) throw new Error(JSON.stringify(converted.failure));
  return { body: converted.value.body, dropped: [...converted.value.dropped] };
}

describe("a Messages request that is forwarded to Anthropic", () => {
  test("keeps instructions, cache_control and blocks unchanged, with the attribution first", () => {
    const system = [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2;" },
      { type: "text", text: "You code.", cache_control: { type: "ephemeral", ttl: "1h" } },
    ];
    const messages = [
      {
        role: "user",
        content: [
          {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "x" },
            citations: { enabled: true },
          },
        ],
      },
    ];
    const { body, dropped } = native({ system, messages, cache_control: { type: "ephemeral" } });
    expect(body).toEqual({ system, messages, cache_control: { type: "ephemeral" } });
    expect(dropped).toEqual([]);
  });

  test("omits telemetry, and omits but reports unknown fields", () => {
    const { body, dropped } = native({
      metadata: { user_id: "user_1_session_2" },
      diagnostics: { previous_message_id: "msg_1" },
      user_profile_id: "u",
    });
    expect(body).toEqual({ messages: base.messages });
    expect(dropped).toEqual(["diagnostics", "user_profile_id"]);
  });

  test("contains a beta's field only if the request also lists the beta", () => {
    const edits = { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } };
    expect(native(edits).body).not.toHaveProperty("context_management");
    expect(native(edits).dropped).toEqual(["context_management"]);
    expect(native(edits, "context-management-2025-06-27").body).toMatchObject(edits);
    const tools = [{ name: "a", input_schema: { type: "object" }, defer_loading: true }];
    expect(native({ tools }).body["tools"]).toEqual([
      { name: "a", input_schema: { type: "object" } },
    ]);
    expect(native({ tools }, "advanced-tool-use-2025-11-20").body["tools"]).toEqual(tools);
  });

  test("omits expensive, unknown and empty betas", () => {
    expect(parseBetaHeader("")).toEqual([]);
    expect(parseBetaHeader(undefined)).toEqual([]);
    expect(parseBetaHeader("fast-mode-2026-02-01, context-1m-2025-08-07,nobody-knows")).toEqual([]);
    expect(parseBetaHeader("computer-use-2025-11-24, interleaved-thinking-2025-05-14,,")).toEqual([
      "computer-use-2025-11-24",
      "interleaved-thinking-2025-05-14",
    ]);
  });

  test("keeps Claude's thinking byte for byte, but omits empty texts and thinking without Claude's signature", () => {
    const signed = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
    const { body } = native({
      messages: [
        ...base.messages,
        {
          role: "assistant",
          content: [
            signed,
            {
              type: "thinking",
              thinking: "x",
              signature: serializeThoughts({
                ...NO_THOUGHTS,
                details: [{ type: "reasoning.encrypted" }],
              }),
            },
            { type: "thinking", thinking: "x", signature: "" },
            { type: "redacted_thinking", data: "zz" },
            { type: "text", text: "" },
            { type: "text", text: "Well." },
          ],
        },
        { role: "assistant", content: [{ type: "thinking", thinking: "x", signature: "" }] },
      ],
    });
    expect(body["messages"]).toEqual([
      ...base.messages,
      {
        role: "assistant",
        content: [
          signed,
          { type: "redacted_thinking", data: "zz" },
          { type: "text", text: "Well." },
        ],
      },
    ]);
  });

  test("omits and reports fields that the gateway doesn't know, at any depth", () => {
    const { body, dropped } = native({
      messages: [
        {
          role: "user",
          tools: [{ name: "late" }],
          content: [
            { type: "text", text: "a", something_new: "x".repeat(9) },
            {
              type: "tool_result",
              tool_use_id: "t",
              content: [{ type: "text", text: "b", more: 1 }],
              cache_control: { type: "ephemeral", scope: "x" },
            },
          ],
        },
        {
          role: "assistant",
          content: [
            {
              type: "web_fetch_tool_result",
              tool_use_id: "s",
              content: {
                type: "web_fetch_result",
                url: "u",
                content: {
                  type: "document",
                  source: { type: "text", media_type: "text/plain", data: "d", beside: "x" },
                },
              },
            },
            { type: "code_execution_tool_result", tool_use_id: "s", content: { type: "new_kind" } },
          ],
        },
      ],
      output_config: { effort: "low", words: "x" },
      context_management: { edits: [{ type: "clear_thinking_20251015", notes: "x" }] },
      tools: [{ name: "a", input_schema: {}, notes: "x", input_examples: [{}] }],
    });
    expect(new Set(dropped)).toEqual(
      new Set([
        "messages.tools",
        "text.something_new",
        "tool_result.cache_control.scope",
        "text.more",
        "document.source.beside",
        "new_kind",
        "code_execution_tool_result.content",
        "output_config.words",
        "context_management",
        "tools.notes",
        "tools.input_examples",
      ]),
    );
    expect(JSON.stringify(body)).not.toMatch(/something_new|beside|notes|new_kind|scope|late|more/);
  });

  test("omits betas whose fields are dropped", () => {
    expect(
      parseBetaHeader("mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15"),
    ).toEqual([]);
    const systemMessage = {
      role: "system",
      content: "S",
      clear_at: "never",
      output_config: { effort: "low" },
    };
    const messages = [...base.messages, systemMessage];
    expect(native({ messages }).dropped).toEqual(["messages.clear_at", "messages.output_config"]);
    const betas = [
      "mid-conversation-system-clear-at-2026-08-21",
      "mid-conversation-output-config-2026-07-01",
    ];
    expect(parseBetaHeader(betas.join(","))).toEqual(betas);
    expect(native({ messages }, betas.join(",")).body).toEqual({ messages });
  });

  test("contains valid IDs for other providers' tool calls, with the same ID for a call and its result", () => {
    const { body } = native({
      messages: [
        ...base.messages,
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "functions.f:0", name: "f", input: {} }],
        },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "functions.f:0", content: "x" }],
        },
      ],
    });
    const [, call, result] = body["messages"] as { content: Json[] }[];
    const id = call?.content[0]?.["id"];
    expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(result?.content[0]?.["tool_use_id"]).toBe(id);
  });

  test.each([
    [
      "file_id",
      {
        type: "bash_code_execution_result",
        content: [{ type: "bash_code_execution_output", file_id: "f" }],
      },
    ],
    [
      "source.url",
      {
        type: "web_fetch_result",
        content: { type: "document", source: { type: "url", url: "u" } },
      },
    ],
    [
      "source.file_id",
      {
        type: "web_fetch_result",
        content: { type: "document", source: { type: "file", file_id: "f" } },
      },
    ],
  ])("fails if a server tool's result contains a %s", (place, content) => {
    const block = { type: "web_fetch_tool_result", tool_use_id: "s", content };
    const messages = [...base.messages, { role: "assistant", content: [block] }];
    const parsed = parseMessagesRequest({ ...base, messages }, "2023-06-01");
    if (parsed.ok || parsed.failure.kind !== "invalid_request") throw new Error("not refused");
    expect(parsed.failure.param).toContain(place);
    expect(parsed.failure.message).toContain("is not supported. Send the bytes in base64");
  });

  test("omits tools that Anthropic bills per call, and keeps tools that the client runs", () => {
    const bash = { type: "bash_20250124", name: "bash" };
    const { body, dropped } = native({
      tools: [{ type: "web_search_20260318", name: "web_search" }, bash],
      tool_choice: { type: "auto" },
    });
    expect(body["tools"]).toEqual([bash]);
    expect(dropped).toEqual(["tools[0]:web_search_20260318"]);
    expect(
      native({ tools: [{ type: "mcp_toolset", name: "x" }], tool_choice: { type: "auto" } }).body,
    ).toEqual({
      messages: base.messages,
    });
  });

  test("contains output_config.format instead of output_format", () => {
    const format = { type: "json_schema", schema: { type: "object" } };
    expect(native({ output_format: format }).body["output_config"]).toEqual({ format });
  });
});

/** Returns the fields of a source that are sent, and the names of the dropped ones. */
function sentSource(type: string, source: Json): { fields: string[]; dropped: string[] } {
  const { body, dropped } = native(referenced({ type, source }));
  const fields = JSON.stringify(body).match(/"source":(\{[^}]*\})/)?.[1] ?? "null";
  return { fields: Object.keys((JSON.parse(fields) as Json | null) ?? {}), dropped };
}

function urlOf(length: number): Json {
  const url = "https://a.example/".padEnd(length, "a");
  return {
    messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url } }] }],
  };
}

describe("the source of an image or a document", () => {
  const others = { url: "u", data: "d", content: "c", media_type: "m", something_new: "n" };

  test.each([
    ["image", "base64", ["type", "data", "media_type"]],
    ["image", "url", ["type", "url"]],
    ["image", "text", []],
    ["document", "base64", ["type", "data", "media_type"]],
    ["document", "text", ["type", "data", "media_type"]],
    ["document", "content", ["type", "content"]],
    ["document", "url", []],
    ["document", "__proto__", []],
  ])("contains only the fields of its type: %s %s", (type, kind, fields) => {
    const { fields: passed, dropped } = sentSource(type, { type: kind, ...others });
    expect(passed).toEqual(fields);
    expect(dropped).toContain(
      fields.length === 0 ? `${type}.source` : `${type}.source.something_new`,
    );
  });

  test("must not be an image URL of more than 2,048 characters", () => {
    expect(parseMessagesRequest({ ...base, ...urlOf(2048) }, "2023-06-01").ok).toBe(true);
    expect(parseMessagesRequest({ ...base, ...urlOf(2049) }, "2023-06-01")).toMatchObject({
      failure: { param: "messages[0].content[0].source.url" },
    });
  });
});

function referenced(block: Json): Json {
  const content = { type: "tool_search_tool_search_result", tool_references: [block] };
  const result = { type: "tool_search_tool_result", tool_use_id: "s", content };
  return { messages: [{ role: "assistant", content: [result] }] };
}

function nested(block: Json): Json {
  return referenced({ type: "document", source: { type: "content", content: [block] } });
}

describe("a one-hour cache_control", () => {
  const MARK = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const marked = Object.entries(NATIVE_BLOCK_FIELDS).filter(
    ([, fields]) => "cache_control" in fields,
  );
  test.each(marked.map(([type]) => type))(
    "requests a one-hour cache write on a %s at any depth",
    (type) => {
      const block = { type, ...(type === "text" && { text: "a" }) };
      for (const place of [referenced, nested]) {
        expect(requestsOneHourCache(native(place({ ...block, ...MARK })).body)).toBe(true);
        expect(requestsOneHourCache(native(place(block)).body)).toBe(false);
      }
    },
  );

  test.each<readonly [string, Json]>([
    ["the request", MARK],
    ["a system text", { system: [{ type: "text", text: "a", ...MARK }] }],
    ["a tool", { tools: [{ name: "a", input_schema: {}, ...MARK }] }],
  ])("requests a one-hour cache write on %s", (_, more) => {
    expect(requestsOneHourCache(native(more).body)).toBe(true);
  });

  test("differs from a five-minute cache_control, which doesn't request the one-hour cache", () => {
    expect(
      requestsOneHourCache(native({ cache_control: { type: "ephemeral", ttl: "5m" } }).body),
    ).toBe(false);
    expect(requestsOneHourCache(native({ cache_control: { type: "ephemeral" } }).body)).toBe(false);
  });
});
