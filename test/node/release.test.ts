import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { lastProgram, objectCalls, readRecorded } from "./support/release-recorded.ts";
import { RELEASE } from "../../src/shared/release.ts";
import { mixedProgram, nextProgram, runInTurn } from "./support/releases.ts";

const ROOT = path.join(import.meta.dirname, "../..");

it("no data is lost if the next release is rolled back to the last release and deployed again", async () => {
  const next = { program: await nextProgram(), isNewer: true };
  const last = { program: lastProgram(), isNewer: false };
  expect(last.program.code.length).toBeGreaterThan(100_000);
  await runInTurn([next, last, next]);
});

it("each release's Worker works with the other release's Durable Objects", async () => {
  const [last, next] = [lastProgram(), await nextProgram()];
  expect(last.code).not.toBe(next.code);
  const newer = { program: await mixedProgram(next, last), isNewer: true };
  const older = { program: await mixedProgram(last, next), isNewer: false };
  await runInTurn([newer, older, newer]);
});

it("Durable Objects accept calls from the last release", async () => {
  const before = await objectCalls(lastProgram());
  expect(before).toContain("Wallet.admitAndHold");
  expect(await objectCalls(await nextProgram())).toEqual(expect.arrayContaining([...before]));
});

it("the last release's migrations are unchanged and never applied again", () => {
  const { migrations } = readRecorded();
  expect(migrations.length).toBeGreaterThan(0);
  // Before the first deploy, all migrations belong to it: npm run release:record.
  expect(readMigrations().slice(0, migrations.length)).toEqual(migrations);
});

/** Returns the parts of a release number, the most significant first. */
const numbers = (version: string): number[] => version.split(".").map(Number);
function isAbove(version: string, other: string): boolean {
  const [mine, theirs] = [numbers(version), numbers(other)];
  const at = mine.findIndex((number, i) => number !== theirs[i]);
  return at !== -1 && (mine[at] ?? 0) > (theirs[at] ?? 0);
}

/** Returns the tags of a configuration's Durable Object migrations. */
function tags(file: string): string[] {
  const text = readFileSync(path.join(ROOT, file), "utf8");
  return [...text.matchAll(/^tag = "(.+)"$/gm)].map(([, tag = ""]) => tag);
}

describe("the release number", () => {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
    version: string;
  };
  const changelog = readFileSync(path.join(ROOT, "CHANGELOG.md"), "utf8");
  const headings = [...changelog.matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => heading);
  const released = headings.filter((heading) => heading !== "Unreleased");

  it("equals the version in package.json and in responses", () => {
    expect(version).toBe(RELEASE);
  });

  it("exceeds the newest number in the changelog while there are unreleased changes, and otherwise equals that number", () => {
    const known = headings[0] === "Unreleased" ? released : released.slice(1);
    const falling = [RELEASE, ...known];
    expect(falling.slice(1).filter((number, i) => !isAbove(falling[i] ?? "", number))).toEqual([]);
    expect(headings[0] === "Unreleased" || released[0] === RELEASE).toBe(true);
  });

  it("exceeds the last recorded release's number if the Worker's code differs", async () => {
    const isSame = (await nextProgram()).code === lastProgram().code;
    expect(isSame || isAbove(RELEASE, readRecorded().version)).toBe(true);
  });

  it("has a changelog section that lists each new Durable Object migration", () => {
    const before = tags("test/last-release/wrangler.toml");
    expect(before.length).toBeGreaterThan(0);
    const [, newest = ""] = changelog.split(/^## /m);
    const withoutWayBack = newest.split("\n").filter((line) => line.includes("**No way back**"));
    for (const tag of tags("wrangler.toml").filter((one) => !before.includes(one))) {
      expect(withoutWayBack.join("\n")).toContain(`\`${tag}\``);
    }
  });
});
