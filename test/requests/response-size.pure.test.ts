import * as fc from "fast-check";
import { expect, it } from "vitest";
import { limitCapToMemory } from "../../src/models/requests/hold-bounds.ts";
import type { OutputCap } from "../../src/models/requests/hold-bounds.ts";
import type { ChatBody } from "../../src/models/core/core-request.ts";
import { responsesEndpoint } from "../../src/models/endpoints/responses.ts";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import { createResponseTooLargeFailure } from "../../src/models/core/response-size.ts";
import { JSON_REPLY, STREAM_REPLY } from "./run-fixture.ts";

const MIB = 1024 * 1024;
const AT = { header: () => undefined, query: () => undefined };
const CHAT: ChatBody = { model: "m", messages: [{ role: "user", content: "x" }] };

function parsedAt(endpoint: typeof chatEndpoint, body: object, stream: boolean) {
  const parsed = endpoint.parse(body, AT);
  if (!parsed.ok) throw new Error("refused");
  return { ...parsed.value, reply: stream ? STREAM_REPLY : JSON_REPLY };
}
const CHAT_ASKED = (stream: boolean) => parsedAt(chatEndpoint, CHAT, stream);
const RESPONSES_ASKED = parsedAt(responsesEndpoint, { model: "m", input: "x" }, true);

/** Bytes of one token with its alternatives in OpenAI's format. */
const entry = { token: " and", logprob: -12.345678, bytes: [32, 97, 110, 100] };
const bytesOf = (tops: number): number =>
  JSON.stringify({ ...entry, top_logprobs: Array.from({ length: tops }, () => entry) }).length;

function bodyOf(n: number, top: number | null): ChatBody {
  return { ...CHAT, n, ...(top !== null && { logprobs: true, top_logprobs: top }) };
}

/**
 * Reports whether a response of this size fits in memory, or was rejected because of its content.
 */
function isSound(cap: OutputCap, top: number | null): boolean {
  const fitting = limitCapToMemory(cap, bodyOf(cap.choices, top), CHAT_ASKED(false));
  const each = cap.choices * (4.5 + (top === null ? 0 : bytesOf(top)));
  if (fitting.ok) {
    const { whole } = fitting.value;
    return whole * each < 20 * MIB && (whole === cap.whole || !cap.isAsked);
  }
  const { failure } = fitting;
  const param = failure.kind === "invalid_request" ? failure.param : null;
  const isNamed = param === (top === null ? "n" : "logprobs");
  return isNamed && cap.isAsked && cap.whole * each * 3 > 20 * MIB;
}

it("an output cap above the response size limit is lowered, or rejected if set by the client", () => {
  const caps = fc.record({
    whole: fc.integer({ min: 64, max: 200_000 }),
    least: fc.constant(64),
    choices: fc.constantFrom(1, 2, 10, 128),
    isAsked: fc.boolean(),
  });
  const tops = fc.constantFrom(null, 0, 1, 5, 20);
  fc.assert(
    fc.property(caps, tops, (cap, top) => {
      expect(isSound(cap, top)).toBe(true);
    }),
  );
});

it("a stream's output cap isn't limited by size", () => {
  const cap = { whole: 200_000, least: 64, choices: 128, isAsked: true };
  expect(limitCapToMemory(cap, bodyOf(128, 20), CHAT_ASKED(true))).toEqual({
    ok: true,
    value: cap,
  });
});

it("a Responses stream gets a lower output cap, because the last event repeats all log probabilities", () => {
  const body = { ...CHAT, logprobs: true, top_logprobs: 20 };
  const cap = { whole: 100_000, least: 64, choices: 1, isAsked: false };
  const fitting = limitCapToMemory(cap, body, RESPONSES_ASKED);
  if (!fitting.ok) throw new Error("refused");
  expect(fitting.value.whole * bytesOf(20)).toBeLessThan(5 * MIB);
  expect(fitting.value.whole).toBeGreaterThan(1000);
});

it("an oversized JSON response of 128 choices is rejected, and the whole output cap is charged", () => {
  const call = { kind: "chat", upstreamId: "m", stream: false, cap: 20_000 } as const;
  const { signal } = new AbortController();
  const many = createResponseTooLargeFailure({ ...call, signal, body: { ...CHAT, n: 128 } });
  expect(many).toMatchObject({ kind: "refused", param: "n", spent: { usage: null } });
  expect(many.spent?.output).toBeGreaterThan(128 * 20_000);
  expect(createResponseTooLargeFailure({ ...call, signal, body: CHAT })).toEqual({
    kind: "retry",
    reason: "body_too_large",
  });
});
