import * as fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { anthropic } from "../../src/models/providers/anthropic.ts";
import { mergeLaterUsage, messagesUsage } from "../../src/models/protocols/messages/host-answer.ts";
import { STOP, messageReply, streamReply, textEvents } from "../fixtures/anthropic-wire.ts";
import { answerTo, eventsOf } from "./adapter-kit.ts";

afterEach(() => vi.restoreAllMocks());

const PROVIDER = anthropic({ baseUrl: "https://upstream.test/v1", secret: "k", geo: null });

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

it("usage reported by Anthropic excludes cache reads and writes from input, and includes thinking in output", () => {
  const raw = {
    input_tokens: 10,
    cache_creation_input_tokens: 200,
    cache_read_input_tokens: 3000,
    cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 0 },
    output_tokens: 50,
    output_tokens_details: { thinking_tokens: 30 },
  };
  const usage = { input: 10, cacheRead: 3000, cacheWrite: 200, output: 50, reasoning: 30 };
  expect(messagesUsage(raw)).toEqual(usage);
  const more = { ...raw, output_tokens_details: { thinking_tokens: 51 } };
  expect(messagesUsage(more), "no part is more than its whole").toMatchObject({ reasoning: 50 });
});

it("usage reported by Anthropic is converted to prompt tokens whose sum is the whole prompt", async () => {
  const cached = String(messageReply("", "end_turn", 50).body).replace(
    '"cache_creation_input_tokens":0',
    '"cache_creation_input_tokens":200',
  );
  const reply = { ...messageReply("", "end_turn"), body: cached };
  const { answer } = await answerTo(PROVIDER, {}, reply);
  expect(answer).toMatchObject({
    usage: { input: 8, cacheRead: 4, cacheWrite: 200, output: 50, reasoning: 0 },
    body: {
      usage: {
        prompt_tokens: 212,
        completion_tokens: 50,
        total_tokens: 262,
        prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 200 },
      },
    },
  });
});

it("usage at the end of an Anthropic stream takes priority over usage at its start", async () => {
  const begun = start(
    '"usage":{"input_tokens":43,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,"output_tokens":1}',
  );
  const corrected = ',"usage":{"input_tokens":61,"cache_read_input_tokens":null,"output_tokens":9}';
  expect(await reports(begun, ...textEvents(0, "Hi"), delta(corrected), STOP)).toEqual([
    { input: 43, cacheRead: 5, cacheWrite: 7, output: 1, reasoning: 0, partial: true },
    { input: 61, cacheRead: 5, cacheWrite: 7, output: 9, reasoning: 0, partial: false },
  ]);
  const outputAlone = ',"usage":{"output_tokens":9}';
  expect((await reports(begun, delta(outputAlone), STOP)).at(-1)).toMatchObject({
    input: 43,
    output: 9,
    partial: false,
  });
});

it("usage at the start of an Anthropic stream stays partial if the end has no output count", async () => {
  const begun = start('"usage":{"input_tokens":43,"output_tokens":1}');
  for (const usage of ["", ',"usage":{"input_tokens":44}', ',"usage":{"output_tokens":null}']) {
    const found = await reports(begun, ...textEvents(0, "Hi"), delta(usage), STOP);
    expect(found.map(({ partial }) => partial)).toEqual([true, true]);
  }
});

it("usage before the stop reason of an Anthropic stream is partial", async () => {
  const counts = ',"usage":{"input_tokens":3,"output_tokens":4}';
  const found = await reports(start('"x":1'), delta(counts, "null"), delta(counts), STOP);
  expect(found.map(({ partial }) => partial)).toEqual([true, false]);
});

it("missing or invalid usage of Anthropic stays unknown", async () => {
  for (const usage of ["{}", "null", '{"input_tokens":-1,"output_tokens":2}']) {
    const body = `{"type":"message","content":[],"stop_reason":"end_turn","usage":${usage}}`;
    const { answer } = await answerTo(PROVIDER, {}, { ...messageReply("", "end_turn"), body });
    expect(answer).toMatchObject({ kind: "json", usage: null });
    expect(JSON.stringify(answer)).not.toContain("prompt_tokens");
  }
  expect(await reports(start('"usage":{"input_tokens":"8"}'), delta(""), STOP)).toEqual([]);
});

it("usage reported by Anthropic is converted to five counts without overlap, or none", () => {
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
      const usage = messagesUsage(mergeLaterUsage(first, second));
      if (usage === null) return;
      for (const count of Object.values(usage)) {
        expect(Number.isSafeInteger(count) && count >= 0 && count <= 1e9).toBe(true);
      }
      expect(usage.reasoning).toBeLessThanOrEqual(usage.output);
    }),
  );
});
