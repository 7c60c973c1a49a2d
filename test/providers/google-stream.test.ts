import { expect, it } from "vitest";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";
import {
  candidateResponse,
  errorBody,
  GOOGLE_FAILURES,
  googleEvent,
  jsonReply,
  streamReply,
  UNAVAILABLE,
  usageMetadata,
} from "../fixtures/google-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import {
  answerTo,
  eventsOf,
  expectSameHoweverCut,
  messageOf,
  wholeMessageOf,
} from "./adapter-kit.ts";
import { GEMINI, MODEL } from "./google-kit.ts";

const call = { upstreamId: MODEL };

const events = (reply: RawReply) => eventsOf(GEMINI, call, reply);

const kinds = (list: readonly StreamEvent[]) => list.map((event) => event.kind);

it("the Google adapter reports usage as partial until the end, and then the last chunk's usage", async () => {
  const list = await events(
    streamReply([
      candidateResponse([{ text: "a" }], { trafficType: "ON_DEMAND" }),
      candidateResponse([{ text: "b" }], usageMetadata(9, 1)),
      candidateResponse([{ text: "" }], usageMetadata(9, 2), { finish: "STOP" }),
      { usageMetadata: usageMetadata(9, 3) },
    ]),
  );
  const usages = list.filter((event) => event.kind === "usage");
  expect(usages.map((event) => [event.usage.output, event.partial])).toEqual([
    [1, true],
    [2, undefined],
    [3, undefined],
  ]);
  expect(kinds(list).at(-1)).toBe("end");
});

it("the Google adapter reports usage for a stream without output only if the stream fails", async () => {
  const silent = candidateResponse([{ text: "" }], usageMetadata(9, 0, { thoughtsTokenCount: 40 }));
  const bad = candidateResponse([], usageMetadata(9, 7), { finish: "MALFORMED_FUNCTION_CALL" });
  const failure = { kind: "retry", reason: "malformed_function_call", fault: "request" };
  expect(await events(streamReply([silent, bad]))).toEqual([
    { kind: "usage", usage: expect.objectContaining({ input: 9, output: 7 }) as unknown },
    { kind: "error", failure },
  ]);
});

it.each(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])(
  "the Google adapter treats %s as a failure, both as JSON and mid-stream",
  async (finish) => {
    const reply = jsonReply(candidateResponse([], null, { finish }));
    const failure = { kind: "retry", reason: finish.toLowerCase(), fault: "request" };
    expect((await answerTo(GEMINI, call, reply)).answer).toEqual({ kind: "failure", failure });
    const list = await events(
      streamReply([candidateResponse([{ text: "Hel" }]), candidateResponse([], null, { finish })]),
    );
    expect(list.at(-1)).toEqual({ kind: "error", failure });
  },
);

it.each([
  ["STOP", "stop"],
  ["MAX_TOKENS", "length"],
  ["SAFETY", "content_filter"],
  ["RECITATION", "content_filter"],
  ["BLOCKLIST", "content_filter"],
  ["PROHIBITED_CONTENT", "content_filter"],
  ["SPII", "content_filter"],
  ["LANGUAGE", "content_filter"],
  ["MODEL_ARMOR", "content_filter"],
  ["IMAGE_SAFETY", "content_filter"],
  ["IMAGE_PROHIBITED_CONTENT", "content_filter"],
  ["IMAGE_RECITATION", "content_filter"],
  ["OTHER", "length"],
  ["FINISH_REASON_UNSPECIFIED", "length"],
  ["NO_IMAGE", "length"],
  ["constructor", "length"],
])("the Google adapter maps finishReason %s to %s", async (reason, expected) => {
  const reply = candidateResponse([{ text: "x" }], null, { finish: reason });
  const { answer } = await answerTo(GEMINI, call, jsonReply(reply));
  expect(wholeMessageOf(answer).finish).toBe(expected);
  expect(messageOf(await events(streamReply([reply]))).finish).toBe(expected);
});

it("the Google adapter ends a stream successfully only if every candidate has finished", async () => {
  const list = await events(
    streamReply([
      candidateResponse([{ text: "a" }], usageMetadata(9, 1), { index: 0 }),
      candidateResponse([{ text: "b" }], usageMetadata(9, 2), { index: 1 }),
      candidateResponse([], usageMetadata(9, 3), { index: 1, finish: "STOP" }),
      candidateResponse([], usageMetadata(9, 4), { index: 0, finish: "MAX_TOKENS" }),
    ]),
  );
  const finished = list.flatMap((event) => (event.kind === "chunk" ? event.chunk.choices : []));
  expect(finished.filter((choice) => choice.finish_reason !== null)).toMatchObject([
    { index: 1, finish_reason: "stop" },
    { index: 0, finish_reason: "length" },
  ]);
  const partial = list.flatMap((event) => (event.kind === "usage" ? [event.partial ?? false] : []));
  expect(partial).toEqual([true, true, true, false]);
  expect(list.at(-1)).toEqual({ kind: "end" });
  const open = await events(
    streamReply([
      candidateResponse([{ text: "a" }]),
      candidateResponse([{ text: "b" }], null, { index: 1, finish: "STOP" }),
    ]),
  );
  expect(kinds(open)).not.toContain("end");
});

