import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { MockScript } from "../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, usageChunk } from "../fixtures/openai-replies.ts";
import { HELLO, stays, stream } from "./support/stream-scripts.ts";
import {
  eventsOf,
  scripted,
  startStream,
  startUpstreamFixture,
} from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

/** Long enough for a first word on a slow machine. */
const DEADLINE_MS = 2000;
const COMMENT = ": keep-alive";

/**
 * Sends "Hello", then text every few ms while the client reads. Ends well once the test has seen
 * enough.
 */
const paced = (text: string): MockScript =>
  scripted(async (response) => {
    startStream(response).write(stream(...HELLO));
    while (!response.closed && !stopSignal.isEnough) {
      await sleep(10);
      response.write(text);
    }
    response.end(stream(FINISH, usageChunk(), DONE));
  });
/** Tells the test's provider to end. */
const stopSignal = { isEnough: false };

let fixture: UpstreamFixture;
/** Regions with a short limit for requests. */
let brief: UpstreamFixture;
beforeAll(async () => {
  const models = {
    silent: ["silent"],
    endless: ["endless"],
    pause: ["pause"],
    comments: ["comments"],
    never: ["mock-silent"],
  };
  const scripts = {
    silent: stays(...HELLO),
    endless: paced(stream(chunkOf({ content: "." }))),
    pause: paced(""),
    comments: paced(": still thinking\n\n"),
  };
  const REQUEST_DEADLINE_S = String(DEADLINE_MS / 1000);
  [fixture, brief] = await Promise.all([
    startUpstreamFixture({ models, scripts, bindings: { KEEP_ALIVE_MS: "40" } }),
    startUpstreamFixture({ models, scripts, bindings: { REQUEST_DEADLINE_S } }),
  ]);
});
afterAll(() => Promise.all([fixture.stop(), brief.stop()]));

it.each(["silent", "endless"])(
  "a stream whose provider is %s ends at the deadline with an error event, and is charged",
  async (model) => {
    const { key, orgId } = await brief.organization();
    const startedMs = performance.now();
    const answer = await brief.send(key, model, { stream: true });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(DEADLINE_MS - 50);
    expect(eventsOf(answer.text).at(-1)).toMatchObject({ error: { type: "upstream_error" } });
    const { held, records } = await brief.spent(orgId);
    expect(held).toBe(0);
    expect(records).toMatchObject([{ estimated: true, finishReason: null }]);
    expect(records[0]?.usage.output).toBeGreaterThan(0);
    await expect.poll(brief.inFlight).toBe(0);
  },
);

it("a request gets an uncharged 502 if the deadline passes before the first byte", async () => {
  const { key, orgId } = await brief.organization();
  const answers = await Promise.all(
    [true, false].map((streamed) => brief.send(key, "never", { stream: streamed })),
  );
  expect(answers.map((answer) => answer.status)).toEqual([502, 502]);
  expect(await brief.spent(orgId)).toEqual({ micro: 0, held: 0, records: [] });
  await expect.poll(brief.inFlight).toBe(0);
});

it.each(["pause", "comments"])(
  "a stream contains keep-alive comments while the provider sends %s",
  async (model) => {
    stopSignal.isEnough = false;
    const { key, orgId } = await fixture.organization();
    const client = await fixture.open(key, model, { stream: true });
    await client.readUntil((received) => received.toString().split(COMMENT).length > 2);
    stopSignal.isEnough = true;
    expect(await client.readUntil((received) => received.includes("data: [DONE]"))).toBe(true);
    expect(client.received().toString()).not.toContain("thinking");
    const { micro, records } = await fixture.spent(orgId);
    expect([micro, records.length]).toEqual([18, 1]);
    await client.reset();
  },
);
