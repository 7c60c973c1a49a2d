import { expect, it } from "vitest";
import { judgeReach, loadOf } from "../../scripts/soak/judge-answers.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { refusalOf, START, traceOf } from "./a-run.ts";

const MUST = { "answers of 200": 5, "forged keys refused": 2, "keys revoked": 1 };
const LONG = {
  fromMs: START,
  untilMs: START + 60_000,
  sent: 80,
  leftOut: 20,
  refused: 50,
  drowned: 5,
};
const SHORT = { ...LONG, untilMs: START + 12_000 };

it("a run of a minute or more that did not meet one thing proves nothing", () => {
  expect(judgeReach({ ...MUST, kills: 1 }, LONG).broken).toEqual([]);
  expect(judgeReach({ ...MUST, kills: 0 }, LONG).broken).toEqual(["no kills"]);
});

it.each(Object.keys(MUST))("a run of any length without %s proves nothing", (what) => {
  expect(judgeReach({ ...MUST, kills: 0 }, SHORT).broken).toEqual([]);
  expect(judgeReach({ ...MUST, kills: 9, [what]: 0 }, SHORT).broken).toEqual([`no ${what}`]);
  const unsaid = Object.entries(MUST).filter(([one]) => one !== what);
  expect(judgeReach(Object.fromEntries(unsaid), SHORT).broken).toEqual([`no ${what}`]);
});

it("a machine that left out over a fifth of its requests is too slow to judge by: nothing is broken", () => {
  for (const load of [LONG, SHORT]) {
    const verdict = judgeReach({ ...MUST, kills: 0 }, { ...load, leftOut: 21 });
    expect(verdict).toMatchObject({
      broken: [],
      notJudged: "the machine is too slow: 21 of 101 requests were left out",
    });
    expect(judgeReach(MUST, load)).not.toHaveProperty("notJudged");
  }
});

/** A forged key that was refused so long after it was sent. */
function refusedAfter(ms: number): Trace {
  return refusalOf(401, "invalid_api_key", { kind: "forged", endedMs: START + ms });
}

it("so is one that refused over a tenth of the forged keys late, which asks nothing", () => {
  const prompt = Array.from({ length: 27 }, () => refusedAfter(499));
  const late = [refusedAfter(500), refusedAfter(9000), refusedAfter(16_000)];
  const load = { fromMs: START, untilMs: START + 60_000, leftOut: 0 };
  const others = [traceOf({ endedMs: START + 9000 })];
  const bearable = loadOf([...prompt, ...late, ...others], load);
  expect(bearable).toMatchObject({ sent: 31, refused: 30, drowned: 3 });
  expect(judgeReach({ ...MUST, kills: 0 }, bearable).broken).toEqual(["no kills"]);
  const drowned = loadOf([...prompt.slice(1), ...late, ...others], load);
  expect(judgeReach({ ...MUST, kills: 0 }, drowned)).toMatchObject({
    broken: [],
    notJudged: "the machine is too slow: 3 of 29 forged keys were refused after 500 ms or more",
  });
});
