import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import { createSseReader } from "../../src/models/core/frame-reader.ts";
import * as replies from "../fixtures/openai-replies.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { at, mutatedText, mutations } from "./mutate.ts";
import type { Mutation } from "./mutate.ts";
import { pieces } from "./pieces.ts";
import { wholeEvents } from "./reference-sse.ts";
import { mustBeValidStream } from "./valid-events.ts";

const encoder = new TextEncoder();

const cuts = fc.array(fc.nat(5000), { maxLength: 8 });
const LINES = [
  "data: a",
  "data:b",
  "data:  c",
  "data",
  "data: ",
  "data: [DONE]",
  'data: {"世":"😀"}',
  "event: error",
  "event:ping",
  "event",
  "id: 7",
  "retry: 10",
  ": comment",
  ":",
  "foo: bar",
  "DATA: no",
  " data: no",
  "data : no",
  "\ufeffdata: mark",
  "data: \ufeffkept",
  "",
  "",
  "",
  "\0",
  "x".repeat(70),
];
const text = fc
  .array(fc.tuple(fc.constantFrom(...LINES), fc.constantFrom("\n", "\n", "\r\n", "\r", "")), {
    maxLength: 14,
  })
  .map((lines) => lines.flat().join(""));

function readTwice([whole, where]: [string, number[]]): CheckResult {
  const decoder = new SseDecoder();
  const parts = pieces(encoder.encode(whole), where);
  const events = [...parts.flatMap((part) => decoder.events(part)), ...decoder.flushEvents()];
  mustEqual(events, wholeEvents(whole), "other events");
  mustHold(!decoder.overflowed, "an overflow");
  return events.length > 0 ? "accepted" : "refused";
}

describe("a generated event stream", () => {
  it(
    `produces the same events in two parsers, however the stream is split, for ${runsOf("event streams")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const inputs = fc.tuple(text, cuts);
      const checking = { inputs, show: JSON.stringify, check: readTwice };
      expect(await findFaults("event streams", checking)).toBe("");
    },
  );
});

const { chunkOf, CHUNK, FINISH, OPENING, USAGE, usageChunk } = replies;
const call = (index: number, more: object): object => chunkOf({ tool_calls: [{ index, ...more }] });
/** Complete streams in OpenAI's format, payload by payload. */
const STREAMS: readonly (readonly unknown[])[] = [
  [...replies.TEXT_ANSWER, "[DONE]"],
  [...replies.TEXT_ANSWER, usageChunk(), "[DONE]"],
  [OPENING, chunkOf({ content: "Grüße, \ufeff世界 😀\ndata: [DONE]\n\n" }), FINISH, "[DONE]"],
  [
    OPENING,
    call(0, { id: "call_a", type: "function", function: { name: "f", arguments: "" } }),
    call(0, { function: { arguments: '{"city":' } }),
    call(1, { id: "call_b", type: "function", function: { name: "g", arguments: "{}" } }),
    call(0, { function: { arguments: '"Oslo"}' } }),
    chunkOf({}, "tool_calls"),
    usageChunk(),
    "[DONE]",
  ],
  [chunkOf({ role: "assistant", content: "a" }, "stop", { usage: USAGE }), "[DONE]"],
  [0, 1].map((index) => Object.assign({ choices: [{ index, delta: { content: "x" } }] }, CHUNK)),
  [OPENING, chunkOf({ reasoning_content: "Hm." }), { error: { message: "no", code: 500 } }],
];
const SECRET = "sk-secret-of-ours-1234567890";
/** Lines that aren't payloads and have no effect. */
const QUIET = [": keep-alive", "id: 1", "retry: 5", "data:", "x", "\0\0"];
type Input = {
  readonly stream: number;
  readonly cuts: readonly number[];
  readonly end: string;
  /** Changed payloads and lines that the provider doesn't send, each before a payload. */
  readonly changed: readonly { readonly place: number; readonly mutation: Mutation }[];
  readonly noise: readonly { readonly place: number; readonly line: string }[];
};
const input: fc.Arbitrary<Input> = fc.record({
  stream: fc.nat(STREAMS.length - 1),
  cuts,
  end: fc.constantFrom("\n", "\r\n", "\r"),
  changed: fc.array(fc.record({ place: fc.nat(10), mutation: mutations(1) }), { maxLength: 2 }),
  noise: fc.array(
    fc.record({
      place: fc.nat(10),
      line: fc.constantFrom(
        ...QUIET,
        "event: ping\ndata: {}",
        'data: {"type":"ping"}',
        "data: {",
        "data: null",
        "data: []",
        'event: error\ndata: {"message":"no"}',
        'data: {"error":"no"}',
        "data: <html>",
        `data: {"error":{"message":"${SECRET}"}}`,
        "data: [DONE]",
      ),
    }),
    { maxLength: 3 },
  ),
});

function textOf({ stream, end, changed, noise }: Input): string {
  const payloads = at(STREAMS, stream).map((one) => (one === "[DONE]" ? one : JSON.stringify(one)));
  for (const { place, mutation } of changed) {
    const index = place % payloads.length;
    const seed = at(STREAMS, stream)[index];
    if (seed !== "[DONE]") payloads[index] = mutatedText([seed], mutation);
  }
  const events = payloads.map((payload) => `data: ${payload.replaceAll(/[\r\n]/g, " ")}`);
  for (const { place, line } of noise) events.splice(place % (events.length + 1), 0, line);
  return events
    .map((event) => `${event}\n\n`)
    .join("")
    .replaceAll("\n", end);
}

/** Returns the events of a stream in these pieces, without IDs that the adapter generates. */
function read(parts: readonly Uint8Array[]): { events: StreamEvent[]; ended: boolean } {
  const reader = createSseReader(new ChatChunkReader(SECRET));
  const events = [...parts.flatMap((part) => reader.push(part)), ...reader.flush()];
  return { events, ended: reader.ended };
}

function unminted(events: readonly StreamEvent[]): string {
  return JSON.stringify(events).replaceAll(/"call_[0-9A-Za-z]{24}"/g, '"call_minted"');
}

function isLast({ kind }: StreamEvent): boolean {
  return kind === "end" || kind === "error";
}

/**
 * Checks that the events stay the same for any split, without ineffective lines, and with other
 * line ends.
 */
function sameEvents(one: Input): CheckResult {
  const bytes = encoder.encode(textOf(one));
  const { events, ended } = read([bytes]);
  const cut = read(pieces(bytes, one.cuts));
  mustHold(
    unminted(cut.events) === unminted(events),
    "other events for other cuts",
    cut.events,
    events,
  );
  if (one.noise.every(({ line }) => QUIET.includes(line))) {
    const plain = read([encoder.encode(textOf({ ...one, end: "\n", noise: [] }))]);
    mustHold(unminted(plain.events) === unminted(events), "other events for noise", events);
  }
  mustBeValidStream(events);
  mustHold(ended || !events.some(isLast), "it goes on after its end", events);
  mustHold(!JSON.stringify(events).includes(SECRET), "our key", events);
  return events.at(-1)?.kind === "end" ? "accepted" : "refused";
}

describe("a provider's generated stream", () => {
  it(
    `produces the same events or an error, however the stream is split or damaged, for ${runsOf("upstream streams")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: input, show: textOf, check: sameEvents };
      expect(await findFaults("upstream streams", checking)).toBe("");
    },
  );
});
