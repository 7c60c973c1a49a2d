import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { lastProgram, objectCalls, readRecorded } from "../../scripts/release/recorded.ts";
import { RELEASE } from "../../src/shared/release.ts";
import { mixedProgram, nextProgram, runInTurn } from "./support/releases.ts";

const ROOT = path.join(import.meta.dirname, "../..");

it("a release can be taken back: the last one works on what the next one left, and that one again, nothing lost", async () => {
  const next = { program: await nextProgram(), isNewer: true };
  const last = { program: lastProgram(), isNewer: false };
  expect(last.program.code.length).toBeGreaterThan(100_000);
  await runInTurn([next, last, next]);
});

it("while two releases share the traffic, the Worker of either is answered by the objects of the other", async () => {
  const [last, next] = [lastProgram(), await nextProgram()];
  expect(last.code).not.toBe(next.code);
  const newer = { program: await mixedProgram(next, last), isNewer: true };
  const older = { program: await mixedProgram(last, next), isNewer: false };
  await runInTurn([newer, older, newer]);
});

it("what the last release asks of its objects can be asked of today's", async () => {
  const before = await objectCalls(lastProgram());
  expect(before).toContain("Wallet.admitAndHold");
  expect(await objectCalls(await nextProgram())).toEqual(expect.arrayContaining([...before]));
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
