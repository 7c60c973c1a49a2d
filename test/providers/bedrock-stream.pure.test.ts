import { describe, expect, it } from "vitest";
import {
  jsonReply,
  BEDROCK_CHAT,
  BEDROCK_FAILURES,
  endFrames,
  eventFrame,
  exceptionFrame,
  streamReply,
  textFrames,
} from "../fixtures/bedrock-replies.ts";
import { encodeFrame, zeroFrame } from "../fixtures/event-stream.ts";
import type { RawScenario } from "../fixtures/reply-scenarios.ts";
import { answerTo, eventsOf, expectSameHoweverCut, messageOf } from "./adapter-kit.ts";
import { BEDROCK, CLAUDE } from "./bedrock-kit.ts";

const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const CALL = {
  upstreamId: CLAUDE,
  body: { response_format: { type: "json_schema", json_schema: { name: "a", schema: SCHEMA } } },
};
const USAGE = { input: 8, cacheRead: 4, cacheWrite: 0, output: 3, reasoning: 0 };
const weather = (city: string, id: number) => ({
  id: `tooluse_${id}_K1lsjyEkuj5bbg5tAkGAhO`,
  name: "get_weather",
  arguments: { city },
});

const THOUGHT = {
  type: "anthropic.thinking",
  thinking: "Let me think.",
  signature: "EvYBCkgICxABGAIqQA9E9VC377UnbjdfXCw4RwQaaIXsqocZKzI3WwWtXT==",
};
const TIME = { id: "tooluse_2_K1lsjyEkuj5bbg5tAkGAhO", name: "get_time", arguments: {} };

const EXPECTED = {
  text: { content: "Hello, 世界!", finish: "stop" },
  tool: { content: "Let me look.", tools: [weather("Paris", 1)], finish: "tool_calls" },
  tools: {
    content: "",
    tools: [weather("Paris", 0), weather("Rome", 1), TIME],
    finish: "tool_calls",
  },
  schema: { content: '{"city":"Paris","days":3}', finish: "stop" },
  reasoning: { content: "42", reasoning: "Let me think.", details: [THOUGHT], finish: "stop" },
  length: { content: "Hel", finish: "length" },
  refusal: { content: "", finish: "content_filter" },
};
const EMPTY = { reasoning: "", details: [], tools: [] };
const scenarios = Object.entries(BEDROCK_CHAT) as [keyof typeof EXPECTED, RawScenario][];

describe.each(scenarios)("the recorded Bedrock response %s", (name, { json, stream }) => {
  it("becomes the expected message as a stream", async () => {
    const events = await eventsOf(BEDROCK, CALL, stream);
    const { usage, tools, refusal: _, ...message } = messageOf(events);
    const read = tools.map(({ id, name: called, arguments: given }) => {
      return { id, name: called, arguments: JSON.parse(given) as unknown };
    });
    expect({ ...message, tools: read }).toEqual({ ...EMPTY, ...EXPECTED[name] });
    expect(usage).toEqual({ kind: "usage", usage: USAGE });
    expect(events.at(-1)).toEqual({ kind: "end" });
  });

  it("becomes the expected message as JSON", async () => {
    const { answer } = await answerTo(BEDROCK, CALL, json);
    if (answer.kind !== "json") throw new Error(JSON.stringify(answer));
    const [choice] = answer.body["choices"] as [{ message: Whole; finish_reason: string }];
    const {
      content,
      reasoning_content: reasoning = "",
      reasoning_details: details = [],
    } = choice.message;
    const tools = (choice.message.tool_calls ?? []).map(({ id, function: called }) => {
      return { id, name: called.name, arguments: JSON.parse(called.arguments) as unknown };
    });
    const message = { content: content ?? "", reasoning, details, tools };
    expect({ ...message, finish: choice.finish_reason }).toEqual({ ...EMPTY, ...EXPECTED[name] });
    expect(answer.usage).toEqual(USAGE);
  });

  it("becomes the same events however the stream is split", async () => {
    await expect(expectSameHoweverCut(BEDROCK, CALL, stream)).resolves.toBeUndefined();
  });
});

type Whole = {
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: unknown[];
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
};

const PLAIN = { upstreamId: CLAUDE };
const kinds = async (frames: readonly Uint8Array[]) =>
  (await eventsOf(BEDROCK, PLAIN, streamReply(frames))).map((event) =>
    event.kind === "error" ? event.failure : event.kind,
  );
const TEXT = textFrames(0, ["Hi"]);
const [STOP, METADATA] = endFrames("end_turn") as [Uint8Array, Uint8Array];
const SAID = ["chunk", "text"];
const BEGUN = ["chunk"];

it("the Bedrock adapter emits finish reason, usage and end in this order, whichever arrives first", async () => {
  expect(await kinds([...TEXT, STOP, METADATA])).toEqual([...SAID, "chunk", "usage", "end"]);
  expect(await kinds([...TEXT, METADATA, STOP])).toEqual([...SAID, "chunk", "usage", "end"]);
});

