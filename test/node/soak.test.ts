import { expect, it } from "vitest";
import { startProgram } from "./support/program.ts";

it.each([
  ["--minutes", "0", "--minutes must be a number from 0 to 1440"],
  ["--rate", "4", "--rate must be a number from 5 to 500"],
  ["--seed", "x", "--seed must be a whole number from 0"],
])("%s %s is refused before anything is started", async (flag, value, words) => {
  const run = startProgram(["scripts/soak.ts", flag, value]);
  expect(await run.ended).toBe(2);
  expect(run.output()).toContain(words);
  expect(run.output()).not.toContain("starting both regions");
});
