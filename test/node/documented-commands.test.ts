import { spawnSync } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { blocksOf, pagePaths, readPage } from "../documents/pages.ts";

const BLOCKS = pagePaths().flatMap((page) =>
  blocksOf(readPage(page))
    .filter(({ info }) => info.startsWith("sh"))
    .map(({ text }) => ({ page, text })),
);
const STATEMENTS = BLOCKS.flatMap(({ page, text }) =>
  [...text.matchAll(/--command\s+(?:\\\n\s*)?"([^"]+)"/g)].map(([, sql = ""]) => ({ page, sql })),
);

it("every shell block of the documentation has valid syntax", () => {
  for (const { page, text } of BLOCKS) {
    const { status, stderr } = spawnSync("bash", ["-n"], { input: text, encoding: "utf8" });
    expect([page, text, stderr, status]).toEqual([page, text, "", 0]);
  }
});

it("every npm script in the documentation exists", () => {
  const { scripts } = JSON.parse(readPage("package.json")) as { scripts: Record<string, string> };
  const run = BLOCKS.flatMap(({ text }) =>
    [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name = ""]) => name),
  );
  expect(run).toContain("deploy:check");
  expect(run.filter((name) => scripts[name] === undefined)).toEqual([]);
});

it("every SQL statement in the documentation runs on a migrated database", () => {
  const database = new DatabaseSync(":memory:");
  for (const query of readMigrations().flatMap(({ queries }) => queries)) database.exec(query);
  expect(STATEMENTS.length).toBeGreaterThan(0);
  for (const { sql } of STATEMENTS) database.prepare(sql).all();
});
