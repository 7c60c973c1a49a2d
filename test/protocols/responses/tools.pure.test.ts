import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chatBodySchema } from "../../../src/models/core/core-request.ts";
import {
  NO_THOUGHTS,
  serializeThoughts,
  parseThoughts,
} from "../../../src/models/core/stored-thoughts.ts";
import { joinNamespaceAndName } from "../../../src/models/core/tool-calls.ts";
import { core, messages, call, output, coreCall, tool, parse, fn } from "./request-kit.ts";

describe("a tool of a Responses request", () => {
  const files = {
    type: "namespace",
    name: "mcp files",
    tools: [
      fn("read", { parameters: { type: "object" }, strict: true }),
      { type: "custom", name: "patch" },
    ],
  };

  it("becomes a function that is not strict by default, with one text parameter for a custom tool", () => {
    const grammar = { type: "grammar", syntax: "lark", definition: "start: A" };
    const tools = [fn("f"), { type: "custom", name: "c", description: "D", format: grammar }];
    expect(core({ tools })["tools"]).toEqual([
      { type: "function", function: { name: "f", strict: false } },
      {
        type: "function",
        function: {
          name: "c",
          description: "D\n\nThe input must match this lark grammar:\nstart: A",
          parameters: {
            type: "object",
            properties: { input: { type: "string" } },
            required: ["input"],
            additionalProperties: false,
          },
          strict: false,
        },
      },
    ]);
  });

  it("gets a flat name that includes the namespace, both in the tool list and in the history", () => {
    const name = joinNamespaceAndName("mcp files", "patch");
    expect(name).toMatch(/^[\w-]{1,64}$/);
    const body = core({
      tools: [files],
      tool_choice: { type: "custom", name: "patch" },
      input: [
        {
          type: "custom_tool_call",
          call_id: "a",
          name: "patch",
          namespace: "mcp files",
          input: 'x"y',
        },
        { type: "custom_tool_call_output", call_id: "a", output: "done" },
      ],
    });
    expect(body["tools"]).toMatchObject([
      { function: { name: joinNamespaceAndName("mcp files", "read"), strict: true } },
      { function: { name } },
    ]);
    expect(body["tool_choice"]).toEqual({ type: "function", function: { name } });
    expect(body["messages"]).toEqual([
      { role: "assistant", content: null, tool_calls: [coreCall("a", name, '{"input":"x\\"y"}')] },
      tool("a"),
    ]);
  });

  it("may also come from an input item, which replaces an earlier tool of that name", () => {
    const again = { type: "additional_tools", role: "developer", tools: [files, fn("g")] };
    const body = core({ tools: [files], input: [again, { role: "user", content: "Hi" }] });
    expect(body["tools"]).toHaveLength(3);
  });

  it("disappears if allowed_tools doesn't list the tool", () => {
    const tools = [fn("f"), fn("g"), files];
    const allowed = [
      { type: "function", name: "g" },
      { type: "custom", name: "patch" },
      { type: "web_search" },
    ];
    const body = core({
      tools,
      tool_choice: { type: "allowed_tools", mode: "required", tools: allowed },
    });
    expect(body).toMatchObject({
      tools: [
        { function: { name: "g" } },
        { function: { name: joinNamespaceAndName("mcp files", "patch") } },
      ],
      tool_choice: "required",
    });
  });

  it("disappears together with the tool choice if no tools remain", () => {
    const body = core({
      tools: [{ type: "web_search" }],
      tool_choice: "auto",
      parallel_tool_calls: true,
    });
    expect(Object.keys(body).toSorted()).toEqual(["messages", "model"]);
  });

  it("gets a valid, unique name even if long names begin the same way", () => {
    const names = fc.tuple(
      fc.string({ minLength: 1, maxLength: 80 }),
      fc.stringMatching(/^[\w-]{1,64}$/),
    );
    fc.assert(
      fc.property(names, ([namespace, name]) => {
        expect(joinNamespaceAndName(namespace, name)).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      }),
    );
    const long = "x".repeat(70);
    expect(joinNamespaceAndName(`${long}a`, "f")).not.toBe(joinNamespaceAndName(`${long}b`, "f"));
  });
});

