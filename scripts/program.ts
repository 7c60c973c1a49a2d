import { Command, CommanderError } from "commander";
import { refuseSecrets, WrongUsage } from "./admin/arguments.ts";

const WRONG_USAGE = 2;

/** Runs `main` and ends the process with its result, or as `endOf` decides. */
export async function runProgram(
  main: (given: readonly string[]) => number | Promise<number>,
): Promise<void> {
  process.stdout.on("error", () => process.exit(0)); // what read the output has read enough
  process.exitCode = await endOf(process.argv.slice(2), main);
}

/**
 * Returns the exit code of `main`; 2 for wrong usage, which is printed here. A secret among the arguments is
 * wrong.
 */
export async function endOf<T>(
  given: readonly string[],
  main: (given: readonly string[]) => T | Promise<T>,
): Promise<T | number> {
  try {
    refuseSecrets(given, process.env["TURNPIKE_ADMIN_TOKEN"]);
    return await main(given);
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : WRONG_USAGE; // commander has printed why
    if (!(thrown instanceof WrongUsage)) throw thrown;
    process.stderr.write(`error: ${thrown.message}\n`);
    return WRONG_USAGE;
  }
}

/** A program that is called as `npm run -s NAME --`. */
export function programOf(name: string, description: string): Command {
  return new Command(`npm run -s ${name} --`)
    .description(description)
    .showHelpAfterError("(--help says more)")
    .exitOverride();
}
