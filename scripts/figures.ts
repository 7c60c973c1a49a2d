// npm run figures: measures the figures in docs/figures.md and writes them there.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { WrongUsage } from "./admin/arguments.ts";
import { measure, ROOT } from "./figures/measure.ts";
import type { SourceResult } from "./figures/measure.ts";
import { withMeasured } from "./figures/page.ts";
import { ROWS } from "./figures/rows.ts";
import { programOf, runProgram } from "./program.ts";
import { removeDirectory, temporaryDirectory } from "./tmpfs.ts";

const PAGE = path.join(ROOT, "docs/figures.md");
const HELP = `Measures every figure of the table in docs/figures.md, on this machine, and writes them there with date and commit.
All of them take about 15 minutes on two cores. Run nothing else meanwhile. Exits with 1 if a target is
missed or a row can't be measured.

${ROWS.map(({ figure }, i) => `  ${String(i + 1).padStart(2)}  ${figure}`).join("\n")}`;
const MEASURED_PATHS = ["src", "scripts", "test", "migrations", "wrangler.toml", "package.json"];

// A signal must exit the process normally, because cleanup runs on exit.
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

await runProgram(async (given) => {
  const program = programOf("figures", HELP)
    .option("--only <numbers>", "measure only these rows, such as 2,5; the others stay unchanged")
    .option("--dry", "measure and print without writing", false)
    .parse(given, { from: "user" });
  const { only, dry } = program.opts<{ readonly only?: string; readonly dry: boolean }>();
  const numbers = ROWS.map((_, i) => i + 1);
  const chosen = only?.split(",").map(Number) ?? numbers;
  if (!chosen.every((number) => numbers.includes(number))) {
    throw new WrongUsage(
      `--only takes numbers from 1 to ${ROWS.length}, with commas, not "${only}"`,
    );
  }
  // The page is checked before measurements that take minutes.
  withMeasured(readFileSync(PAGE, "utf8"), new Map(), stamp());
  const scratch = temporaryDirectory("turnpike-figures-");
  process.once("exit", () => removeDirectory(scratch)); // also after Ctrl-C
  const done = new Map<string, Promise<SourceResult>>();
  const words = new Map<number, string>();
  let hasFailed = false;
  for (const number of chosen) {
    const row = ROWS[number - 1];
    if (row === undefined) continue;
    console.log(`${number}. ${row.figure}`);
    const finding = await measure(row, done, scratch);
    console.log(`   ${finding.words}`);
    words.set(number, finding.words);
    hasFailed ||= finding.isBad;
  }
  const page = withMeasured(readFileSync(PAGE, "utf8"), words, stamp());
  if (!dry) writeFileSync(PAGE, page);
  return hasFailed ? 1 : 0;
});

/** Returns today's date and the measured commit, with + if there are uncommitted changes. */
function stamp(): { readonly date: string; readonly commit: string } {
  const commit = git("rev-parse", "--short=7", "HEAD") ?? "unknown";
  const changes = git("status", "--porcelain", "--", ...MEASURED_PATHS) ?? "";
  const date = new Date().toISOString().slice(0, 10);
  return { date, commit: commit + (changes === "" ? "" : "+") };
}

/** Returns git's output; null if it fails. */
function git(...parameters: string[]): string | null {
  const { status, stdout } = spawnSync("git", parameters, { cwd: ROOT, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}
