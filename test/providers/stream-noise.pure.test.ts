import { describe, expect, it } from "vitest";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { FrameReader, StreamReader } from "../../src/models/core/frame-reader.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import { createSseReader } from "../../src/models/core/frame-reader.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { CohereStream } from "../../src/models/protocols/cohere/answer.ts";
import {
  ConverseReader,
  createConverseStreamReader,
} from "../../src/models/protocols/converse/converse-stream.ts";
import { GeminiChunkReader as GeminiReader } from "../../src/models/protocols/gemini/answer.ts";
import { MessagesStreamReader } from "../../src/models/protocols/messages/host-messages-reader.ts";
import { ClaudeNativeReader as NativeMessages } from "../../src/models/protocols/messages/host-native.ts";
import * as responses from "../../src/models/protocols/responses/host-stream.ts";
import { WorkersAiStream } from "../../src/models/protocols/workers-ai/answer.ts";
import { ANTHROPIC_CHAT } from "../fixtures/anthropic-replies.ts";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { COHERE_CHAT } from "../fixtures/cohere-replies.ts";
import { encodeFrame, joinBytes } from "../fixtures/event-stream.ts";
import { GOOGLE_CHAT } from "../fixtures/google-replies.ts";
import { HOST_REPLIES } from "../fixtures/hosts-replies.ts";
import { RESPONSES_CHAT } from "../fixtures/responses-replies.ts";
import type { ChatScenarios } from "../fixtures/reply-scenarios.ts";
import { WORKERS_AI_CHAT, WORKERS_AI_OPENAI_CHAT } from "../fixtures/workers-ai-replies.ts";
import { messageOf, splitBytes } from "./adapter-kit.ts";

/** Every protocol of server-sent events with its recorded streams. */
const PROTOCOLS: readonly (readonly [string, () => FrameReader, ChatScenarios])[] = [
  ["Messages", () => new MessagesStreamReader(null, "key"), ANTHROPIC_CHAT],
  ["Messages, native", () => new NativeMessages("key", false), ANTHROPIC_CHAT],
  ["Responses", () => new responses.ResponsesChunkReader(), RESPONSES_CHAT],
  ["Responses, native", () => new responses.ResponsesNativeReader(), RESPONSES_CHAT],
  ["Gemini", () => new GeminiReader(() => []), GOOGLE_CHAT],
  ["Cohere", () => new CohereStream(), COHERE_CHAT],
  ["Workers AI, its own form", () => new WorkersAiStream(256), WORKERS_AI_CHAT],
  ["Workers AI, OpenAI's form", () => new WorkersAiStream(256), WORKERS_AI_OPENAI_CHAT],
  ...HOST_REPLIES.map(({ dialect: { profile }, chat }) => {
    const usage = PROVIDER_HOST_PROFILES.get(profile)?.usageShape;
    return [`chat at ${profile}`, () => new ChatChunkReader("key", usage), chat] as const;
  }),
];

/** Frames that belong to no response. */
const NOISE = [
  ": keepalive",
  ":",
  "data: : keepalive",
  "data: :",
  "data:",
  "data: null",
  "data: []",
  "data: {",
  "data: <html>",
  "data: [done]",
  "event: ping",
  "id: 7\nretry: 10",
].map((lines) => `${lines}\n\n`);
/** Frames that can't take the response back once every choice has finished. */
const AFTER = [
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}\n\n',
  "event: error\ndata: no\n\n",
  'data: {"error":{"message":"no","code":500}}\n\n',
];
const DONE = "data: [DONE]\n\n";

function eventsOf(reader: StreamReader, parts: readonly Uint8Array[]): StreamEvent[] {
  return [...parts.flatMap((part) => reader.push(part)), ...reader.flush()];
}

/** Returns the result for a client and the meter, without IDs that an adapter generates. */
function resultOf(events: readonly StreamEvent[]): string {
  const native = events.flatMap((event) => {
    if (event.kind === "text") return [JSON.parse(event.json)];
    return event.kind === "native" ? [event.text, event.finish] : [];
  });
  const result = { ...messageOf(events), native: native.join("|"), end: events.at(-1)?.kind };
  return JSON.stringify(result).replaceAll(/"call_[A-Za-z0-9]{24}"/g, '"call_minted"');
}

