import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ChunkBuilder } from "../../../src/core/chunk-builder.ts";
import type { Receipt } from "../../../src/core/door.ts";
import type { StreamEvent } from "../../../src/core/provider.ts";
import { completionOf } from "../../../src/core/said.ts";
import type { Said } from "../../../src/core/said.ts";
import { messagesDoor } from "../../../src/doors/messages.ts";
import { SseDecoder } from "../../../src/http/server-sent-events.ts";
import type { Usage } from "../../../src/lib/usage.ts";
import { messagesAnswer } from "../../../src/wires/messages/host-answer.ts";
import { MessagesReader } from "../../../src/wires/messages/host-messages-reader.ts";
import { messageOf } from "../../providers/adapter-kit.ts";

const words = fc.string({ minLength: 1 });
/** A thought as Claude signs it. */
const thought = fc
  .record({ thinking: words, signature: fc.stringMatching(/^[A-Za-z0-9+/]{8,40}$/) })
  .map(({ thinking, signature }): Said[] => [
    { kind: "thought", text: thinking },
    { kind: "detail", detail: { type: "anthropic.thinking", thinking, signature } },
  ]);
const text = words.map((said): Said[] => [{ kind: "text", text: said }]);
const call = fc
  .record({
    id: fc.uuid(),
    name: fc.stringMatching(/^[a-z]{1,9}$/),
    input: fc.dictionary(words, words),
  })
  .map(({ id, name, input }): Said => ({
    kind: "call",
    id,
    name,
    arguments: JSON.stringify(input),
  }));
/** What Claude may say, in its order. */
const said = fc
  .tuple(
    fc.option(thought, { nil: [] }),
    fc.option(text, { nil: [] }),
    fc.array(call, { maxLength: 3 }),
    fc.constantFrom("stop", "length"),
  )
  .filter(([, spoken, calls]) => spoken.length + calls.length > 0)
  .map(([thoughts, spoken, calls, reason]): Said[] =>
    [thoughts, spoken, calls, { kind: "finish" as const, reason }].flat(),
  );
const count = fc.nat(1_000_000);
const usages: fc.Arbitrary<Usage> = fc.record({
  input: count,
  cacheRead: count,
  cacheWrite: count,
  output: count,
  reasoning: fc.constant(0),
});

const at = { header: () => undefined, query: () => undefined };
function replyOf(stream: boolean) {
  const messages = [{ role: "user", content: "x" }];
  const asked = messagesDoor.parse({ model: "m", max_tokens: 9, messages, stream }, at);
  if (!asked.ok) throw new Error("refused");
  return asked.value.reply;
}
const receiptOf = (usage: Usage): Receipt => ({
  id: `msg_${"a".repeat(24)}`,
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

it("a message that our door writes says to our reader of Claude's what was said", () => {
  const reply = replyOf(false);
  fc.assert(
    fc.property(said, usages, (pieces, usage) => {
      const whole = completionOf([pieces], usage);
      if (reply.kind !== "json") throw new Error("a stream");
      const written = JSON.stringify(reply.json(whole.body, receiptOf(usage)));
      const read = messagesAnswer(JSON.parse(written) as Record<string, unknown>, null, "key");
      expect(read).toEqual(whole);
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
      const bytes = new TextEncoder().encode(
        writer.begin(null) + sent.join("") + writer.end(receipt),
      );
      const reader = new MessagesReader(null, "key");
      const read: StreamEvent[] = [];
      for (const { name, data } of new SseDecoder().events(bytes)) {
        read.push(...reader.read(data, name));
      }
      const want = messageOf([...events, { kind: "usage", usage }, { kind: "end" }]);
      expect(messageOf(read)).toEqual(want);
      expect(read.at(-1)).toEqual({ kind: "end" });
    }),
  );
});
