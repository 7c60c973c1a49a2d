import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chunkOf,
  DONE,
  FINISH,
  OPENING,
  TEXT_ANSWER,
  USAGE,
  usageChunk,
} from "../fixtures/openai-replies.ts";
import type { MockScript } from "../fixtures/openai-mock.ts";
import {
  byCharacter,
  byteByByte,
  cuts,
  ends,
  endsLater,
  HELLO,
  numbered,
  stays,
  stream,
  toolCall,
} from "./support/stream-scripts.ts";
import {
  contentOf,
  CREDITS,
  eventsOf,
  scripted,
  startStream,
  startUpstreamFixture,
} from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

/** Micro-credits for 12 prompt tokens at 1 and 3 output tokens at 2. */
const EXACT = 18;
/** The estimates of every prompt and of the text "Hello" in one or two pieces. */
const PROMPT = 26;
const GUESS = 1;
const TRICKY = 'He said "data: [DONE]\n\ndata: [DONE]" — 世界 🌍 \u2028 ok';

const huge = (tokens: number) => usageChunk({ ...USAGE, completion_tokens: tokens });

/** Streams that end well, with their text and cost. */
const WELL: Readonly<Record<string, { script: MockScript; text?: string; estimated?: true }>> = {
  "usage on the finish chunk": {
    script: ends(
      OPENING,
      chunkOf({ content: "Hello" }),
      chunkOf({}, "stop", { usage: USAGE }),
      DONE,
    ),
  },
  "usage on a chunk with text": {
    script: ends(OPENING, chunkOf({ content: "Hello" }, null, { usage: USAGE }), FINISH, DONE),
  },
  "usage twice, of which the last counts": {
    script: ends(huge(1), ...TEXT_ANSWER, huge(2), usageChunk(), DONE),
  },
  "text and finish in one chunk": {
    script: ends(chunkOf({ role: "assistant", content: "Hello" }, "stop"), usageChunk(), DONE),
  },
  "two [DONE]": { script: ends(...TEXT_ANSWER, usageChunk(), DONE, DONE) },
  "events after [DONE]": {
    script: ends(...TEXT_ANSWER, usageChunk(), DONE, chunkOf({ content: "!" }), huge(900), DONE),
  },
  "usage without [DONE]": { script: ends(...TEXT_ANSWER, usageChunk()) },
  "a cut after the finish reason and usage": {
    script: cuts(...TEXT_ANSWER, usageChunk()),
  },
  "usage, then silence instead of [DONE]": { script: stays(...TEXT_ANSWER, usageChunk()) },
  "no usage": { script: ends(...TEXT_ANSWER, DONE), estimated: true },
  "[DONE] without a finish reason": { script: ends(...HELLO, DONE), estimated: true },
  "neither usage nor [DONE]": { script: ends(...TEXT_ANSWER), estimated: true },
  "usage far above the hold": { script: ends(...TEXT_ANSWER, huge(2e9), DONE), estimated: true },
  CRLF: { script: ends(stream(...TEXT_ANSWER, usageChunk(), DONE).replaceAll("\n", "\r\n")) },
  comments: {
    script: ends(
      ": hi\n\n",
      OPENING,
      ": x\n",
      chunkOf({ content: "Hello" }),
      FINISH,
      usageChunk(),
      DONE,
    ),
  },
  "no last newline": { script: ends(stream(...TEXT_ANSWER, usageChunk(), DONE).trimEnd()) },
  "every byte sent separately, with text that looks like events": {
    script: byteByByte(stream(OPENING, chunkOf({ content: TRICKY }), FINISH, usageChunk(), DONE)),
    text: TRICKY,
  },
};

/** Streams that fail after their first text, with their cost. */
type Badly = { script: MockScript; micro: number; estimated?: true; type?: string };

const BADLY: Readonly<Record<string, Badly>> = {
  "an error in mid-stream": {
    script: endsLater(HELLO, { error: { message: "canary" } }, DONE),
    micro: 0,
  },
  "a cut in mid-stream": {
    script: cuts(...HELLO),
    micro: 0,
  },
  "a cut after usage, before the finish reason": {
    script: cuts(...HELLO, usageChunk()),
    micro: 0,
  },
  "an end without a finish reason": { script: ends(...HELLO), micro: 0 },
  "bad JSON": { script: endsLater(HELLO, 'data: {"cho\n\n'), micro: 0 },
  "a line of 10 MB": {
    script: endsLater(HELLO, `data: "${"x".repeat(10 << 20)}"\n\n`),
    micro: PROMPT + 2,
    estimated: true,
    type: "invalid_request_error", // earlier output was delivered and is charged
  },
  silence: {
    script: stays(...HELLO),
    micro: PROMPT + 2,
    estimated: true,
  },
  "silence after partial usage": {
    script: stays(OPENING, chunkOf({ content: "Hello" }, null, { usage: USAGE })),
    micro: EXACT,
    estimated: true,
  },
  "silence after usage of the prompt": {
    script: stays(usageChunk({ ...USAGE, completion_tokens: 0 }), ...HELLO),
    micro: USAGE.prompt_tokens + 2,
    estimated: true,
  },
  "silence in the middle of an event": {
    script: stays(...HELLO, 'data: {"choices":[{"del'),
    micro: PROMPT + 2,
    estimated: true,
  },
  "a cap that is ignored": {
    script: scripted(async (response) => {
      startStream(response).write(stream(OPENING));
      const line = stream(chunkOf({ content: "Hello there ".repeat(50) }));
      while (!response.closed && response.write(line)) await sleep(1);
    }),
    micro: PROMPT + 2 * 100,
    estimated: true,
  },
};

