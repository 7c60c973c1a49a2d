import { beforeAll, describe, expect, it, vi } from "vitest";
import { balanceOf, openAccount, send } from "./client.ts";
import {
  readFoldedMessage,
  messageOf,
  messages,
  mockAnthropic,
  anthropicErrorOf,
} from "./messages-client.ts";
import type { Json } from "./messages-client.ts";
import { mockUpstream, upstreamCompletion, upstreamStream, USAGE } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const TEXT = { type: "text", text: "hi" };
const MESSAGE = {
  id: "msg_theirs",
  type: "message",
  role: "assistant",
  model: "theirs",
  content: [TEXT],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 5 },
};
const EVENTS: readonly Json[] = [
  { type: "message_start", message: { ...MESSAGE, content: [], stop_reason: null } },
  { type: "content_block_start", index: 0, content_block: { ...TEXT, text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
  { type: "message_stop" },
];
const CHOICE = { index: 0, finish_reason: null };
const CHUNKS = [
  { choices: [{ ...CHOICE, delta: { role: "assistant", content: "hi" } }] },
  { choices: [{ ...CHOICE, delta: {}, finish_reason: "stop" }] },
  { choices: [], usage: USAGE },
];

function answered(isNative: boolean, stream: boolean): Response {
  if (!isNative) return stream ? upstreamStream(CHUNKS) : upstreamCompletion();
  if (!stream) return Response.json(MESSAGE);
  const text = EVENTS.map(
    (event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`,
  );
  return new Response(text.join(""), { headers: { "content-type": "text/event-stream" } });
}

const FUNCTION = { name: "look", input_schema: { type: "object" } };
const toolOfType = (type: string): Json => ({ tools: [{ type, name: "theirs" }, FUNCTION] });
/** Names in requests that don't fit in a header unchanged. */
const NAMED: Readonly<Record<string, Json>> = {
  "a tool's type with a line break": toolOfType("a\r\nset-cookie: b"),
  "a tool's type with other control characters": toolOfType("a\u0000\u007f\u2028é"),
  "a tool's type of 200 kB": toolOfType("t".repeat(200_000)),
  "a field with a line break": { "a\r\nset-cookie: b": 1 },
  "a field of 20,000 characters": { ["f".repeat(20_000)]: 1 },
  "a hundred fields": Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`é\n${at}`, 1])),
};
const WAYS = [true, false].flatMap((isNative) =>
  [true, false].map((stream) => ({ isNative, stream })),
);

describe("a dropped field or tool type whose name a header can't contain", () => {
  it.each(Object.entries(NAMED))(
    "causes no error, and appears shortened in the x-dropped header: %s",
    async (_, fields) => {
      for (const { isNative, stream } of WAYS) {
        const mock = isNative ? mockAnthropic : mockUpstream;
        const { calls, bindings } = mock(() => answered(isNative, stream));
        const before = await balanceOf(key);
        const request = { model: isNative ? "mock/claude" : "mock/chat", stream, ...fields };
        const response = await messages(key, request, { bindings });
        const message = stream
          ? (await readFoldedMessage(response)).message
          : await messageOf(response);
        expect(message).toMatchObject({ content: [TEXT] });
        expect(response.headers.get("x-dropped")).toMatch(/^[\w.:[\], -]{1,2200}$/);
        expect(response.headers.has("set-cookie")).toBe(false);
        expect(calls).toHaveLength(1);
        expect(await balanceOf(key)).toBeLessThan(before);
        vi.restoreAllMocks();
      }
    },
  );
});

describe("a tool name of 65 to 128 characters", () => {
  const names = [65, 127, 128].map((length) => `mcp__${"n".repeat(length - 5)}`);
  const tools = names.map((name) => ({ ...FUNCTION, name }));
  const fields = { tools, tool_choice: { type: "tool", name: names[2] } };

  it("reaches Anthropic unchanged, even if another tool's name starts with the same characters", async () => {
    const { calls, bindings } = mockAnthropic(() => answered(true, false));
    await messageOf(await messages(key, { model: "mock/claude", ...fields }, { bindings }));
    expect(calls.map(({ body }) => body)).toMatchObject([fields]);
  });

  it.each([false, true])(
    "reaches other providers in a shortened form, but is unchanged in the response (streamed: %s)",
    async (stream) => {
      const { calls, bindings } = mockAnthropic(({ url, body }) => {
        if (url.includes("anthropic")) return new Response(null, { status: 503 });
        const { function: chosen } = body["tool_choice"] as { function: Json };
        const called = { index: 0, id: "call_2", type: "function" };
        const tool_calls = [{ ...called, function: { ...chosen, arguments: "{}" } }];
        const assistantMessage = { role: "assistant", content: null, tool_calls };
        const choice = { index: 0, finish_reason: "tool_calls" };
        return stream
          ? upstreamStream([
              { choices: [{ ...choice, delta: assistantMessage }] },
              { choices: [], usage: USAGE },
            ])
          : Response.json({ choices: [{ ...choice, message: assistantMessage }], usage: USAGE });
      });
      const called = { type: "tool_use", id: "call_1", name: names[0], input: {} };
      const conversation = [
        { role: "user", content: "Hello there" },
        { role: "assistant", content: [called] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "x" }] },
      ];
      const request = { model: "mock/both", ...fields, messages: conversation, stream };
      const response = await messages(key, request, { bindings });
      const message = stream
        ? (await readFoldedMessage(response)).message
        : await messageOf(response);
      expect(message).toMatchObject({ content: [{ type: "tool_use", name: names[2] }] });
      const sent = calls.at(-1)?.body as {
        tools: { function: { name: string } }[];
        tool_choice: { function: { name: string } };
        messages: { tool_calls?: { function: { name: string } }[] }[];
      };
      const short = sent.tools.map((tool) => tool.function.name);
      expect(new Set(short).size).toBe(3);
      for (const name of short) expect(name).toMatch(/^[\w-]{1,64}$/);
      expect(sent.tool_choice.function.name).toBe(short[2]);
      expect(sent.messages[1]?.tool_calls?.[0]?.function.name).toBe(short[0]);
    },
  );

  it("works at count_tokens, which returns 400 only for a name of 129 characters", async () => {
    const { bindings } = mockAnthropic(() => Response.json({ input_tokens: 7 }));
    const conversation = [{ role: "user", content: "Hello there" }];
    for (const model of ["mock/claude", "sandbox/echo"]) {
      const body = { model, messages: conversation, ...fields };
      const counted = await send("/v1/messages/count_tokens", { key, body, bindings });
      expect([counted.status, await counted.json()]).toEqual([
        200,
        { input_tokens: expect.any(Number) },
      ]);
    }
    const long = [{ ...FUNCTION, name: "n".repeat(129) }];
    const refused = await messages(key, { model: "mock/claude", tools: long }, { bindings });
    expect(await anthropicErrorOf(refused)).toMatchObject({ status: 400, param: "tools[0].name" });
  });
});
