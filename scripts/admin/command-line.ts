import { Option } from "commander";
import type { Command } from "commander";
import { endOf, programOf } from "../program.ts";
import { REGION_NAMES } from "../region-names.ts";
import packageFile from "../../package.json" with { type: "json" };
import { addDerivedCommands } from "./derived-commands.ts";
import { addHealthCommand } from "./health-command.ts";
import { addCatalogCheck } from "./catalog-command.ts";
import { addCompletionCommand } from "./completion-command.ts";
import { addCostCommands } from "./cost-commands.ts";
import { addPriceCommands } from "./price-commands.ts";
import { addRepairCommands } from "./repair-commands.ts";
import { examples, NotFound, printNote } from "./session.ts";
import { Refused, Unreachable } from "./transport.ts";
import { printable } from "../table.ts";

const REFUSED = 1;
const VERSION = packageFile.version;

/** Runs the command. Returns the exit code of a failure, or null. */
export function run(given: readonly string[]): Promise<number | null> {
  return endOf(given, async () => {
    try {
      await program().parseAsync(given, { from: "user" });
      return null;
    } catch (error) {
      if (given.includes("--json") && isExpected(error)) {
        printNote(JSON.stringify(errorJson(error)));
      } else if (error instanceof Refused) printRefused(error);
      else if (error instanceof Unreachable) printUnreachable(error);
      else if (error instanceof NotFound) printNote(`error: ${error.message}`);
      else throw error;
      return REFUSED;
    }
  });
}

function isExpected(error: unknown): error is Refused | Unreachable | NotFound {
  return error instanceof Refused || error instanceof Unreachable || error instanceof NotFound;
}

/** Returns the JSON that `--json` prints to stderr for an error. */
function errorJson(error: Refused | Unreachable | NotFound): object {
  const { message } = error;
  if (error instanceof Refused) {
    const { status, details, requestId } = error;
    return { error: { message, status, ...details, request_id: requestId } };
  }
  const maybeDone = error instanceof Unreachable && error.maybeDone;
  return { error: { message, maybe_done: maybeDone } };
}

export function program(): Command {
  const admin = programOf("admin", "Operates a region of Turnpike.")
    .option("--url <url>", "the region's URL, with or without /admin/v1 (default: TURNPIKE_URL)")
    .addOption(
      new Option("--local <region>", "a local region that npm start runs")
        .choices(REGION_NAMES)
        .conflicts("url"),
    )
    .option("--json", "print responses and errors as JSON")
    .version(VERSION)
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true });
  addDerivedCommands(admin);
  addPriceCommands(admin);
  addCatalogCheck(admin);
  addCostCommands(admin);
  addRepairCommands(admin);
  addHealthCommand(admin);
  addCompletionCommand(admin);
  admin.addHelpText(
    "after",
    `
Environment:
  TURNPIKE_URL           the region's address
  TURNPIKE_ADMIN_TOKEN   the region's ADMIN_TOKEN; never pass it as an argument
  TURNPIKE_PROBE_KEY     a global key of the region, which pays for health --probe
  DEV_DIR                where npm start keeps its state, for --local (default .dev)

Exits with 0 on success, 1 if the region rejects the call or can't be reached, or 2 for wrong usage.`,
  );
  return examples(admin, "orgs list --local eu", "health --url https://eu.example.com");
}

/** Prints the error's message, then its other fields in parentheses. */
function printRefused({ message, status, details, requestId }: Refused): void {
  const facts = Object.entries({ status, ...details, request_id: requestId });
  const words = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${value}`);
  printNote(printable(`error: ${message}`));
  printNote(printable(`(${words.join(", ")})`));
  if (status === 401) printNote("TURNPIKE_ADMIN_TOKEN is not this region's ADMIN_TOKEN.");
}

function printUnreachable({ message, maybeDone }: Unreachable): void {
  printNote(`error: ${message}`);
  if (!maybeDone) return;
  printNote("The region may still have made the change. Check before you retry.");
  printNote("Credits with the same --reference are added only once.");
}
