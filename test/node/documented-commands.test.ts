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

it("the pages' shell blocks have valid syntax", () => {
  for (const { page, text } of BLOCKS) {
    const { status, stderr } = spawnSync("bash", ["-n"], { input: text, encoding: "utf8" });
    expect([page, text, stderr, status]).toEqual([page, text, "", 0]);
  }
});

it("the pages run only npm scripts that exist", () => {
  const { scripts } = JSON.parse(readPage("package.json")) as { scripts: Record<string, string> };
  const run = BLOCKS.flatMap(({ text }) =>
    [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name = ""]) => name),
  );
  expect(run).toContain("deploy:check");
  expect(run.filter((name) => scripts[name] === undefined)).toEqual([]);
});

it("each SQL statement of the pages runs on a database with all migrations", () => {
  const database = new DatabaseSync(":memory:");
  for (const query of readMigrations().flatMap(({ queries }) => queries)) database.exec(query);
  expect(STATEMENTS.length).toBeGreaterThan(0);
  for (const { sql } of STATEMENTS) database.prepare(sql).all();
});
