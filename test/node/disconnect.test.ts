import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DOOR_ROWS, modelsOf } from "../fixtures/doors-table.ts";
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
const SHAPES = [
  { shape: "a stream", stream: true, text: "one two three" },
  { shape: "a JSON answer", stream: false, text: "word ".repeat(300) },
];

describe.each(DOOR_ROWS)("a client of the door $name that resets its connection", (row) => {
  const { good: model } = modelsOf(row);
  for (const { shape, stream, text } of SHAPES.filter((one) => row.streams || !one.stream)) {
    it(`at every byte, by ${EVERY}, of ${shape}: every hold resolved, what was generated charged once`, async () => {
      const cuts = { atOnce: 8, every: EVERY, path: row.path };
      const body = row.body({ model, text, stream });
      const points = await leaveAtEveryByte(regions.eu, body, cuts);
      measured({ points });
      expect(points).toBeGreaterThan(500 / EVERY);
    });
  }
});
