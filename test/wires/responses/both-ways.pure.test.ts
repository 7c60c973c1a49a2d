import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ChunkBuilder } from "../../../src/core/chunk-builder.ts";
import type { StreamEvent } from "../../../src/core/provider.ts";
import { completionOf } from "../../../src/core/said.ts";
import type { Said } from "../../../src/core/said.ts";
import { SseDecoder } from "../../../src/http/server-sent-events.ts";
import type { Usage } from "../../../src/lib/usage.ts";
import { responsesAnswer } from "../../../src/wires/responses/host-answer.ts";
import { ChunkReader } from "../../../src/wires/responses/host-stream.ts";
import { messageOf } from "../../providers/adapter-kit.ts";
import { asked, BODY, RECEIPT } from "./stream-kit.ts";

const words = fc.string({ minLength: 1 });
const call = fc
  .record({ id: fc.uuid(), input: fc.dictionary(words, words) })
  .map(({ id, input }): Said => {
    return { kind: "call", id, name: "plain", arguments: JSON.stringify(input) };
  });
/** What a model may say without its thoughts, which only their maker reads. */
const said = fc
  .tuple(
    fc.option(
      words.map((text): Said[] => [{ kind: "text", text }]),
      { nil: [] },
    ),
    fc.uniqueArray(call, { maxLength: 3, selector: (one) => ("id" in one ? one.id : "") }),
    fc.constantFrom("stop", "length"),
  )
  .filter(([text, calls]) => text.length + calls.length > 0)
  .map(([text, calls, reason]): Said[] =>
    [text, calls, { kind: "finish" as const, reason }].flat(),
  );
const count = fc.nat(1_000_000);
const usages: fc.Arbitrary<Usage> = fc
  .record({
    input: fc.integer({ min: 1, max: 1_000_000 }),
    cacheRead: count,
    cacheWrite: fc.constant(0),
    output: count,
  })
  .chain((usage) => fc.nat(usage.output).map((reasoning) => Object.assign({ reasoning }, usage)));
const finishIn = (pieces: readonly Said[]): string =>
  pieces.flatMap((piece) => (piece.kind === "finish" ? [piece.reason] : []))[0] ?? "stop";

it("a response that our door writes says to our reader of OpenAI's what was said", () => {
  const { reply } = asked(BODY);
  fc.assert(
    fc.property(said, usages, (pieces, usage) => {
      const whole = completionOf([pieces], usage);
      if (reply.kind !== "json") throw new Error("a stream");
      const receipt = { ...RECEIPT, usage, finishReason: finishIn(pieces) };
      const written = JSON.stringify(reply.json(whole.body, receipt));
      expect(responsesAnswer(JSON.parse(written) as Record<string, unknown>, "key")).toEqual(whole);
    }),
  );
});

it("so does a stream of it, piece by piece", () => {
  const { reply } = asked({ ...BODY, stream: true });
  fc.assert(
    fc.property(said, usages, (pieces, usage) => {
      if (reply.kind !== "stream") throw new Error("no stream");
      const receipt = { ...RECEIPT, usage, finishReason: finishIn(pieces) };
      const builder = new ChunkBuilder();
      const events = pieces.flatMap((piece) => builder.say(piece));
      const writer = reply.stream(receipt);
      const sent = events.map((event) => {
        if (event.kind === "text") return writer.text(event.index, event.json);
        return event.kind === "chunk" ? writer.chunk(event.chunk) : "";
      });
      const text = writer.begin(null) + sent.join("") + writer.end(receipt);
      const reader = new ChunkReader("key");
      const read: StreamEvent[] = [];
      for (const { name, data } of new SseDecoder().events(new TextEncoder().encode(text))) {
        if (!reader.ended) read.push(...reader.read(data, name));
      }
      const want = messageOf([...events, { kind: "usage", usage }, { kind: "end" }]);
      expect(messageOf(read)).toEqual(want);
      expect(read.at(-1)).toEqual({ kind: "end" });
    }),
  );
});
