import * as fc from "fast-check";
import { expect, it } from "vitest";
import { toCompletion } from "../../../src/models/core/output-part.ts";
import type { OutputPart } from "../../../src/models/core/output-part.ts";
import { messagesEndpoint } from "../../../src/models/endpoints/messages.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import { readMessagesCompletion } from "../../../src/models/protocols/messages/host-answer.ts";
import { MessagesStreamReader } from "../../../src/models/protocols/messages/host-messages-reader.ts";
import { callOf, count, receiptOf, streamed, words } from "../both-ways.ts";

/** A thought with Claude's signature. */
const thought = fc
  .record({ thinking: words, signature: fc.stringMatching(/^[A-Za-z0-9+/]{8,40}$/) })
  .map(({ thinking, signature }): OutputPart[] => [
    { kind: "thought", text: thinking },
    { kind: "detail", detail: { type: "anthropic.thinking", thinking, signature } },
  ]);
const text = words.map((word): OutputPart[] => [{ kind: "text", text: word }]);
const call = callOf(fc.stringMatching(/^[a-z]{1,9}$/));
/** The possible output of Claude, in its order. */
const outputs = fc
  .tuple(
    fc.option(thought, { nil: [] }),
    fc.option(text, { nil: [] }),
    fc.array(call, { maxLength: 3 }),
    fc.constantFrom("stop", "length"),
  )
  .filter(([, spoken, calls]) => spoken.length + calls.length > 0)
  .map(([thoughts, spoken, calls, reason]): OutputPart[] =>
    [thoughts, spoken, calls, { kind: "finish" as const, reason }].flat(),
  );
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
  const parsed = messagesEndpoint.parse({ model: "m", max_tokens: 9, messages, stream }, at);
  if (!parsed.ok) throw new Error("refused");
  return parsed.value.reply;
}
const ID = `msg_${"a".repeat(24)}`;

it("a message written by the gateway's endpoint is parsed back to the original output", () => {
  const reply = replyOf(false);
  fc.assert(
    fc.property(outputs, usages, (pieces, usage) => {
      const whole = toCompletion([pieces], usage);
      if (reply.kind !== "json") throw new Error("a stream");
      const written = JSON.stringify(reply.json(whole.body, receiptOf(ID, usage)));
      const read = readMessagesCompletion(
        JSON.parse(written) as Record<string, unknown>,
        null,
        "key",
      );
      expect(read).toEqual(whole);
    }),
  );
});

it("a message stream written by the gateway's endpoint is parsed back to the original pieces", () => {
  const reply = replyOf(true);
  fc.assert(
    fc.property(outputs, usages, (pieces, usage) => {
      const reader = new MessagesStreamReader(null, "key");
      const result = streamed(pieces, reply, { receipt: receiptOf(ID, usage), reader });
      expect(result.received).toEqual(result.sent);
    }),
  );
});
