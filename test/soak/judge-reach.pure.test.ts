import { expect, it } from "vitest";
import { judgeReach } from "../../scripts/soak/judge-answers.ts";
import { START } from "./a-run.ts";

const MUST = { "answers of 200": 5, "forged keys refused": 2, "keys revoked": 1 };
const LONG = { fromMs: START, untilMs: START + 60_000, sent: 80, leftOut: 20 };
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
