import * as fc from "fast-check";
import { expect, it } from "vitest";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import {
  mergeLaterUsage,
  readMessagesUsage,
} from "../../src/models/protocols/messages/host-answer.ts";
import { STOP, streamReply, textEvents } from "../fixtures/anthropic-replies.ts";
import { eventsOf } from "./adapter-kit.ts";

const PROVIDER = createAnthropicProvider({
  baseUrl: "https://upstream.test/v1",
  secret: "k",
  geo: null,
});

function start(usage: string): string {
  return `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],${usage}}}`;
}
function delta(usage: string, reason = '"end_turn"'): string {
  return `{"type":"message_delta","delta":{"stop_reason":${reason},"stop_sequence":null}${usage}}`;
}
async function reports(...data: readonly string[]) {
  const events = await eventsOf(PROVIDER, {}, streamReply(...data));
  return events.flatMap((one) =>
    one.kind === "usage" ? [{ ...one.usage, partial: one.partial ?? false }] : [],
  );
}

it("usage at the end of an Anthropic stream overrides usage at the start", async () => {
  const startEvent = start(
    '"usage":{"input_tokens":43,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,"output_tokens":1}',
  );
  const corrected = ',"usage":{"input_tokens":61,"cache_read_input_tokens":null,"output_tokens":9}';
  expect(await reports(startEvent, ...textEvents(0, "Hi"), delta(corrected), STOP)).toEqual([
    { input: 43, cacheRead: 5, cacheWrite: 7, output: 1, reasoning: 0, partial: true },
    { input: 61, cacheRead: 5, cacheWrite: 7, output: 9, reasoning: 0, partial: false },
  ]);
  const outputAlone = ',"usage":{"output_tokens":9}';
  expect((await reports(startEvent, delta(outputAlone), STOP)).at(-1)).toMatchObject({
    input: 43,
    output: 9,
    partial: false,
  });
});

it("usage that arrives before an Anthropic stream's stop reason counts as partial", async () => {
  const counts = ',"usage":{"input_tokens":3,"output_tokens":4}';
  const found = await reports(start('"x":1'), delta(counts, "null"), delta(counts), STOP);
  expect(found.map(({ partial }) => partial)).toEqual([true, false]);
});

it("usage from Anthropic is converted to five token counts that don't overlap, or to no usage", () => {
  const odd = fc.oneof(fc.nat(2e9), fc.integer(), fc.double(), fc.string(), fc.constant(null));
  const raw = fc.record(
    {
      input_tokens: odd,
      output_tokens: odd,
      cache_read_input_tokens: odd,
      cache_creation_input_tokens: odd,
      output_tokens_details: fc.oneof(odd, fc.record({ thinking_tokens: odd })),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(raw, raw, (first, second) => {
      const usage = readMessagesUsage(mergeLaterUsage(first, second));
      if (usage === null) return;
      for (const count of Object.values(usage)) {
        expect(Number.isSafeInteger(count) && count >= 0 && count <= 1e9).toBe(true);
      }
      expect(usage.reasoning).toBeLessThanOrEqual(usage.output);
    }),
  );
});