it("the Bedrock adapter ends a complete stream that lacks usage, but never ends an incomplete stream", async () => {
  expect(await kinds([...TEXT, STOP])).toEqual([...SAID, "chunk", "end"]);
  expect(await kinds([...TEXT, STOP, METADATA.subarray(0, 20)])).toEqual([...SAID, "chunk", "end"]);
  expect(await kinds(TEXT)).toEqual(SAID);
  expect(await kinds([...TEXT, METADATA])).toEqual(SAID);
  const cut = await eventsOf(BEDROCK, PLAIN, BEDROCK_FAILURES.cut);
  expect(cut.map(({ kind }) => kind)).toEqual(SAID);
});

it("the Bedrock adapter rejects an oversized event after earlier output, and allows a retry after a corrupt event", async () => {
  const huge = zeroFrame(16 * 1024 * 1024 + 1, 0);
  const tooLarge = {
    kind: "refused",
    reason: "event_too_large",
    message: expect.stringContaining("16 MB"),
    spent: { usage: null, output: 0 },
  };
  expect(await kinds([...TEXT, huge])).toEqual([...SAID, tooLarge]);
  huge[8] = (huge[8] ?? 0) ^ 1;
  expect(await kinds([...TEXT, huge])).toEqual([...SAID, { kind: "retry", reason: "bad_frame" }]);
});

it.each([
  { inputTokens: 8 },
  { inputTokens: 8, outputTokens: -1 },
  { inputTokens: 8, outputTokens: "3" },
  { inputTokens: 8, outputTokens: 3, cacheReadInputTokens: 0.5 },
])("the Bedrock adapter ignores malformed usage: %j", async (usage) => {
  const odd = endFrames("end_turn", usage);
  expect(await kinds([...TEXT, ...odd])).toEqual([...SAID, "chunk", "end"]);
  const { answer } = await answerTo(BEDROCK, CALL, jsonReply([{ text: "Hi" }], "end_turn", usage));
  expect(answer).toMatchObject({ kind: "json", usage: null });
});

it("the Bedrock adapter reports cache writes separately", async () => {
  const usage = {
    inputTokens: 1,
    outputTokens: 2,
    cacheReadInputTokens: 3,
    cacheWriteInputTokens: 4,
  };
  const { answer } = await answerTo(BEDROCK, CALL, jsonReply([{ text: "Hi" }], "end_turn", usage));
  expect(answer).toMatchObject({ usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 } });
});

it.each(["malformed_model_output", "malformed_tool_use"])(
  "the Bedrock adapter treats the stop reason %s as a failure",
  async (reason) => {
    const failure = { kind: "retry", reason: "broken_off", fault: "request" };
    expect(await kinds([...TEXT, ...endFrames(reason)])).toEqual([...SAID, "usage", failure]);
    const { answer } = await answerTo(BEDROCK, CALL, jsonReply([], reason));
    expect(answer).toMatchObject({ kind: "failure", failure });
  },
);

it.each([
  ["stop_sequence", "stop"],
  ["model_context_window_exceeded", "length"],
  ["guardrail_intervened", "content_filter"],
  ["something_new", "length"],
])("the Bedrock adapter maps the stop reason %s to %s", async (reason, finish) => {
  const events = await eventsOf(BEDROCK, CALL, streamReply([...TEXT, ...endFrames(reason)]));
  expect(messageOf(events).finish).toBe(finish);
});

it("the Bedrock adapter ends the stream at a corrupt frame, and ignores everything after that frame", async () => {
  const corrupt = TEXT[0]?.slice() ?? STOP;
  corrupt[60] = 0;
  const failure = { kind: "retry", reason: "bad_frame" };
  expect(await kinds([...TEXT, corrupt, STOP, METADATA])).toEqual([...SAID, failure]);
  expect(await kinds([...TEXT, STOP, METADATA, corrupt])).toEqual([
    ...SAID,
    "chunk",
    "usage",
    "end",
  ]);
});

it.each([
  ["throttlingException", { kind: "overloaded", reason: "429" }],
  ["serviceUnavailableException", { kind: "overloaded", reason: "503" }],
  ["internalServerException", { kind: "retry", reason: "500", again: true }],
  ["modelStreamErrorException", { kind: "retry", reason: "500", again: true }],
  ["modelTimeoutException", { kind: "retry", reason: "408", again: true }],
  ["somethingNewException", { kind: "retry", reason: "500", again: true }],
  ["validationException", { kind: "refused", reason: "400", message: "No." }],
])("the Bedrock adapter ends a stream that breaks with %s", async (type, failure) => {
  const expected = [...SAID, expect.objectContaining(failure)];
  expect(await kinds([...TEXT, exceptionFrame(type, "No."), STOP, METADATA])).toEqual(expected);
  expect(await kinds([...TEXT, eventFrame(type, { message: "No." })])).toEqual(expected);
});

it("the Bedrock adapter maps an error frame and an exception to the same failure", async () => {
  const headers = [
    [":message-type", "error"],
    [":error-code", "ThrottlingException"],
    [":error-message", "No."],
  ] as const;
  const failure = { kind: "overloaded", reason: "429" };
  expect(await kinds([encodeFrame(headers, new Uint8Array(0))])).toEqual([...BEGUN, failure]);
});
