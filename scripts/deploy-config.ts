// npm run deploy:config: merges wrangler.toml and wrangler.own.toml into wrangler.json. Exits with
// 0 on success, 1 if --fresh finds an outdated file or a file can't be read, or 2 for wrong usage.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { MERGED_FILE, OWN_FILE, SHARED_FILE } from "./deploy/files.ts";
import { isFresh, mergedText } from "./deploy/own-config.ts";
import { programOf, runProgram } from "./program.ts";

const NOT_DONE = 1;

await runProgram((given) => {
  const options = programOf(
    "deploy:config",
    `Writes ${MERGED_FILE}: ${SHARED_FILE} with the values of ${OWN_FILE}, which replace its own. Wrangler reads it automatically.`,
  )
    .option("--fresh", `change nothing; exit with 1 if ${MERGED_FILE} is outdated`)
    .option("--folder <path>", "the folder with the files", path.join(import.meta.dirname, ".."))
    .parse(given, { from: "user" })
    .opts<{ fresh?: true; folder: string }>();
  const folder = path.resolve(options.folder);
  if (options.fresh === true) {
    if (isFresh(folder)) return 0;
    return notDone(`${MERGED_FILE} is outdated. Run npm run deploy:config`);
  }
  const text = mergedText(folder);
  if (text === null) {
    return notDone(`${OWN_FILE} doesn't exist. docs/deploy.md describes its content.`);
  }
  writeFileSync(path.join(folder, MERGED_FILE), text);
  process.stdout.write(`${MERGED_FILE} is written.\n`);
  return 0;
});

function notDone(problem: string): number {
  process.stderr.write(`error: ${problem}\n`);
  return NOT_DONE;
}
