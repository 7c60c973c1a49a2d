import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Demo } from "../../scripts/dev-demo.ts";
import { examplesOf, readPage, ROOT } from "./pages.ts";
import type { Example } from "./pages.ts";

const run = promisify(execFile);
const SETTINGS_PAGE = "docs/start.md";
const SETTINGS_LINK = "start.md#settings";

/** Runs the CLI without npm, which takes longer to start than the CLI. */
const WITHOUT_NPM = `npm() {
  if [ "$1 $2 $3 $4" = "run -s admin --" ]; then node scripts/admin.ts "\${@:5}"
  else command npm "$@"; fi
}`;

/** An example that was run: its stdout and stderr together, and its exit code. */
export type Ran = { readonly example: Example; readonly printed: string; readonly code: number };

/**
 * Runs every example of a page in one shell, as readers paste them in sequence. Uses the settings
 * of the start page if the page requires them. `directory` contains the demo.json for the examples.
 */
export async function runPage(page: string, directory: string): Promise<Ran[]> {
  const markdown = readPage(page);
  const examples = examplesOf(markdown);
  if (examples.length === 0) return [];
  const out = mkdtempSync(path.join(directory, "run-"));
  const script = path.join(out, "page.sh");
  const settings = markdown.includes(SETTINGS_LINK) ? settingsOf() : "";
  const place = placeholdersOf(directory);
  const parts = examples.map(
    ({ text }, i) =>
      `{\n${place(text)}\n} >'${out}/${i}' 2>&1 </dev/null\necho $? >'${out}/${i}.code'`,
  );
  writeFileSync(script, [WITHOUT_NPM, settings, ...parts].join("\n"));
  await run("bash", [script], { cwd: ROOT, env: { ...process.env, DEV_DIR: directory } });
  return examples.map((example, i) => ({
    example,
    printed: readFileSync(path.join(out, String(i)), "utf8"),
    code: Number(readFileSync(path.join(out, `${i}.code`), "utf8")),
  }));
}

/** Returns a function that replaces the address and key that a page shows with those of the running region. */
function placeholdersOf(directory: string): (text: string) => string {
  const demo = JSON.parse(readFileSync(path.join(directory, "demo.json"), "utf8")) as Demo;
  const { base_url: url, regional_key: key } = demo.eu;
  return (text) =>
    text.replaceAll("http://127.0.0.1:8787/v1", url).replaceAll("svc_sk_eu_live_...", key);
}

/** The start page's block that the other pages build on. */
function settingsOf(): string {
  const [settings] = examplesOf(readPage(SETTINGS_PAGE));
  if (settings === undefined || !settings.text.includes("demo()")) {
    throw new Error(`the first example of ${SETTINGS_PAGE} must be the settings`);
  }
  return settings.text;
}
