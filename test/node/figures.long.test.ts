import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PRODUCERS, runFigures } from "../../scripts/figures/run.ts";
import type { RunOptions } from "../../scripts/figures/run.ts";
import { ROWS } from "../../scripts/figures/table.ts";
import type { Finding, Producer } from "../../scripts/figures/table.ts";
import { removeDirectory, tmpfsMount } from "../../scripts/tmpfs.ts";
import { startProgram } from "./support/program.ts";

const EMPTY = "# Title\n\n<!-- figures: begin -->\n\n<!-- figures: end -->\n\n## After\n";
const STAMP = { date: "2026-11-21", commit: "abc1234" };
const LATER = { date: "2026-12-01", commit: "def5678+" };
const PATIENT = { timeout: 100_000 };
const EXACT = 2;
const OPEN = 11;

let directory: string;
let readme: string;
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "turnpike-figures-test-"));
  readme = path.join(directory, "README.md");
});
afterAll(() => removeDirectory(directory));
beforeEach(() => writeFileSync(readme, EMPTY));

function finding(row: number, more: Partial<Finding> = {}): Finding {
  return { row, measured: `figure ${row}`, isMet: true, values: { seen: row }, ...more };
}

function producing(row: number, produce: Producer["produce"]): Producer {
  return { rows: [row], what: `row ${row}`, seconds: 1, produce };
}

/** Runs producers for all their rows, or the ones that are named; the exit code and what was told. */
async function run(producers: readonly Producer[], options: Partial<RunOptions> = {}) {
  const told: string[] = [];
  const rows = producers.flatMap((producer) => producer.rows);
  const usual: RunOptions = {
    rows,
    readme,
    json: null,
    stamp: STAMP,
    busyCores: () => Promise.resolve(0),
    tell: (line) => told.push(line),
  };
  return { code: await runFigures(producers, { ...usual, ...options }), told };
}

const good = (row: number): Producer => producing(row, () => Promise.resolve([finding(row)]));
const table = (): string[] =>
  readFileSync(readme, "utf8")
    .split("\n")
    .filter((line) => /^\| \d+ /.test(line));
const line = (row: number): string => table().find((one) => one.startsWith(`| ${row} `)) ?? "";

/** The cells of all rows but one: how wide they are depends on the widest. */
const cellsWithout = (row: number, lines: readonly string[]): string[][] =>
  lines.filter((one) => !one.startsWith(`| ${row} `)).map((one) => one.split(/ *\| */));

/** What the program with this id keeps for the time of its run. */
const scratchOf = (pid: number | undefined): string[] =>
  readdirSync(tmpfsMount() ?? tmpdir()).filter((name) =>
    name.startsWith(`turnpike-figures-${pid}-`),
  );

it("every row is made by one producer, and no producer makes another", () => {
  const made = PRODUCERS.flatMap(({ rows }) => rows).toSorted((a, b) => a - b);
  expect(made).toEqual(ROWS.map(({ number }) => number));
});

