import { spawnSync } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { blocksOf, pagePaths, readPage } from "../documents/pages.ts";

const BLOCKS = pagePaths().flatMap((page) =>
  blocksOf(readPage(page))
    .filter(({ info }) => info.startsWith("sh"))
    .map(({ text }) => text),
);
const STATEMENTS = BLOCKS.flatMap((text) =>
  [...text.matchAll(/--command\s+(?:\\\n\s*)?"([^"]+)"/g)].map(([, sql = ""]) => sql),
);
/** Prints each argument that isn't valid bash. */
const CHECK = `for block; do bash -n <<<"$block" || printf '%s\\n' "$block"; done`;

it("every shell block of the documentation has valid syntax", () => {
  const { status, stdout, stderr } = spawnSync("bash", ["-c", CHECK, "bash", ...BLOCKS], {
    encoding: "utf8",
  });
  expect([status, stdout + stderr]).toEqual([0, ""]);
});

it("every npm script in the documentation exists", () => {
  const { scripts } = JSON.parse(readPage("package.json")) as { scripts: Record<string, string> };
  const run = BLOCKS.flatMap((text) =>
    [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name = ""]) => name),
  );
  expect(run).toContain("deploy:check");
  expect(run.filter((name) => scripts[name] === undefined)).toEqual([]);
});

it("every SQL statement in the documentation runs on a migrated database", () => {
  const database = new DatabaseSync(":memory:");
  for (const query of readMigrations().flatMap(({ queries }) => queries)) database.exec(query);
  expect(STATEMENTS.length).toBeGreaterThan(0);
  for (const sql of STATEMENTS) database.prepare(sql).all();
});
