import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaveAtEveryByte } from "./support/every-byte.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import { measured } from "../measured.ts";
import { effort } from "../effort.ts";

/** In a long run at every byte. */
const EVERY = effort(7, 1);

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions({ bindings: { DRAIN_S: "1" } });
});
afterAll(() => regions.stop());

/** About 2 KB on the wire, as a stream and as JSON. */
const streamed = {
  model: "sandbox/echo",
  stream: true,
  messages: [{ role: "user", content: "one two three" }],
};
const plain = { model: "sandbox/echo", messages: [{ role: "user", content: "word ".repeat(300) }] };

describe("a client that resets its connection", () => {
  for (const [shape, body] of [
    ["a stream", streamed],
    ["a JSON answer", plain],
  ] as const) {
    it(`at every byte, by ${EVERY}, of ${shape}: every hold resolved, what was generated charged once`, async () => {
      const points = await leaveAtEveryByte(regions.eu, body, { atOnce: 8, every: EVERY });
      measured({ points });
      expect(points).toBeGreaterThan(1000 / EVERY);
    });
  }
});