function isFinish(event: StreamEvent): boolean {
  return event.kind === "native"
    ? event.finish !== null
    : event.kind === "chunk" && event.chunk.choices.some((one) => one.finish_reason !== null);
}

/** Returns the number of frames after which every choice has finished. */
function finishedAt(frames: readonly string[], reader: () => FrameReader): number {
  const at = frames.findIndex((_, index) => {
    const bytes = new TextEncoder().encode(frames.slice(0, index + 1).join(""));
    return createSseReader(reader()).push(bytes).some(isFinish);
  });
  return at === -1 ? frames.length : at + 1;
}

describe.each(PROTOCOLS)("a provider's stream in the protocol %s", (_, reader, chat) => {
  const streamed = Object.entries(chat).filter(([, { stream }]) => (stream.status ?? 200) === 200);
  it.each(streamed)(
    "becomes the same output if unknown events and comments are added to %s",
    (__, { stream }) => {
      const body = String(stream.body);
      const readText = (text: string): string =>
        resultOf(eventsOf(createSseReader(reader()), [new TextEncoder().encode(text)]));
      const expected = readText(body);
      expect(expected).toContain('"end":"end"');
      const frames = body.split(/(?<=\n\n|\r\n\r\n)/);
      const finished = finishedAt(frames, reader);
      const reads = (at: number, noise: readonly string[]): void => {
        const noisy = frames.toSpliced(at, 0, ...noise).join("");
        expect(readText(noisy), `${JSON.stringify(noise)} before frame ${at}`).toBe(expected);
      };
      for (const noise of NOISE) reads(1, [noise]);
      for (let at = 0; at <= frames.length; at++) {
        reads(at, NOISE);
        for (const noise of at < finished ? [] : AFTER) reads(at, [noise]);
      }
      expect(readText(body + DONE + DONE), "with two more markers").toBe(expected);
      const lines = body.replaceAll("\r\n", "\n");
      expect(readText(`\ufeff${body}`), "with a byte order mark").toBe(expected);
      expect(readText(lines.replaceAll("\n", "\r\n")), "with CRLF").toBe(expected);
      expect(readText(lines.replaceAll("\n", "\r")), "with CR").toBe(expected);
      const bytes = splitBytes(new TextEncoder().encode(frames.join(NOISE[0])));
      expect(resultOf(eventsOf(createSseReader(reader()), bytes)), "byte by byte").toBe(expected);
    },
  );
});

function read(parts: readonly Uint8Array[]): string {
  return resultOf(eventsOf(createConverseStreamReader(new ConverseReader(null, [])), parts));
}

describe("a provider's stream in Bedrock's protocol", () => {
  const unreadable = new TextEncoder().encode("{");
  const noise = ["citation", "contentBlockDelta", "metadata"].map((type) =>
    encodeFrame([[":event-type", type]], unreadable),
  );
  const exception = encodeFrame(
    [
      [":message-type", "exception"],
      [":exception-type", "internalServerException"],
    ],
    new TextEncoder().encode('{"message":"no"}'),
  );
  it.each(Object.entries(BEDROCK_CHAT))(
    "becomes the same output if unknown events are added to %s",
    (_, { stream }) => {
      const frames = framesOf(stream.body as Uint8Array);
      const expected = read(frames);
      expect(expected).toContain('"end":"end"');
      for (let at = 0; at <= frames.length; at++) {
        for (const one of noise) expect(read(frames.toSpliced(at, 0, one))).toBe(expected);
      }
      for (const junk of [exception, Uint8Array.of(1, 2, 3), new Uint8Array(64)]) {
        expect(read([...frames, junk])).toBe(expected);
      }
      const last = frames.length - 1; // between the stop reason and the usage
      expect(read(frames.toSpliced(last, 0, exception))).toBe(expected);
      expect(read(splitBytes(joinBytes(frames)))).toBe(expected);
    },
  );
});

function framesOf(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
    frames.push(bytes.subarray(at, at + length));
    at += length;
  }
  return frames;
}
