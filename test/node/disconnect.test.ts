import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  endpointBindings,
  ENDPOINT_ROWS,
  NATIVE_ENDPOINT_ROWS,
  streamFlagsOf,
} from "../fixtures/endpoint-table.ts";
import { nativeMockScript } from "../fixtures/native-mock.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockProvider } from "../fixtures/openai-mock.ts";
import { disconnectAtEveryByte } from "./support/every-byte.ts";
import { startPersistentRegion } from "./support/two-regions.ts";
import type { PersistentRegion } from "./support/two-regions.ts";
import { recordMeasured } from "../measured.ts";
import { effortFor } from "../effort.ts";

/** A long run tests every byte. */
const EVERY = effortFor(19, 1);

let upstream: MockProvider;
let kept: PersistentRegion;
beforeAll(async () => {
  upstream = await startMockProvider();
  upstream.script(nativeMockScript);
  // Long enough for every response to end on a slow machine.
  kept = await startPersistentRegion({ ...endpointBindings(upstream.url), DRAIN_S: "20" });
});
afterAll(() => Promise.all([kept.stop(), upstream.close()]));

/** Each response has about 2 KB as a stream and as JSON. */
const SHAPES = [
  { shape: "a stream", stream: true, text: "one two three" },
  { shape: "a JSON answer", stream: false, text: "word ".repeat(300) },
];

describe.each([...ENDPOINT_ROWS, ...NATIVE_ENDPOINT_ROWS])(
  "a client of $title that resets its connection",
  (row) => {
    const { good: model } = row.models;
    const shapes = streamFlagsOf(row);
    for (const { shape, stream, text } of SHAPES.filter((one) => shapes.includes(one.stream))) {
      it(`pays once for the generated output after a reset at any byte (step ${EVERY}, ${shape})`, async () => {
        const cuts = { atOnce: 8, every: EVERY, path: row.path };
        const body = row.body({ model, text, stream });
        const points = await disconnectAtEveryByte(kept.region(), body, cuts);
        recordMeasured({ points });
        expect(points).toBeGreaterThan(500 / EVERY);
      });
    }
  },
);
