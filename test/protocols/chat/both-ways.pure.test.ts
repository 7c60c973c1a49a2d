import * as fc from "fast-check";
import { expect, it } from "vitest";
import { readUsage, toOpenAiUsage } from "../../../src/models/core/openai-usage.ts";
import type { JsonObject } from "../../../src/models/core/provider.ts";
import { toCompletion } from "../../../src/models/core/output-part.ts";
import type { OutputPart } from "../../../src/models/core/output-part.ts";
import { chatEndpoint } from "../../../src/models/endpoints/chat.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import { readChatCompletion } from "../../../src/models/protocols/chat/answer.ts";
import { ChatChunkReader } from "../../../src/models/protocols/chat/chunks.ts";
import { callsOf, count, receiptOf, streamed, words } from "../both-ways.ts";

/** The possible output of a model. */
const outputs = fc
  .tuple(
    fc.option(words, { nil: "" }),
    fc.option(words, { nil: "" }),
    callsOf(fc.constant("look")),
    fc.constantFrom("stop", "length", "content_filter"),
  )
  .filter(([, text, calls]) => text !== "" || calls.length > 0)
  .map(([thought, text, calls, reason]): OutputPart[] => {
    const pieces: OutputPart[] = [];
    if (thought !== "") pieces.push({ kind: "thought", text: thought });
    if (text !== "") pieces.push({ kind: "text", text });
    return pieces.concat(calls, { kind: "finish", reason });
  });
const usages: fc.Arbitrary<Usage> = fc
  .record({ input: count, cacheRead: count, cacheWrite: count, output: count, reasoning: count })
  .filter(({ input, output, reasoning }) => input > 0 && output > 0 && reasoning <= output);

function replyOf(stream: boolean) {
  const body = { model: "m", messages: [{ role: "user", content: "x" }], stream };
  const options = stream ? { stream_options: { include_usage: true } } : {};
  const at = { header: () => undefined, query: () => undefined };
  const parsed = chatEndpoint.parse({ ...body, ...options }, at);
  if (!parsed.ok) throw new Error("refused");
  return parsed.value.reply;
}
it("chat usage stays unchanged when written and read again", () => {
  fc.assert(
    fc.property(usages, (usage) => {
      expect(readUsage(JSON.parse(JSON.stringify(toOpenAiUsage(usage))))).toEqual(usage);
    }),
  );
});

it("a chat completion written by the gateway's endpoint is parsed back to the original output", () => {
  const reply = replyOf(false);
  fc.assert(
    fc.property(outputs, usages, (pieces, usage) => {
      if (reply.kind !== "json") throw new Error("a stream");
      const whole = toCompletion([pieces], usage);
      const written = JSON.stringify(reply.json(whole.body, receiptOf("chatcmpl-1", usage)));
      const read = readChatCompletion(JSON.parse(written) as JsonObject);
      expect(read).toMatchObject(whole);
    }),
  );
});

it("a chat stream written by the gateway's endpoint is parsed back to the original pieces", () => {
  const reply = replyOf(true);
  fc.assert(
    fc.property(outputs, usages, (pieces, usage) => {
      const receipt = receiptOf("chatcmpl-1", usage);
      const result = streamed(pieces, reply, { receipt, reader: new ChatChunkReader() });
      expect(result.received).toEqual(result.sent);
    }),
  );
});
