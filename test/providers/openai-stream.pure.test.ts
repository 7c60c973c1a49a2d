import { describe, expect, it } from "vitest";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import type { JsonObject, StreamEvent } from "../../src/models/core/provider.ts";
import {
  chunkOf,
  DONE,
  openAiEvent,
  TEXT_ANSWER,
  USAGE,
  usageChunk,
} from "../fixtures/openai-replies.ts";

type Choice = { readonly delta: JsonObject; readonly finish_reason: string | null };

/** Returns every event of a stream whose bytes arrive in `parts`. */
function read(parts: readonly Uint8Array[]): StreamEvent[] {
  const decoder = new SseDecoder();
  const chunks = new ChatChunkReader();
  const messages = parts.flatMap((part) => decoder.events(part));
  return [...messages, ...decoder.flushEvents()].flatMap(({ name, data }) =>
    chunks.read(data, name),
  );
}

function readText(text: string): StreamEvent[] {
  return read([new TextEncoder().encode(text)]);
}

function choicesOf(events: readonly StreamEvent[]): Choice[] {
  return events.flatMap((event) =>
    event.kind === "chunk" ? (event.chunk.choices as readonly Choice[]) : [],
  );
}

function readChunks(...chunks: object[]): Choice[] {
  return choicesOf(readText(chunks.map(openAiEvent).join("") + DONE));
}

const tool = (id: string) => ({ index: 0, id, function: { name: id, arguments: "{}" } });

const used = (chunks: object[]) =>
  readText(chunks.map(openAiEvent).join("")).flatMap((event) =>
    event.kind === "usage" ? [event.usage] : [],
  );

const ANSWER = [
  chunkOf({ role: "assistant", content: "" }),
  chunkOf({ content: "Grüße, 世界 😀\ndata: [DONE]\n\n" }),
  chunkOf({}, "stop"),
  usageChunk(),
];
const TEXT = `: hi\n\n${ANSWER.map(openAiEvent).join(": keep-alive\n\n")}${DONE}`;

it("the chat stream reader returns the same events wherever the stream is split", () => {
  const bytes = new TextEncoder().encode(TEXT);
  const whole = read([bytes]);
  expect(whole.map((event) => event.kind)).toEqual(["chunk", "chunk", "chunk", "usage", "end"]);
  expect(JSON.stringify(whole)).toContain("世界 😀\\ndata: [DONE]");
  for (let cut = 0; cut <= bytes.length; cut++) {
    expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole);
  }
  expect(read(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toEqual(whole);
});

it("the chat stream reader accepts CRLF, CR and LF, wherever they are split", () => {
  const whole = readText(TEXT);
  for (const end of ["\r\n", "\r"]) {
    const bytes = new TextEncoder().encode(TEXT.replaceAll("\n", end));
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole);
    }
  }
});

it("the chat stream reader joins several data lines, accepts a missing space, and skips unknown fields", () => {
  const decoder = new SseDecoder();
  const bytes = new TextEncoder().encode(
    "id: 7\nretry: 1\ndata:a\ndata: b\ndata\nfoo\n\ndata:  c\n\n\n\n",
  );
  expect(decoder.push(bytes)).toEqual(["a\nb\n", " c"]);
  const crlf = new TextEncoder().encode("data:a\r\ndata: b\r\n\r\n");
  const cut = new SseDecoder();
  expect([...crlf].flatMap((_, at) => cut.push(crlf.subarray(at, at + 1)))).toEqual(["a\nb"]);
});

it("the chat stream reader stops decoding at an oversized event", () => {
  const decoder = new SseDecoder(100);
  expect(decoder.push(new TextEncoder().encode(`data: ok\n\ndata: ${"x".repeat(60)}`))).toEqual([
    "ok",
  ]);
  expect(decoder.overflowed).toBe(false);
  expect(decoder.push(new TextEncoder().encode(`${"x".repeat(60)}\n\ndata: no\n\n`))).toEqual([]);
  expect(decoder.overflowed).toBe(true);
  const lines = new SseDecoder(100);
  for (let line = 0; line < 60; line++) lines.push(new TextEncoder().encode("data: 1\n"));
  expect(lines.overflowed).toBe(true);
});

