import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { gatedKey } from "./key-admissions-fixture.ts";
import { command, limit, AdmissionsModel } from "./key-admissions-model.ts";
import { differences } from "./wallet-fixture.ts";
import { effortFor } from "../effort.ts";

afterEach(() => shiftClock(null));

it("a wallet enforces limits, holds and revocations in any order of requests, retries, evictions and changes", async () => {
  const script = fc.record({ limit, commands: fc.array(command, { maxLength: 40, size: "max" }) });
  const result = await fc.check(
    fc.asyncProperty(script, async (one) => {
      shiftClock(null);
      const key = await gatedKey({ rpmLimit: one.limit, balance: 120 });
      const model = new AdmissionsModel(key, one.limit);
      for (const each of one.commands) await model.run(each);
      expect(await differences(key.stub)).toEqual([]);
    }),
    { numRuns: effortFor(8, 400), seed: 11, endOnFailure: true },
  );
  expect(
    result.failed ? `${fc.defaultReportMessage(result)} ${String(result.errorInstance)}` : "",
  ).toBe("");
});
