import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { MockScript } from "../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, usageChunk } from "../fixtures/openai-wire.ts";
import { HELLO, stays, stream } from "./support/stream-scripts.ts";
import { eventsOf, scripted, startStream, startUpstreamWorld } from "./support/upstream-world.ts";
import type { World } from "./support/upstream-world.ts";

const DEADLINE_MS = 1000;
const COMMENT = ": keep-alive";

/** "Hello", so many times something every few milliseconds, and a good end. */
const paced = (times: number, text: string): MockScript =>
  scripted(async (response) => {
    startStream(response).write(stream(...HELLO));
    for (let i = 0; i < times && !response.closed; i++) {
      // oxlint-disable-next-line no-await-in-loop -- a slow model
      await sleep(10);
      response.write(text);
    }
    response.end(stream(FINISH, usageChunk(), DONE));
  });

let world: World;
beforeAll(async () => {
  world = await startUpstreamWorld({
    models: {
      silent: ["silent"],
      endless: ["endless"],
      pause: ["pause"],
      comments: ["comments"],
      never: ["mock-silent"],
    },
    scripts: {
      silent: stays(...HELLO),
      endless: paced(1000, stream(chunkOf({ content: "." }))),
      pause: paced(20, ""),
      comments: paced(20, ": still thinking\n\n"),
    },
    bindings: { REQUEST_DEADLINE_S: String(DEADLINE_MS / 1000), KEEP_ALIVE_MS: "40" },
  });
});
afterAll(() => world.stop());

it.each(["silent", "endless"])(
  "the deadline ends an upstream that is %s: an error event, settled, the hold not expired",
  async (model) => {
    const { key, orgId } = await world.organization();
    const startedMs = performance.now();
    const answer = await world.ask(key, model, { stream: true });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(DEADLINE_MS - 50);
    expect(eventsOf(answer.text).at(-1)).toMatchObject({ error: { type: "upstream_error" } });
    const { held, records } = await world.spent(orgId);
    expect(held).toBe(0);
    expect(records).toMatchObject([{ estimated: true, finishReason: null }]);
    expect(records[0]?.usage.output).toBeGreaterThan(0);
    await expect.poll(world.inFlight).toBe(0);
  },
);

it("the deadline before the first byte: 502, nothing charged", async () => {
  const { key, orgId } = await world.organization();
  const answers = await Promise.all(
    [true, false].map((streamed) => world.ask(key, "never", { stream: streamed })),
  );
  expect(answers.map((answer) => answer.status)).toEqual([502, 502]);
  expect(await world.spent(orgId)).toEqual({ micro: 0, held: 0, records: [] });
  await expect.poll(world.inFlight).toBe(0);
});

it.each(["pause", "comments"])(
  "a client that gets nothing is sent comments, though the upstream sends %s; they disturb nothing",
  async (model) => {
    const { key, orgId } = await world.organization();
    const answer = await world.ask(key, model, { stream: true });
    const events = eventsOf(answer.text);
    expect(events.filter((event) => event === COMMENT).length).toBeGreaterThanOrEqual(2);
    expect(events.at(-1)).toBe("data: [DONE]");
    expect(answer.text).not.toContain("thinking");
    expect((await world.spent(orgId)).micro).toBe(18);
  },
);
