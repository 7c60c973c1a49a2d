import { expect, it } from "vitest";
import { judgeMishaps } from "../../scripts/soak/judge-answers.ts";
import { Log } from "../../scripts/soak/log.ts";
import { START } from "./a-run.ts";

const KILLS = [{ region: "eu", fromMs: START, untilMs: START + 500 }] as const;

function broken(event: string, ms: number): readonly string[] {
  const mishap = { event, region: "us", atMs: START + ms, message: "{}" } as const;
  return judgeMishaps([mishap], KILLS).broken;
}

it.each(["exception", "settle_without_hold", "uncaught"])("%s is a bug at any time", (event) => {
  for (const ms of [-1, 0, 100, 60_000]) expect(broken(event, ms)).toEqual([`us: ${event}: {}`]);
});

it.each(["settlement_unsaved", "settle_unknown"])(
  "%s is one unless a kill was just before",
  (event) => {
    for (const ms of [0, 100, 30_500]) expect(broken(event, ms)).toEqual([]);
    for (const ms of [-1, 30_501]) expect(broken(event, ms)).toHaveLength(1);
    expect(judgeMishaps([{ event, region: "eu", atMs: START, message: "" }], KILLS).figure).toBe(
      "0 such lines, 1 more within 30 s of a kill",
    );
  },
);

it("they are found among what the Workers and their runtime log", () => {
  const log = new Log();
  const lines = [
    '{"event":"request","status":200}',
    '{"event":"exception","name":"TypeError"}',
    '{"event":"settle_unknown","org_id":"org"}',
    "Uncaught (in promise) TypeError: x is not a function",
    "workerd/io/worker.c++:1: uncaught exception; source = Uncaught",
    '{"event":"alert","alert":"x","why":"uncaught"}',
    "NOSENTRY uncaught exception of the cache",
  ];
  for (const message of lines) log.take("eu", { level: "error", message });
  expect(log.mishaps.map(({ message }) => message)).toEqual(lines.slice(1, 5));
});
