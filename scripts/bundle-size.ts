// npm run bundle-size: compares each region's upload by `wrangler deploy`, and the console's
// scripts, with their maximum sizes.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { REGION_NAMES } from "./region-names.ts";
import { SCRIPT_BYTES_MAX, buildConsole } from "./site/console.ts";
import { removeDirectory } from "./tmpfs.ts";

/** Maximum KiB of a Worker. docs/internals/decisions/speed.md lists its parts. */
const BUDGET_KIB = 1205;
const ROOT = path.join(import.meta.dirname, "..");

const directory = mkdtempSync(path.join(tmpdir(), "turnpike-bundle-"));
process.on("exit", () => removeDirectory(directory));
for (const region of REGION_NAMES) measure(region);
await measureConsole();

function measure(region: string): void {
  const out = path.join(directory, region);
  const { status, stdout, stderr } = spawnSync(
    path.join(ROOT, "node_modules/.bin/wrangler"),
    ["deploy", "--config", "wrangler.toml", "--env", region, "--dry-run", "--outdir", out],
    {
      cwd: ROOT,
      encoding: "utf8",
      env: { ...process.env, WRANGLER_LOG_PATH: path.join(directory, "logs"), NO_COLOR: "1" },
    },
  );
  if (status !== 0 || /\[(WARNING|ERROR)\]/i.test(stdout + stderr)) {
    console.error(`${stdout}${stderr}\n${region}: the dry run failed or warned`);
    process.exitCode = 1;
    return;
  }
  const code = readFileSync(path.join(out, "index.js"));
  const kib = code.length / 1024;
  const gzipKib = gzipSync(code).length / 1024;
  const verdict = kib <= BUDGET_KIB ? "within" : "OVER";
  console.log(
    `${region}: ${kib.toFixed(1)} KiB minified, ${gzipKib.toFixed(1)} KiB gzipped: ${verdict} the budget of ${BUDGET_KIB} KiB`,
  );
  if (kib > BUDGET_KIB) process.exitCode = 1;
}

async function measureConsole(): Promise<void> {
  const { first, all, operators, pages } = await buildConsole(directory);
  sizeText("first load", first, SCRIPT_BYTES_MAX.first);
  for (const [page, bytes] of Object.entries(pages)) sizeText(page, bytes, SCRIPT_BYTES_MAX.page);
  sizeText("all of operators' alone", operators, SCRIPT_BYTES_MAX.operators);
  sizeText("all", all, SCRIPT_BYTES_MAX.all);
}

function sizeText(what: string, bytes: number, most: number): void {
  const [kib, mostKib] = [(bytes / 1024).toFixed(1), most / 1024];
  const verdict = bytes <= most ? "within" : "OVER";
  console.log(`console, ${what}: ${kib} KiB of script gzipped: ${verdict} the ${mostKib} KiB`);
  if (bytes > most) process.exitCode = 1;
}