let fixture: UpstreamFixture;
/** Regions with a very short timeout for a silent provider, which a slow machine also reaches. */
let impatient: UpstreamFixture;
beforeAll(async () => {
  const all = Object.entries({ ...WELL, ...BADLY }).map(([name, { script }]) => [name, script]);
  const scripts: Record<string, MockScript> = {
    ...(Object.fromEntries(all) as Record<string, MockScript>),
    drain: ends(...TEXT_ANSWER, huge(900_000_000), DONE),
    numbered: numbered(),
    tool: toolCall(),
    tiny: byCharacter(),
  };
  const models = Object.fromEntries(Object.keys(scripts).map((name) => [name, [name]]));
  [fixture, impatient] = await Promise.all([
    startUpstreamFixture({ models, scripts }),
    startUpstreamFixture({ models, scripts, bindings: { UPSTREAM_IDLE_MS: "300" } }),
  ]);
});
afterAll(() => Promise.all([fixture.stop(), impatient.stop()]));

const fixtureOf = (name: string): UpstreamFixture =>
  name.includes("silence") ? impatient : fixture;

describe("a completed stream", () => {
  it.each(Object.entries(WELL))(
    "delivers all text and one [DONE], and is charged once: %s",
    async (name, want) => {
      const { organization, send, spent, inFlight } = fixtureOf(name);
      const { key, orgId } = await organization();
      const options = { stream: true, stream_options: { include_usage: true } };
      const answer = await send(key, name, options);
      expect(contentOf(answer.text)).toBe(want.text ?? "Hello");
      const events = eventsOf(answer.text);
      expect(events.filter((event) => event === "data: [DONE]")).toHaveLength(1);
      expect(events.at(-1)).toBe("data: [DONE]");
      const { micro, held, records } = await spent(orgId);
      expect(events.at(-2)).toMatchObject({ choices: [], usage: { cost_micro: micro } });
      expect(records).toMatchObject([{ estimated: want.estimated === true, finishReason: "stop" }]);
      expect(held).toBe(0);
      expect(micro).toBe(want.estimated === true ? PROMPT + 2 * GUESS : EXACT);
      await expect.poll(inFlight).toBe(0);
    },
  );
});

describe("a stream that fails after its first text", () => {
  it.each(Object.entries(BADLY))(
    "ends with an error event instead of [DONE], and is charged as expected: %s",
    async (name, want) => {
      const { organization, send, spent, inFlight } = fixtureOf(name);
      const { key, orgId } = await organization();
      const answer = await send(key, name, { stream: true });
      expect(answer.status).toBe(200);
      expect(contentOf(answer.text)).toMatch(/^Hello/);
      expect(eventsOf(answer.text).at(-1)).toMatchObject({
        error: { type: want.type ?? "upstream_error" },
      });
      expect(answer.text).not.toMatch(/\[DONE\]|canary/);
      const { micro, held, records } = await spent(orgId);
      expect({ micro, held }).toEqual({ micro: want.micro, held: 0 });
      expect(records).toMatchObject(
        want.micro === 0 ? [] : [{ estimated: want.estimated === true, finishReason: null }],
      );
      await expect.poll(inFlight).toBe(0);
    },
  );
});

it("a charge above the balance is reduced to the balance", async () => {
  const { key, orgId } = await fixture.organization();
  const answer = await fixture.send(key, "drain", { stream: true });
  expect(eventsOf(answer.text).at(-1)).toBe("data: [DONE]");
  expect((await fixture.spent(orgId)).micro).toBe(CREDITS);
});

it.each(["tool", "tiny"])("a valid stream that arrives in %s pieces completes", async (name) => {
  const { key, orgId } = await fixture.organization();
  const answer = await fixture.send(key, name, { stream: true, max_tokens: 400 });
  expect(eventsOf(answer.text).at(-1)).toBe("data: [DONE]");
  const { records } = await fixture.spent(orgId);
  expect(records[0]?.estimated).toBe(true);
  const output = records[0]?.usage.output ?? 0;
  expect(output).toBeGreaterThan(200);
  expect(output).toBeLessThanOrEqual(400);
});

it("50 concurrent streams each return the right text, ID and charge", async () => {
  const { key, orgId } = await fixture.organization();
  const numbers = Array.from({ length: 50 }, (_, at) => at);
  const answers = await Promise.all(
    numbers.map((at) =>
      fixture.send(key, "numbered", {
        stream: true,
        messages: [{ role: "user", content: `${at}` }],
      }),
    ),
  );
  const ids = new Set<unknown>();
  for (const at of numbers) {
    const text = answers[at]?.text ?? "";
    expect(contentOf(text)).toBe(`<${at}>`.repeat(20));
    const own = new Set(eventsOf(text).flatMap((event) => (event as { id?: string }).id ?? []));
    expect(own.size).toBe(1);
    for (const id of own) ids.add(id);
  }
  expect(ids.size).toBe(50);
  const { micro, records } = await fixture.spent(orgId);
  expect([micro, records.length]).toEqual([50 * EXACT, 50]);
});