describe("a run", () => {
  it("writes every row with date and commit, and the text around the table stays", async () => {
    const { code } = await run(ROWS.map(({ number }) => good(number)));
    expect(code).toBe(0);
    expect(table()).toHaveLength(ROWS.length);
    for (const { number } of ROWS) {
      expect(line(number)).toMatch(
        new RegExp(`figure ${number} .*2026-11-21 \\| abc1234 .*--only ${number}\``),
      );
    }
    expect(readFileSync(readme, "utf8")).toMatch(/^# Title\n\n<!--[^]*-->\n\n## After\n$/);
  });

  it("that finds the same again leaves the file as it is", async () => {
    await run(ROWS.map(({ number }) => good(number)));
    const once = readFileSync(readme, "utf8");
    await run(ROWS.map(({ number }) => good(number)));
    expect(readFileSync(readme, "utf8")).toBe(once);
  });

  it("of one row leaves the others to the letter, also those that its producer makes", async () => {
    await run(ROWS.map(({ number }) => good(number)));
    const before = table();
    const asked: number[] = [];
    const both: Producer = {
      ...good(4),
      rows: [4, 15],
      produce: () => Promise.resolve([finding(4, { measured: "anew" }), finding(15)]),
    };
    const unasked = producing(6, () => {
      asked.push(6);
      return Promise.resolve([finding(6)]);
    });
    await run([both, unasked], { rows: [4], stamp: LATER });
    expect(asked).toEqual([]);
    expect(line(4)).toMatch(/\| anew .*2026-12-01 \| def5678\+ /);
    expect(cellsWithout(4, table())).toEqual(cellsWithout(4, before));
  });

  it("says beside the rows that are timed how busy the machine was, and beside no other", async () => {
    const broken = producing(OPEN, () => Promise.reject(new Error("not here")));
    await run([good(7), good(6), broken], { busyCores: () => Promise.resolve(1.26) });
    expect(line(7)).toContain("| figure 7 (other programs kept 1.3 cores busy) ");
    expect(line(6)).toContain("| figure 6 ");
    expect(line(OPEN)).toContain("| not measured: not here ");
  });

  it("ends with 1 when an exact target is missed, and says so in its cell", async () => {
    const missing = producing(EXACT, () => Promise.resolve([finding(EXACT, { isMet: false })]));
    const { code, told } = await run([missing, good(3)]);
    expect(code).toBe(1);
    expect(line(EXACT)).toContain(`| MISSED: figure ${EXACT} `);
    expect(line(3)).toContain("| figure 3 ");
    expect(told.at(-1)).toContain(`not measured: ${EXACT}`);
  });

  it("ends with 1 when an exact figure cannot be measured, and the others are measured all the same", async () => {
    const broken = producing(EXACT, () => Promise.reject(new Error("no such\nthing")));
    const silent = producing(3, () => Promise.resolve([]));
    const { code } = await run([broken, silent, good(6)]);
    expect(code).toBe(1);
    expect(line(EXACT)).toContain("| not measured: no such thing ");
    expect(line(3)).toContain("| not measured: nothing was found ");
    expect(line(6)).toContain("| figure 6 ");
  });

  it("ends with 0 when a target that is not exact is missed, with 1 when there is no figure for it", async () => {
    const over = producing(10, () => Promise.resolve([finding(10, { isMet: false })]));
    expect((await run([over])).code).toBe(0);
    expect(line(10)).toContain("| MISSED: figure 10 ");
    const broken = producing(OPEN, () => Promise.reject(new Error("not here")));
    expect((await run([over, broken])).code).toBe(1);
    expect(line(OPEN)).toContain("| not measured: not here ");
  });

  it("keeps the figures as JSON, with the command of each row", async () => {
    const json = path.join(directory, "figures.json");
    await run([good(6), good(EXACT)], { json });
    const { rows, ...stamp } = JSON.parse(readFileSync(json, "utf8")) as { rows: Finding[] };
    expect(stamp).toEqual(STAMP);
    expect(rows.map(({ row }) => row)).toEqual([EXACT, 6]);
    expect(rows[1]).toMatchObject({
      ...finding(6),
      target: "60",
      command: "npm run figures -- --only 6",
    });
  });

  it("without a file writes none, and one that has no place for the table is refused before anything is measured", async () => {
    await run([good(6)], { readme: null });
    expect(readFileSync(readme, "utf8")).toBe(EMPTY);
    writeFileSync(readme, "# Title\n");
    const never = producing(6, () => Promise.reject(new Error("measured")));
    await expect(run([never])).rejects.toThrow("the page must have <!-- figures: begin -->");
  });
});

describe("npm run figures", () => {
  it("measures a row against a real region and writes it into the file that is named", async () => {
    const json = path.join(directory, "one.json");
    const program = startProgram([
      "scripts/figures.ts",
      "--only=6",
      "--readme",
      readme,
      "--json",
      json,
    ]);
    expect([await program.ended, program.output()]).toEqual([0, expect.stringContaining("[1/1]")]);
    expect(line(6)).toMatch(
      /\| 60 of 300 requests, 4 evictions.*\| \d{4}-\d\d-\d\d \| ([0-9a-f]{7}\+?|unknown) +\|/,
    );
    expect(line(5)).toContain("not measured yet");
    const { rows } = JSON.parse(readFileSync(json, "utf8")) as { rows: Finding[] };
    expect(rows).toMatchObject([
      { row: 6, isMet: true, values: { evictedAdmitted: 60, offered: 300 } },
    ]);
  });

  it("that is told to end leaves nothing behind", async () => {
    const program = startProgram(["scripts/figures.ts", "--only", "3", "--dry"]);
    expect(await program.says("[1/1]")).toBe(true);
    await expect.poll(() => scratchOf(program.child.pid), PATIENT).toHaveLength(1);
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(143);
    expect(scratchOf(program.child.pid)).toEqual([]);
  });

  it.each([
    [["--only", "17"], "--only takes numbers from 1 to 16"],
    [["--only", "2;3"], "--only takes numbers from 1 to 16"],
    [["--all"], "Unknown option '--all'"],
    [["--only", "6", "--readme", "/nowhere/README.md"], "no such file"],
  ])("%j is wrong usage: 2, and nothing is measured", async (parameters, says) => {
    const program = startProgram(["scripts/figures.ts", ...parameters]);
    expect(await program.ended).toBe(2);
    expect(program.output()).toContain(says);
    expect(program.output()).not.toContain("[1/1]");
  });
});
