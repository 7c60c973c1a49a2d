// npm run figures: measures the figures of the table in docs/figures.md, and writes them there.
import { spawnSync } from "node:child_process";
import { constants } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "./figures/programs.ts";
import { busyCores, PRODUCERS, runFigures } from "./figures/run.ts";
import { ROWS } from "./figures/table.ts";
import type { Stamp } from "./figures/table.ts";

const MINUTES = Math.round(PRODUCERS.reduce((sum, { seconds }) => sum + seconds, 0) / 60);
const HELP = `npm run figures [-- OPTIONS]

Measures every figure of the table in docs/figures.md, on this machine, and writes them there with date and commit.
All of them take about ${MINUTES} minutes on two cores; nothing else should run meanwhile. It ends with 1 when a
target that is exact is missed, or any row could not be measured.

  --only 2,5     these rows alone; the others keep what they say
  --dry          measures and prints, writes nothing
  --json FILE    the figures as JSON too: { date, commit, rows: [{ row, figure, target, measured, isMet,
                 values, command }] }; isMet is null where nothing was promised or measured
  --readme FILE  another file with the table's two markers
  --help         this text

${ROWS.map(({ number, figure }) => `  ${String(number).padStart(2)}  ${figure}`).join("\n")}
`;

const MEASURED_PATHS = ["src", "scripts", "test", "migrations", "wrangler.toml", "package.json"];

// An exit stops what was started and removes what was written; a signal alone would do neither.
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]));
}
try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      dry: { type: "boolean", default: false },
      json: { type: "string" },
      readme: { type: "string", default: path.join(ROOT, "docs/figures.md") },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  process.exitCode = await runFigures(PRODUCERS, {
    rows: rowsOf(values.only),
    readme: values.dry ? null : values.readme,
    json: values.json ?? null,
    stamp: stampOf(),
    busyCores,
    tell: (line) => process.stdout.write(`${line}\n`),
  });
}

function rowsOf(only: string | undefined): readonly number[] {
  const all = ROWS.map(({ number }) => number);
  if (only === undefined) return all;
  const rows = only.split(",").map(Number);
  const unknown = rows.filter((row) => !all.includes(row));
  if (unknown.length > 0) {
    throw new Error(`--only takes numbers from 1 to ${all.length}, with commas, not "${only}"`);
  }
  return rows;
}

/** Today, and the commit that is measured; what was changed since is a +. */
function stampOf(): Stamp {
  const commit = git("rev-parse", "--short=7", "HEAD") ?? "unknown";
  const changes = git("status", "--porcelain", "--", ...MEASURED_PATHS) ?? "";
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit + (changes === "" ? "" : "+"),
  };
}

/** What git says; null where it cannot. */
function git(...parameters: string[]): string | null {
  const { status, stdout } = spawnSync("git", parameters, { cwd: ROOT, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}
