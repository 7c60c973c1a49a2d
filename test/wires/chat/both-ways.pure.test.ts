import * as fc from "fast-check";
import { expect, it } from "vitest";
import { readUsage } from "../../../src/core/chat-usage.ts";
import { ChunkBuilder } from "../../../src/core/chunk-builder.ts";
import type { Receipt } from "../../../src/core/door.ts";
import type { JsonObject } from "../../../src/core/provider.ts";
import { completionOf } from "../../../src/core/said.ts";
import type { Said } from "../../../src/core/said.ts";
import { wireUsage } from "../../../src/core/wire-usage.ts";
import { chatDoor } from "../../../src/doors/chat.ts";
import { SseDecoder } from "../../../src/http/server-sent-events.ts";
import type { Usage } from "../../../src/lib/usage.ts";
import { chatAnswer } from "../../../src/wires/chat/answer.ts";
import { ChunkReader } from "../../../src/wires/chat/chunks.ts";
import { messageOf } from "../../providers/adapter-kit.ts";

const words = fc.string({ minLength: 1 });
const call = fc
  .record({ id: fc.uuid(), input: fc.dictionary(words, words) })
  .map(({ id, input }): Said => {
    return { kind: "call", id, name: "look", arguments: JSON.stringify(input) };
  });
/** What a model may say. */
const said = fc
  .tuple(
    fc.option(words, { nil: "" }),
    fc.option(words, { nil: "" }),
    fc.uniqueArray(call, { maxLength: 3, selector: (one) => ("id" in one ? one.id : "") }),
    fc.constantFrom("stop", "length", "content_filter"),
  )
  .filter(([, text, calls]) => text !== "" || calls.length > 0)
  .map(([thought, text, calls, reason]): Said[] => {
    const pieces: Said[] = [];
    if (thought !== "") pieces.push({ kind: "thought", text: thought });
    if (text !== "") pieces.push({ kind: "text", text });
    return pieces.concat(calls, { kind: "finish", reason });
  });
const count = fc.nat(1_000_000);
const usages: fc.Arbitrary<Usage> = fc
  .record({ input: count, cacheRead: count, cacheWrite: count, output: count, reasoning: count })
  .filter(({ input, output, reasoning }) => input > 0 && output > 0 && reasoning <= output);

function replyOf(stream: boolean) {
  const body = { model: "m", messages: [{ role: "user", content: "x" }], stream };
  const options = stream ? { stream_options: { include_usage: true } } : {};
  const at = { header: () => undefined, query: () => undefined };
  const asked = chatDoor.parse({ ...body, ...options }, at);
  if (!asked.ok) throw new Error("refused");
  return asked.value.reply;
}
const receiptOf = (usage: Usage): Receipt => ({
  id: "chatcmpl-1",
  model: "m",
  created: 1,
  ended: 2,
  promptTokens: 1,
  keeps: false,
  usage,
  costMicro: 1,
  estimated: false,
  finishReason: "stop",
  capLoweredByMoney: false,
});

it("usage as it is written is read as it was", () => {
  fc.assert(
    fc.property(usages, (usage) => {
      expect(readUsage(JSON.parse(JSON.stringify(wireUsage(usage))))).toEqual(usage);
    }),
  );
});

it("a completion that our door writes says to our reader of OpenAI's what was said", () => {
  const reply = replyOf(false);
  fc.assert(
    fc.property(said, usages, (pieces, usage) => {
      if (reply.kind !== "json") throw new Error("a stream");
      const whole = completionOf([pieces], usage);
      const written = JSON.stringify(reply.json(whole.body, receiptOf(usage)));
      const read = chatAnswer(JSON.parse(written) as JsonObject);
      expect(read).toMatchObject(whole);
    }),
  );
});

it("so does a stream of it, piece by piece", () => {
  const reply = replyOf(true);
  fc.assert(
    fc.property(said, usages, (pieces, usage) => {
      if (reply.kind !== "stream") throw new Error("no stream");
      const receipt = receiptOf(usage);
      const builder = new ChunkBuilder();
      const events = pieces.flatMap((piece) => builder.say(piece));
      const writer = reply.stream(receipt);
      const sent = events.map((event) => {
        if (event.kind === "text") return writer.text(event.index, event.json);
        return event.kind === "chunk" ? writer.chunk(event.chunk) : "";
      });
      const text = writer.begin(null) + sent.join("") + writer.end(receipt);
      const reader = new ChunkReader();
      const read = [...new SseDecoder().events(new TextEncoder().encode(text))].flatMap(
        ({ name, data }) => reader.read(data, name),
      );
      const want = messageOf([...events, { kind: "usage", usage }, { kind: "end" }]);
      expect(messageOf(read)).toEqual(want);
      expect(read.at(-1)).toEqual({ kind: "end" });
    }),
  );
});
