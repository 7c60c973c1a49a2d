import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, describe, it } from "vitest";
import type { MockScript } from "../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, OPENING, usageChunk } from "../fixtures/openai-replies.ts";
import { disconnectAtEveryByte } from "./support/every-byte.ts";
import { HELLO, steps, stream } from "./support/stream-scripts.ts";
import { scripted, startStream, startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

/** Micro-credits for 12 prompt tokens at 1 and 3 output tokens at 2. */
const EXACT = 18;
const rest = [FINISH, usageChunk(), DONE];

/** Sent as fast as possible. Sixteen line breaks are one token. */
const FLOOD = 40; // 80 MB: more than sockets buffer
const flood: MockScript = scripted(async (response) => {
  startStream(response);
  for (let i = 0; i < FLOOD && !response.closed; i++) {
    flooded += 1;
    if (!writeMuch(response)) await takenOrGone(response);
  }
  response.end(stream(...rest));
});
const writeMuch = (response: ServerResponse): boolean =>
  response.write(stream(chunkOf({ content: "\n".repeat(1_000_000) })));

/**
 * Fills the sockets of a client that doesn't read, and ends once they are emptied. Ends after the
 * flood, too: a slow machine can see no stall before the gateway gives up on the client.
 */
const stalling: MockScript = scripted(async (response) => {
  startStream(response);
  let isStalled = false;
  for (let i = 0; i < STALLING && !isStalled && !response.closed; i++) {
    if (writeMuch(response)) continue;
    const taken = takenOrGone(response);
    isStalled = await Promise.race([taken.then(() => false), sleep(STALLED_MS, true)]);
    await taken;
  }
  response.end(stream(...rest));
});
const STALLED_MS = 200;
const STALLING = 8; // 16 MB, still more than sockets buffer
/**
 * Just above the tokens of `stalling`. With a higher cap, the end is too far away to wait for if
 * the machine is slow.
 */
const STALLING_TOKENS = 520_000;
/** Maximum tokens of the flood. */
const FLOOD_TOKENS = 4_000_000;
const FLOOD_CREDITS = 10_000_000;
let flooded = 0;
async function takenOrGone(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(response, "drain", { signal }), once(response, "close", { signal })]);
  over.abort();
}

let fixture: UpstreamFixture;
/** Regions that soon give up on a client that reads nothing. */
let hurried: UpstreamFixture;
beforeAll(async () => {
  const names = ["steps", "flood", "stalling", "late-usage"];
  const models = Object.fromEntries(names.map((name) => [name, [name]]));
  const scripts = {
    steps: steps(1, OPENING, ...Array.from("Hello", (content) => chunkOf({ content })), ...rest),
    flood,
    stalling,
    "late-usage": steps(100, stream(...HELLO), FINISH, stream(usageChunk(), DONE)),
  };
  // Long enough to drain any response on a slow machine.
  const bindings = { DRAIN_S: "24" };
  [fixture, hurried] = await Promise.all([
    startUpstreamFixture({ models, scripts, bindings, maxOutput: FLOOD_TOKENS }),
    startUpstreamFixture({
      models,
      scripts,
      bindings: { ...bindings, READER_STUCK_MS: "400" },
      maxOutput: FLOOD_TOKENS,
    }),
  ]);
});
afterAll(() => Promise.all([fixture.stop(), hurried.stop()]));

it("a client that disconnects at any byte of a stream pays the same as a client that reads the whole stream", async () => {
  // With one token, the stream is almost over when any output arrives.
  const body = { messages: [{ role: "user", content: "Say it" }], max_tokens: 1, stream: true };
  const cuts = { atOnce: 24, every: 1 };
  const points = await disconnectAtEveryByte(fixture.eu, { model: "steps", ...body }, cuts);
  expect(points).toBeGreaterThan(2000);
  await expect.poll(fixture.inFlight).toBe(0);
});

describe("a client that stops reading", () => {
  it("pauses the provider's stream without losing data", async () => {
    const { key, orgId } = await fixture.organization(FLOOD_CREDITS);
    flooded = 0;
    const client = await fixture.open(key, "flood", { stream: true, max_tokens: FLOOD_TOKENS });
    await client.readUntil((received) => received.length > 1000);
    client.socket.pause();
    await sleep(200);
    expect(flooded).toBeLessThan(FLOOD);
    let tail = "";
    client.socket.on("data", (chunk: Buffer) => (tail = chunk.subarray(-100).toString()));
    client.socket.resume();
    await expect.poll(() => tail).toContain("[DONE]");
    expect(client.received().length).toBeGreaterThan(FLOOD * 2_000_000);
    expect((await fixture.spent(orgId)).micro).toBe(EXACT);
  });

  it("counts as disconnected after a time limit, and pays exactly the reported usage", async () => {
    const { key, orgId } = await hurried.organization(FLOOD_CREDITS);
    const terms = { stream: true, max_tokens: STALLING_TOKENS };
    const client = await hurried.open(key, "stalling", terms);
    await client.readUntil((received) => received.length > 1000);
    client.socket.pause();
    const { micro, held, records } = await hurried.spent(orgId);
    expect({ micro, held }).toEqual({ micro: EXACT, held: 0 });
    expect(records).toMatchObject([{ estimated: false }]);
    await expect.poll(hurried.inFlight).toBe(0);
    await client.reset();
  });

  it("still receives the whole stream after closing only its sending side", async () => {
    const { key, orgId } = await fixture.organization();
    const client = await fixture.open(key, "late-usage", { stream: true });
    await client.readUntil((received) => received.includes("Hello"));
    client.socket.end();
    expect(await client.readUntil((received) => received.includes("[DONE]"))).toBe(true);
    const { micro, held } = await fixture.spent(orgId);
    expect({ micro, held }).toEqual({ micro: EXACT, held: 0 });
    await expect.poll(fixture.inFlight).toBe(0);
    await client.reset();
  });
});
