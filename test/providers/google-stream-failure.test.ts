import { expect, it } from "vitest";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import {
  errorBody,
  GOOGLE_FAILURES,
  candidateResponse,
  googleEvent,
  streamReply,
  UNAVAILABLE,
} from "../fixtures/google-wire.ts";
import { CANARY } from "../fixtures/wire-scenario.ts";
import type { RawReply } from "../fixtures/wire-scenario.ts";
import { eventsOf, expectSameHoweverCut } from "./adapter-kit.ts";
import { GEMINI, MODEL } from "./google-kit.ts";

const call = { upstreamId: MODEL };
const events = (reply: RawReply) => eventsOf(GEMINI, call, reply);
const kinds = (list: readonly StreamEvent[]) => list.map((event) => event.kind);
const bytes = (text: string) => new TextEncoder().encode(text);

const FAILURE = { kind: "error", failure: { kind: "overloaded", reason: "503" } };

it("the Google adapter reads an error without an event in the body at its end, on one line or several", async () => {
  for (const bare of [JSON.stringify(UNAVAILABLE, null, 2), JSON.stringify(UNAVAILABLE)]) {
    const mid = streamReply([candidateResponse([{ text: "Hel" }])], bare);
    expect((await events(mid)).at(-1)).toEqual(FAILURE);
    expect(await events(streamReply([], bare))).toEqual([FAILURE]);
    await expectSameHoweverCut(GEMINI, call, mid);
  }
  const array = streamReply([], JSON.stringify([UNAVAILABLE]));
  expect(await events(array)).toEqual([FAILURE]);
});

it("the Google adapter ends the stream at an error event, without its text", async () => {
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

it("the Google adapter treats text that is neither JSON nor an error as a failure, unless the output was complete", async () => {
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

it("the Google adapter keeps only lines without a field name, up to 64 Ki", () => {
  const decoder = new SseDecoder();
  decoder.push(bytes(": comment\nid: 1\nretry: 2\nevent: a\ndata: b\ndata\n\n"));
  expect(decoder.foreign).toBe("");
  decoder.push(bytes('{\n  "error": {}\n}'));
  decoder.flush();
  expect(decoder.foreign).toBe('{\n  "error": {}\n}\n');
  for (let line = 0; line < 100; line++) decoder.push(bytes(`${"x".repeat(70_000)}\n`));
  expect(decoder.foreign.length).toBeLessThan(2 * 70_000);
});
