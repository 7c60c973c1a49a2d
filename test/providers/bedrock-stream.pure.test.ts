import { expect, it } from "vitest";
import {
  jsonReply,
  BEDROCK_FAILURES,
  endFrames,
  eventFrame,
  exceptionFrame,
  streamReply,
  textFrames,
} from "../fixtures/bedrock-replies.ts";
import { encodeFrame, zeroFrame } from "../fixtures/event-stream.ts";
import { answerTo, eventsOf, messageOf } from "./adapter-kit.ts";
import { BEDROCK, CLAUDE } from "./bedrock-kit.ts";

const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const CALL = {
  upstreamId: CLAUDE,
  body: { response_format: { type: "json_schema", json_schema: { name: "a", schema: SCHEMA } } },
};
const PLAIN = { upstreamId: CLAUDE };
const kinds = async (frames: readonly Uint8Array[]) =>
  (await eventsOf(BEDROCK, PLAIN, streamReply(frames))).map((event) =>
    event.kind === "error" ? event.failure : event.kind,
  );
const TEXT = textFrames(0, ["Hi"]);
const [STOP, METADATA] = endFrames("end_turn") as [Uint8Array, Uint8Array];
const TEXT_KINDS = ["chunk", "text"];
const START_KINDS = ["chunk"];

it("the Bedrock adapter emits finish reason, usage and end in this order, whichever arrives first", async () => {
  expect(await kinds([...TEXT, STOP, METADATA])).toEqual([...TEXT_KINDS, "chunk", "usage", "end"]);
  expect(await kinds([...TEXT, METADATA, STOP])).toEqual([...TEXT_KINDS, "chunk", "usage", "end"]);
});

it("the Bedrock adapter ends a complete stream that lacks usage, but never ends an incomplete stream", async () => {
  expect(await kinds([...TEXT, STOP])).toEqual([...TEXT_KINDS, "chunk", "end"]);
  expect(await kinds([...TEXT, STOP, METADATA.subarray(0, 20)])).toEqual([
    ...TEXT_KINDS,
    "chunk",
    "end",
  ]);
  expect(await kinds(TEXT)).toEqual(TEXT_KINDS);
  expect(await kinds([...TEXT, METADATA])).toEqual(TEXT_KINDS);
  const cut = await eventsOf(BEDROCK, PLAIN, BEDROCK_FAILURES.cut);
  expect(cut.map(({ kind }) => kind)).toEqual(TEXT_KINDS);
});

it("the Bedrock adapter rejects an oversized event after earlier output, and allows a retry after a corrupt event", async () => {
  const huge = zeroFrame(16 * 1024 * 1024 + 1, 0);
  const tooLarge = {
    kind: "refused",
    reason: "event_too_large",
    message: expect.stringContaining("16 MB"),
    spent: { usage: null, output: 0 },
  };
  expect(await kinds([...TEXT, huge])).toEqual([...TEXT_KINDS, tooLarge]);
  huge[8] = (huge[8] ?? 0) ^ 1;
  expect(await kinds([...TEXT, huge])).toEqual([
    ...TEXT_KINDS,
    { kind: "retry", reason: "bad_frame" },
  ]);
});

it.each([
  { inputTokens: 8 },
  { inputTokens: 8, outputTokens: -1 },
  { inputTokens: 8, outputTokens: "3" },
  { inputTokens: 8, outputTokens: 3, cacheReadInputTokens: 0.5 },
])("the Bedrock adapter ignores malformed usage: %j", async (usage) => {
  const odd = endFrames("end_turn", usage);
  expect(await kinds([...TEXT, ...odd])).toEqual([...TEXT_KINDS, "chunk", "end"]);
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
    expect(await kinds([...TEXT, ...endFrames(reason)])).toEqual([...TEXT_KINDS, "usage", failure]);
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
  expect(await kinds([...TEXT, corrupt, STOP, METADATA])).toEqual([...TEXT_KINDS, failure]);
  expect(await kinds([...TEXT, STOP, METADATA, corrupt])).toEqual([
    ...TEXT_KINDS,
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
  const expected = [...TEXT_KINDS, expect.objectContaining(failure)];
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
  expect(await kinds([encodeFrame(headers, new Uint8Array(0))])).toEqual([...START_KINDS, failure]);
});
