import { expect, it } from "vitest";
import { FilePace } from "../../src/models/core/file-pace.ts";
import { FILE_READ_BYTES } from "../../src/models/core/gathering-body.ts";

it("all files of an isolate together get one full read per millisecond", async () => {
  const pace = new FilePace();
  const startMs = Date.now();
  await Promise.all(Array.from({ length: 100 }, () => pace.turnAfter(FILE_READ_BYTES)));
  expect(Date.now() - startMs).toBeGreaterThanOrEqual(90);
});