it("the chat stream reader separates tool calls that share an index but have different IDs", () => {
  const choices = readChunks(chunkOf({ tool_calls: [tool("call_a"), tool("call_b")] }, "stop"));
  const calls = choices.flatMap((choice) => (choice.delta["tool_calls"] as JsonObject[]) ?? []);
  expect(calls.map((call) => [call["index"], call["id"]])).toEqual([
    [0, "call_a"],
    [1, "call_b"],
  ]);
  expect(choices.every((choice) => ((choice.delta["tool_calls"] as []) ?? []).length < 2)).toBe(
    true,
  );
});

it("the chat stream reader adds the arguments {} to a tool call without arguments, and adds a missing ID", () => {
  const choices = readChunks(
    chunkOf({ tool_calls: [{ function: { name: "now" } }] }),
    chunkOf({}, "tool_calls"),
  );
  const calls = choices.flatMap((choice) => (choice.delta["tool_calls"] as JsonObject[]) ?? []);
  expect(calls).toEqual([
    {
      index: 0,
      id: expect.stringMatching(/^call_[0-9A-Za-z]{24}$/),
      type: "function",
      function: { name: "now", arguments: "" },
    },
    { index: 0, function: { arguments: "{}" } },
  ]);
});

it("the chat stream reader returns reasoning as reasoning_content, whatever name the provider uses", () => {
  const choices = readChunks(
    chunkOf({ reasoning: "hm" }),
    chunkOf({ reasoning_content: "so", content: null }),
    chunkOf({}, "eos"),
  );
  expect(choices.map((choice) => choice.delta["reasoning_content"])).toEqual([
    "hm",
    "so",
    undefined,
  ]);
  expect(choices.at(-1)?.finish_reason).toBe("stop");
});

it("the chat stream reader emits usage from any chunk as a separate event, unless the usage is malformed", () => {
  expect(used([chunkOf({ content: "x" }, "stop", { usage: USAGE })])).toHaveLength(1);
  expect(used([usageChunk(), usageChunk({ ...USAGE, completion_tokens: 9 })]).at(-1)?.output).toBe(
    9,
  );
  expect(used([usageChunk({ prompt_tokens: -1, completion_tokens: 1 })])).toEqual([]);
  expect(used([{ usage: USAGE }])).toHaveLength(1);
});

it("the chat stream reader drops empty chunks and chunks without choices, which would break clients", () => {
  const ping = { type: "ping" };
  const empty = { ...chunkOf({}), choices: [] };
  expect(readText(openAiEvent(ping) + openAiEvent(empty) + "data:\n\n")).toEqual([]);
});

it("the chat stream reader ends the stream at an error in any format", () => {
  const bodies = [
    openAiEvent({ error: { message: "canary", type: "server_error", code: null } }),
    openAiEvent({ error: "canary" }),
    `event: error\n${openAiEvent({ message: "canary" })}`,
    "event: error\ndata: not json\n\n",
    openAiEvent(chunkOf({}, "insufficient_system_resource")),
  ];
  for (const body of bodies) {
    const events = readText(body + TEXT_ANSWER.map(openAiEvent).join("") + DONE);
    expect(events.at(-1)).toMatchObject({ kind: "error", failure: { kind: "retry" } });
    expect(JSON.stringify(events)).not.toContain("Hel");
    expect(JSON.stringify(events)).not.toContain("canary");
  }
  expect(readText(openAiEvent({ error: { code: 429 } }))).toMatchObject([
    { failure: { kind: "overloaded" } },
  ]);
});

const called = (index: number, args: string) =>
  chunkOf({
    tool_calls: [{ index, id: `call_${index}`, function: { name: "f", arguments: args } }],
  });
const finishOf = (...chunks: readonly object[]) => {
  const [finish, end] = readText(chunks.map(openAiEvent).join("") + DONE).slice(-2);
  expect(end).toEqual({ kind: "end" });
  return finish?.kind === "chunk" ? finish.chunk.choices[0]?.finish_reason : undefined;
};

describe("the end of a chat stream ([DONE])", () => {
  it("gives an unfinished choice the finish reason stop, or tool_calls if the choice has calls", () => {
    expect(finishOf(chunkOf({ content: "x" }))).toBe("stop");
    expect(finishOf(called(0, "{}"))).toBe("tool_calls");
    expect(readText(DONE)).toEqual([{ kind: "end" }]);
  });

  it("gives a choice with a truncated tool call the finish reason length, so that no client runs the call", () => {
    expect(finishOf(called(0, "{}"), called(1, '{"a":'))).toBe("length");
  });
});
