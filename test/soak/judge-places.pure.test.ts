import { expect, it } from "vitest";
import { judgePlaces } from "../../scripts/soak/judge-limits.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { range, refusalOf, START, traceOf } from "./a-run.ts";

const slow: Partial<Trace> = { answeredMs: START + 50, endedMs: START + 3000 };
const crowd = range(16).map(() => traceOf(slow));

it("is intact when a full crowd is answered", () => {
  expect(judgePlaces([crowd], 16)).toMatchObject({
    broken: [],
    figure: "16 requests in 1 crowds of 16 at once, at rest",
  });
});

it("is broken by one place that is missing, and by any other end", () => {
  const shed = refusalOf(503, "api_error", { code: "overloaded", ...slow });
  for (const one of [
    shed,
    traceOf({ ...slow, fate: "cut" }),
    traceOf({ ...slow, fate: "stuck" }),
  ]) {
    expect(judgePlaces([crowd, [...crowd.slice(1), one]], 16).broken).toHaveLength(1);
  }
});

it("is not proven by a crowd that came one after the other, or too small, or by none", () => {
  const early = traceOf({ ...slow, endedMs: START + 49 });
  expect(judgePlaces([[...crowd.slice(1), early]], 16).broken).toHaveLength(1);
  expect(judgePlaces([crowd.slice(1)], 16).broken).toEqual([
    "nothing proven: org in eu had 15 of 16 in flight at once",
  ]);
  expect(judgePlaces([], 16).broken).toHaveLength(1);
});
