import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import type { Report } from "../../scripts/soak/report.ts";
import { startProgram } from "./support/program.ts";

const A_SHORT_ONE = ["--minutes", "0.2", "--rate", "30", "--seed", "5"];

it("12 s of load and of every fault, in both regions, leave every invariant intact", async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "soak-report-"));
  const file = path.join(directory, "report.json");
  try {
    const run = startProgram(["scripts/soak.ts", ...A_SHORT_ONE, "--json", file]);
    const code = await run.ended;
    // 3: a machine too slow says nothing of the gateway; what it could judge is intact.
    expect([0, 3], run.output()).toContain(code);
    const words = code === 3 ? "not judged: the machine is too slow" : "every invariant is intact";
    expect(run.output()).toContain(words);
    const report = JSON.parse(readFileSync(file, "utf8")) as Report;
    expect(report).toMatchObject({ seed: 5, isIntact: true, healed: { isQuiet: true } });
    expect(report.verdicts).toHaveLength(15);
    expect(report.faults).toMatchObject({ kills: 2 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

it("Ctrl-C ends it with 130, with nothing judged and nothing left behind", async () => {
  const run = startProgram(["scripts/soak.ts", "--rate", "20"]);
  expect(await run.says(" of 120 s: "), run.output()).toBe(true);
  const [, directory = ""] = /storage in (.+)/.exec(run.output()) ?? [];
  expect(existsSync(directory)).toBe(true);
  run.child.kill("SIGINT");
  expect(await run.ended).toBe(130);
  expect(run.output()).toContain("nothing was judged");
  expect(existsSync(directory)).toBe(false);
});
