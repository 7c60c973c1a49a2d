import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { mutated, SUITES, survivorsOf } from "../../../scripts/figures/mutants.ts";
import type { RanTest } from "../../../scripts/figures/programs.ts";

const ROOT = path.join(import.meta.dirname, "../../..");
const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");
const scratch = path.join(tmpdir(), "copies");
const suite = { test: "test/a.pure.test.ts", title: "never", mutants: [] };
const mutant = { guard: "not one more", file: "src/a.ts", text: "< 1", other: "<= 1" };
const copies = [
  { name: "intact-0", suite, mutant: null },
  { name: "mutant-0-0", suite, mutant },
  { name: "mutant-0-1", suite, mutant: { ...mutant, guard: "not one less" } },
];
const ran = (copy: string, hasPassed: boolean, title = "never more"): RanTest => {
  return {
    file: path.join(scratch, copy, "test/a.pure.test.ts"),
    fullName: title,
    title,
    hasPassed,
    measured: {},
  };
};

describe("a guard to take away", () => {
  it.each(SUITES.flatMap(({ mutants }) => mutants))("stands once in $file: $guard", (one) => {
    const source = read(one.file);
    expect(mutated(source, one)).not.toBe(source);
  });

  it("that is not there, or is there twice, is refused with its name", () => {
    expect(() => mutated("a", mutant)).toThrow(
      '"not one more": its text stands 0 times in src/a.ts',
    );
    expect(() => mutated("< 1 < 1", mutant)).toThrow("stands 2 times");
  });

  it.each(SUITES)("has a test that counts: $test", ({ test, title }) => {
    expect(read(test)).toContain(title);
  });
});

describe("mutants", () => {
  it("that every test of the suite passes with have survived", () => {
    const tests = [ran("intact-0", true), ran("mutant-0-0", false), ran("mutant-0-1", true)];
    expect(survivorsOf(copies, tests)).toEqual(["not one less"]);
  });

  it("are found by the suite's own test alone", () => {
    const other = [ran("mutant-0-0", false, "another"), ran("mutant-0-0", true)];
    const tests = [ran("intact-0", true), ...other, ran("mutant-0-1", false)];
    expect(survivorsOf(copies, tests)).toEqual(["not one more"]);
  });

  it("prove nothing when the suite fails without any, or does not run", () => {
    const rest = [ran("mutant-0-0", false), ran("mutant-0-1", false)];
    expect(() => survivorsOf(copies, [ran("intact-0", false), ...rest])).toThrow("fails as it is");
    expect(() => survivorsOf(copies, rest)).toThrow("did not run in intact-0");
    const failed = ran("mutant-0-0", false);
    const broken = { ...failed, title: failed.file };
    const tests = [ran("intact-0", true), broken, ran("mutant-0-1", false)];
    expect(() => survivorsOf(copies, tests)).toThrow("did not run in mutant-0-0");
  });
});
