import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { startProgram } from "./support/program.ts";

const A_SHORT_ONE = ["--minutes", "0.2", "--rate", "30", "--seed", "5"];

it("the soak test finds no violation in 12 s of load with every fault in both regions", async () => {
  const run = startProgram(["scripts/soak.ts", ...A_SHORT_ONE]);
  const code = await run.ended;
  // 3 means that the machine was too slow for timed checks and everything else is right.
  expect([0, 3], run.output()).toContain(code);
  const words = code === 3 ? "not judged: the machine is too slow" : "every invariant is intact";
  for (const text of [words, "seed 5", "healed in", "kills 2"]) {
    expect(run.output()).toContain(text);
  }
  expect(run.output().match(/ (?:intact|not judged) {2}/g)).toHaveLength(11);
});

it("the soak test exits with 130 on Ctrl-C, prints no result, and leaves nothing behind", async () => {
  const run = startProgram(["scripts/soak.ts", "--rate", "20"]);
  expect(await run.says(" of 120 s: "), run.output()).toBe(true);
  const [, directory = ""] = /storage in (.+)/.exec(run.output()) ?? [];
  expect(existsSync(directory)).toBe(true);
  run.child.kill("SIGINT");
  expect(await run.ended).toBe(130);
  expect(run.output()).toContain("nothing was checked");
  expect(existsSync(directory)).toBe(false);
});