describe("the gateway's encrypted_content", () => {
  const value = fc.jsonValue().map((one) => JSON.parse(JSON.stringify(one)) as unknown);
  const detail = fc.record({ type: fc.stringMatching(/^[a-z.]{1,9}$/), data: value });
  const kept = fc.record({
    details: fc.array(detail, { minLength: 1, maxLength: 3 }),
    extras: fc.dictionary(fc.string(), fc.record({ a: value }), { maxKeys: 2 }),
    text: fc.constant(""),
  });

  it("parses back to the original content", () => {
    fc.assert(
      fc.property(kept, (thoughts) => {
        expect(parseThoughts(serializeThoughts(thoughts as never))).toEqual(thoughts);
      }),
    );
  });

  it("becomes invalid if any character changes", () => {
    fc.assert(
      fc.property(kept, fc.nat(), fc.constantFrom("A", "b", "0", "."), (thoughts, at, other) => {
        const text = serializeThoughts(thoughts);
        const index = at % text.length;
        const changed = text.slice(0, index) + other + text.slice(index + 1);
        fc.pre(changed !== text);
        expect(parseThoughts(changed)).toBeNull();
      }),
    );
  });

  it("parses as null if the text has any other form", () => {
    fc.assert(fc.property(fc.string(), (text) => parseThoughts(text) === null));
    expect(parseThoughts(`tk1.${"A".repeat(5_000_000)}.x`)).toBeNull();
  });

  it("adds reasoning and extra content to the assistant message that contains the tool call", () => {
    const details = [{ type: "x.signed", signature: "s" }];
    const extras = { a: { google: { thought_signature: "t" } } };
    const item = {
      type: "reasoning",
      id: "rs_1",
      summary: [],
      encrypted_content: serializeThoughts({ details, extras, text: "" }),
    };
    expect(messages([{ role: "user", content: "Go" }, item, call("a"), output("a")])).toEqual([
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: null,
        reasoning_details: details,
        tool_calls: [{ ...coreCall("a"), extra_content: extras.a }],
      },
      tool("a"),
    ]);
  });
});

it.each([[[{ type: "reasoning" }]], [[{ type: "reasoning", encrypted_content: "of another" }]]])(
  "a reasoning item can't be the only item of an input: %j",
  (input) => {
    expect(parse({ input })).toMatchObject({ ok: false, failure: { param: "input" } });
  },
);

it("any body of a Responses request either converts or returns 400, and never throws", () => {
  const part = fc.record({
    type: fc.constantFrom("input_text", "input_image", "input_file", "refusal", "x"),
    text: fc.jsonValue(),
    image_url: fc.jsonValue(),
    file_data: fc.jsonValue(),
  });
  const item = fc.record(
    {
      type: fc.constantFrom(
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "additional_tools",
        "agent_message",
        "item_reference",
        null,
        "x",
      ),
      role: fc.constantFrom("user", "assistant", "developer", "tool"),
      content: fc.oneof(fc.string(), fc.array(part, { maxLength: 2 }), fc.jsonValue()),
      call_id: fc.constantFrom("a", "b", "", null),
      name: fc.constantFrom("f", ""),
      arguments: fc.oneof(fc.string(), fc.jsonValue()),
      input: fc.oneof(fc.string(), fc.jsonValue()),
      output: fc.oneof(fc.string(), fc.array(part, { maxLength: 2 })),
      tools: fc.jsonValue(),
      encrypted_content: fc.oneof(
        fc.string(),
        fc.constant(serializeThoughts({ ...NO_THOUGHTS, details: [{ type: "x" }] })),
      ),
    },
    { requiredKeys: ["type"] },
  );
  const tools = fc.array(
    fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(
        fn("f"),
        { type: "custom", name: "c" },
        { type: "namespace", name: "n", tools: [fn("f")] },
      ),
    ),
    { maxLength: 3 },
  );
  const body = fc.record(
    {
      input: fc.oneof(fc.string(), fc.array(item, { maxLength: 5 }), fc.jsonValue()),
      tools,
      tool_choice: fc.oneof(
        fc.constantFrom(
          "auto",
          "none",
          "required",
          { type: "function", name: "f" },
          { type: "allowed_tools", mode: "auto", tools: [fn("f")] },
        ),
        fc.jsonValue(),
      ),
      text: fc.jsonValue(),
      reasoning: fc.jsonValue(),
      include: fc.jsonValue(),
      metadata: fc.jsonValue(),
      stream: fc.boolean(),
    },
    { requiredKeys: ["input"] },
  );
  fc.assert(
    fc.property(body, (value) => {
      const parsed = parse(value);
      const kind = parsed.ok ? "invalid_request" : parsed.failure.kind;
      expect(kind).toBe("invalid_request");
      const request = parsed.ok ? parsed.value.request.body : core({});
      expect(chatBodySchema.safeParse(request).success).toBe(true);
      const dropped = parsed.ok ? parsed.value.dropped : [];
      expect(dropped.every((word) => /^[\w.]{1,64}$/.test(word))).toBe(true);
    }),
    { examples: [[{ input: [{ type: "reasoning" }] }]] },
  );
});
