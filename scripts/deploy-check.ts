// npm run deploy:check: checks a region's configuration before `wrangler deploy`. Exits with 0 if
// it is ready, 1 if something must be fixed, or 2 for wrong usage.
import { existsSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { WrongUsage } from "./admin/arguments.ts";
import { targetOf } from "./admin/target.ts";
import { MERGED_FILE, SHARED_FILE } from "./deploy/files.ts";
import { isReady, jsonOf, wordsOf } from "./deploy/report.ts";
import type { SecretNames } from "./deploy/secrets.ts";
import { programOf, runProgram } from "./program.ts";

const ROOT = path.join(import.meta.dirname, "..");
/** The first file that exists, in wrangler's order. */
const FILE = [MERGED_FILE, SHARED_FILE].find((name) => existsSync(path.join(ROOT, name)));
const NOT_READY = 1;

type Options = {
  readonly env: string;
  readonly config: string;
  readonly set?: SecretNames;
  readonly live?: string;
  readonly acceptAliasChange?: true;
  readonly json?: true;
};

/** Checks a region's configuration, and returns the exit code. */
export async function main(given: readonly string[]): Promise<number> {
  const options = program().parse(given, { from: "user" }).opts<Options>();
  const running = options.live === undefined ? null : targetOf({ url: options.live }, process.env);
  // These load wrangler, which takes a second.
  const { check } = await import("./deploy/check.ts");
  const { cloudflareReader } = await import("./deploy/zone-findings.ts");
  const file = path.resolve(options.config);
  const { environmentsIn } = await import("./deploy/settings.ts");
  const names = environmentsIn(file);
  if (names.length > 0 && !names.includes(options.env)) {
    throw new WrongUsage(`--env must be one of ${names.join(", ")}, not "${options.env}".`);
  }
  const report = await check({
    env: options.env,
    file,
    names: options.set,
    running,
    isAccepted: options.acceptAliasChange === true,
    today: Date.now(),
    zones: cloudflareReader(process.env["CLOUDFLARE_API_TOKEN"]),
  });
  process.stdout.write(`${options.json === true ? jsonOf(report) : wordsOf(report)}\n`);
  return isReady(report) ? 0 : NOT_READY;
}

function program(): Command {
  return programOf(
    "deploy:check",
    "Checks a region's configuration before `wrangler deploy`. Changes nothing.",
  )
    .requiredOption("--env <name>", "the environment: a region, or another one such as eu-staging")
    .option("--config <file>", "the configuration", path.join(ROOT, FILE ?? SHARED_FILE))
    .option(
      "--set <names>",
      "comma-separated names of the secrets that are set; by default read from Cloudflare",
      secretNames,
    )
    .option("--live <url>", "compare aliases with the running region at this URL")
    .option("--accept-alias-change", "allow an embeddings alias to change its model")
    .option("--json", "print the report as JSON")
    .addHelpText(
      "after",
      `
Environment:
  TURNPIKE_ADMIN_TOKEN   the region's ADMIN_TOKEN, for --live; never pass it as an argument
  CLOUDFLARE_API_TOKEN   for wrangler, unless you are logged in: it lists the names of secrets,
                         and reads the zone settings that can block calls between regions

Exits with 0 if the region is ready, 1 if something must be fixed, or 2 for wrong usage.

Examples:
  npm run -s deploy:check -- --env eu
  npm run -s deploy:check -- --env eu --live https://eu.example.com/admin/v1`,
    );
}

/** Returns the names. The error never quotes the text, which might be a secret. */
function secretNames(text: string): SecretNames {
  const names = text.split(",").filter((name) => name !== "");
  if (names.every((name) => /^[A-Z][A-Z0-9_]*$/.test(name))) return new Set(names);
  throw new WrongUsage("--set takes names, such as KEY_SECRETS,ADMIN_TOKEN, never values.");
}

if (import.meta.main) await runProgram(main);
