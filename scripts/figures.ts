// npm run figures: measures the figures of the table in docs/figures.md, and writes them there.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { withMeasured } from "./figures/page.ts";
import { ROWS } from "./figures/rows.ts";
import { measure, ROOT } from "./figures/run.ts";
import { removeDirectory, temporaryDirectory } from "./tmpfs.ts";

const PAGE = path.join(ROOT, "docs/figures.md");
const HELP = `npm run figures [-- OPTIONS]

Measures every figure of the table in docs/figures.md, on this machine, and writes them there with date and commit.
All of them take about a quarter of an hour on two cores; nothing else should run meanwhile. It ends with 1 when a
target that is exact is missed, or any row could not be measured.

  --only 2,5     these rows alone; the others keep what they say
  --dry          measures and prints, writes nothing
  --help         this text

${ROWS.map(({ figure }, i) => `  ${String(i + 1).padStart(2)}  ${figure}`).join("\n")}
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
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const rows = rowsOf(values.only);
  // a page that cannot take the table is no reason to measure for minutes first
  withMeasured(readFileSync(PAGE, "utf8"), new Map(), stamp());
  const scratch = temporaryDirectory("turnpike-figures-");
  process.once("exit", () => removeDirectory(scratch)); // also after Ctrl-C
  const findings = await measure(rows, scratch, console.log);
  const words = new Map([...findings].map(([number, one]) => [number, one.words]));
  const page = withMeasured(readFileSync(PAGE, "utf8"), words, stamp());
  if (!values.dry) writeFileSync(PAGE, page);
  const bad = [...findings].filter(([, { isBad }]) => isBad).map(([number]) => number);
  if (bad.length === 0) return;
  console.log(`missed though the target is exact, or not measured: ${bad.join(", ")}`);
  process.exitCode = 1;
}

function rowsOf(only: string | undefined): readonly number[] {
  const all = ROWS.map((_, i) => i + 1);
  const rows = only === undefined ? all : only.split(",").map(Number);
  if (rows.every((row) => all.includes(row))) return rows;
  throw new Error(`--only takes numbers from 1 to ${all.length}, with commas, not "${only}"`);
}

/** Today, and the commit that is measured; what was changed since is a +. */
function stamp(): { readonly date: string; readonly commit: string } {
  const commit = git("rev-parse", "--short=7", "HEAD") ?? "unknown";
  const changes = git("status", "--porcelain", "--", ...MEASURED_PATHS) ?? "";
  const date = new Date().toISOString().slice(0, 10);
  return { date, commit: commit + (changes === "" ? "" : "+") };
}

/** What git says; null where it cannot. */
function git(...parameters: string[]): string | null {
  const { status, stdout } = spawnSync("git", parameters, { cwd: ROOT, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}
