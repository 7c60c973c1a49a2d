import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { lastProgram, readRecorded } from "../../scripts/release/recorded.ts";
import { RELEASE } from "../../src/lib/release.ts";
import { nextProgram, runInTurn } from "./support/releases.ts";

const ROOT = path.join(import.meta.dirname, "../..");

it("a release can be taken back: the last one works on what the next one left, and that one again, nothing lost", async () => {
  const next = { program: await nextProgram(), isNewer: true };
  const last = { program: lastProgram(), isNewer: false };
  expect(last.program.code.length).toBeGreaterThan(100_000);
  await runInTurn([next, last, next]);
});

it("a migration of the last release is as it was: a book that has it never gets it again", () => {
  const { migrations } = readRecorded();
  expect(migrations.length).toBeGreaterThan(0);
  // Before the first deploy all belongs to the first one: npm run release:record.
  expect(readMigrations().slice(0, migrations.length)).toEqual(migrations);
});

it("a release has one number: in package.json, in the changelog and in what answers", () => {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
    version: string;
  };
  const [, newest] = /^## (.+)$/m.exec(readFileSync(path.join(ROOT, "CHANGELOG.md"), "utf8")) ?? [];
  expect([version, newest]).toEqual([RELEASE, RELEASE]);
});