const candidateEvents = (n: number, ...chunks: object[]) =>
  eventsOf(GEMINI, { ...call, body: { messages: [], n } }, streamReply(chunks));

const partial = (list: readonly StreamEvent[]) =>
  list.flatMap((event) => (event.kind === "usage" ? [event.partial ?? false] : []));

it("the Google adapter reports complete usage only after every requested candidate has finished", async () => {
  const first = candidateResponse([{ text: "a" }], usageMetadata(9, 1), {
    index: 0,
    finish: "STOP",
  });
  const second = candidateResponse([{ text: "b" }], usageMetadata(9, 40), {
    index: 1,
    finish: "STOP",
  });
  expect(partial(await candidateEvents(2, first, second))).toEqual([true, false]);
  expect(partial(await candidateEvents(1, first))).toEqual([false]);
});

it("the Google adapter emits no end event for a broken or empty stream", async () => {
  expect(kinds(await events(GOOGLE_FAILURES.cut))).toEqual(["chunk", "text", "usage"]);
  expect(await events(streamReply([]))).toEqual([]);
});

it("the Google adapter finishes every choice if Google blocks the output mid-stream, despite a proxy's [DONE]", async () => {
  const { headers, body } = streamReply([
    candidateResponse([{ text: "a" }]),
    candidateResponse([{ text: "b" }], null, { index: 1 }),
    { promptFeedback: { blockReason: "SAFETY" } },
  ]);
  const list = await events({ headers, body: `${String(body)}data: [DONE]\r\n\r\n` });
  expect(JSON.stringify(list).match(/content_filter/g)).toHaveLength(2);
  expect(list.at(-1)).toEqual({ kind: "end" });
});

const bytes = (text: string) => new TextEncoder().encode(text);

const FAILURE = { kind: "error", failure: { kind: "overloaded", reason: "503" } };

it("the Google adapter reads an error in plain JSON after the events, on one line or several", async () => {
  for (const bare of [JSON.stringify(UNAVAILABLE, null, 2), JSON.stringify(UNAVAILABLE)]) {
    const mid = streamReply([candidateResponse([{ text: "Hel" }])], bare);
    expect((await events(mid)).at(-1)).toEqual(FAILURE);
    expect(await events(streamReply([], bare))).toEqual([FAILURE]);
    await expectSameHoweverCut(GEMINI, call, mid);
  }
  const array = streamReply([], JSON.stringify([UNAVAILABLE]));
  expect(await events(array)).toEqual([FAILURE]);
});

it("the Google adapter ends the stream at an error event, without returning the error's text", async () => {
  expect(await events(GOOGLE_FAILURES.errorFirst)).toEqual([FAILURE]);
  const late = streamReply(
    [candidateResponse([{ text: "Hel" }]), UNAVAILABLE],
    googleEvent(candidateResponse([{ text: "lo" }])),
  );
  const list = await events(late);
  expect(kinds(list)).toEqual(["chunk", "text", "usage", "error"]);
  for (const one of [...list, ...(await events(GOOGLE_FAILURES.errorMid))]) {
    expect(JSON.stringify(one)).not.toMatch(/canary/);
  }
  const bad = errorBody(400, "INVALID_ARGUMENT", `Bad schema. Key ${CANARY.key}`);
  const [refusal] = await events(streamReply([bad]));
  expect(refusal).toMatchObject({
    failure: { kind: "refused", message: "Bad schema. Key [removed]" },
  });
});

it("the Google adapter treats text that is neither JSON nor an error as a failure, unless the output is complete", async () => {
  expect(
    (await events(streamReply([candidateResponse([{ text: "a" }])], "<html>"))).at(-1),
  ).toEqual({
    kind: "error",
    failure: { kind: "retry", reason: "bad_event" },
  });
  const whole = candidateResponse([{ text: "a" }], null, { finish: "STOP" });
  expect((await events(streamReply([whole], "<html>"))).at(-1)).toEqual({ kind: "end" });
  const { headers } = streamReply([]);
  expect((await events({ headers, body: "data: {oops\r\n\r\n" })).at(-1)).toMatchObject({
    failure: { kind: "retry", reason: "bad_event" },
  });
});

it("the Google adapter keeps at most 64 Ki characters of lines without a field name", () => {
  const decoder = new SseDecoder();
  decoder.push(bytes(": comment\nid: 1\nretry: 2\nevent: a\ndata: b\ndata\n\n"));
  expect(decoder.foreign).toBe("");
  decoder.push(bytes('{\n  "error": {}\n}'));
  decoder.flush();
  expect(decoder.foreign).toBe('{\n  "error": {}\n}\n');
  for (let line = 0; line < 100; line++) decoder.push(bytes(`${"x".repeat(70_000)}\n`));
  expect(decoder.foreign.length).toBeLessThan(2 * 70_000);
});
