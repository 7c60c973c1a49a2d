import { expect, it } from "vitest";
import { startProgram } from "./support/program.ts";

it("npm run figures measures a row by its tests, and says it", async () => {
  const run = startProgram(["scripts/figures.ts", "--only", "9", "--dry"]);
  expect([await run.ended, run.output()]).toEqual([0, expect.stringMatching(/0 for [\d,]+ keys/)]);
});

it.each([
  [["--only", "17"], "--only takes numbers from 1 to 16"],
  [["--all"], "Unknown option '--all'"],
])("%j is wrong usage: 2, and nothing is measured", async (parameters, says) => {
  const run = startProgram(["scripts/figures.ts", ...parameters]);
  expect(await run.ended).toBe(2);
  expect(run.output()).toContain(says);
});
