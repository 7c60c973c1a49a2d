import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { doorBindings, DOOR_ROWS, NATIVE_ROWS, shapesOf } from "../fixtures/doors-table.ts";
import { answerNatively } from "../fixtures/native-mock.ts";
import { startOpenAiMock } from "../fixtures/openai-mock.ts";
import type { OpenAiMock } from "../fixtures/openai-mock.ts";
import { leaveAtEveryByte } from "./support/every-byte.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import { measured } from "../measured.ts";
import { effort } from "../effort.ts";

/** A long run tests every byte. */
const EVERY = effort(19, 1);

let upstream: OpenAiMock;
let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  upstream = await startOpenAiMock();
  upstream.script(answerNatively);
  // Long enough for every response to end on a slow machine.
  regions = await startTwoRegions({ bindings: { ...doorBindings(upstream.url), DRAIN_S: "20" } });
});
afterAll(() => Promise.all([regions.stop(), upstream.close()]));

/** Each response has about 2 KB as a stream and as JSON. */
const SHAPES = [
  { shape: "a stream", stream: true, text: "one two three" },
  { shape: "a JSON answer", stream: false, text: "word ".repeat(300) },
];

describe.each([...DOOR_ROWS, ...NATIVE_ROWS])(
  "a client of $title that resets its connection",
  (row) => {
    const { good: model } = row.models;
    const shapes = shapesOf(row);
    for (const { shape, stream, text } of SHAPES.filter((one) => shapes.includes(one.stream))) {
      it(`pays once for the generated output, at every byte (step ${EVERY}, ${shape})`, async () => {
        const cuts = { atOnce: 8, every: EVERY, path: row.path };
        const body = row.body({ model, text, stream });
        const points = await leaveAtEveryByte(regions.eu, body, cuts);
        measured({ points });
        expect(points).toBeGreaterThan(500 / EVERY);
      });
    }
  },
);
