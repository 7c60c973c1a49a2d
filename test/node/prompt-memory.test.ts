import path from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { LiveObjectCounts } from "../fixtures/live-objects.ts";
import { HELLO, stays } from "./support/stream-scripts.ts";
import { startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

const ENTRY = path.join(import.meta.dirname, "../fixtures/live-objects-worker.ts");
let fixture: UpstreamFixture;
beforeAll(async () => {
  vi.stubEnv("MINIFLARE_WORKERD_V8_FLAGS", "--expose-gc");
  fixture = await startUpstreamFixture({
    entry: ENTRY,
    models: { good: ["good"], fails: ["mock-500"], open: ["open"] },
    scripts: { open: stays(...HELLO) },
    bindings: { METRICS_DELAY_MS: "0", DRAIN_S: "0" },
  });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await fixture.stop();
});

/** Polls, because counting and logging continue briefly after a response. */
async function kept(): Promise<LiveObjectCounts> {
  const answer = await fetch(`${fixture.eu.url}__live-objects`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return JSON.parse(text) as LiveObjectCounts;
}

it("the Worker releases the memory of ended requests and of the prompt of an open stream", async () => {
  const { key } = await fixture.organization();
  expect((await fixture.send(key, "good")).status).toBe(200);
  expect((await fixture.send(key, "good", { stream: true })).status).toBe(200);
  expect((await fixture.send(key, "fails")).status).toBe(502);
  const ended: LiveObjectCounts = { requests: [0, 3], chats: [0, 3] };
  await expect.poll(kept).toEqual(ended);
  const open = await fixture.open(key, "open", { stream: true });
  await open.readUntil((received) => received.includes("Hello"));
  const streaming: LiveObjectCounts = { requests: [1, 4], chats: [0, 4] };
  await expect.poll(kept).toEqual(streaming);
  await open.reset();
  const closed: LiveObjectCounts = { requests: [0, 4], chats: [0, 4] };
  await expect.poll(kept).toEqual(closed);
});
