import { Command, CommanderError } from "commander";
import { refuseSecrets, WrongUsage } from "./admin/arguments.ts";

const WRONG_USAGE = 2;

/** Runs `main` and exits with the code from `endOf`. */
export async function runProgram(
  main: (given: readonly string[]) => number | Promise<number>,
): Promise<void> {
  process.stdout.on("error", () => process.exit(0)); // the reader closed the pipe
  process.exitCode = await endOf(process.argv.slice(2), main);
}

/**
 * Returns the result of `main`. Returns 2 and prints the reason for wrong usage, which includes
 * secrets among the arguments.
 */
export async function endOf<T>(
  given: readonly string[],
  main: (given: readonly string[]) => T | Promise<T>,
): Promise<T | number> {
  try {
    refuseSecrets(given, process.env["TURNPIKE_ADMIN_TOKEN"]);
    return await main(given);
  } catch (thrown) {
    // Commander has already printed the reason.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : WRONG_USAGE;
    if (!(thrown instanceof WrongUsage)) throw thrown;
    process.stderr.write(`error: ${thrown.message}\n`);
    return WRONG_USAGE;
  }
}

/** Returns a command that users run as `npm run -s NAME --`. */
export function programOf(name: string, description: string): Command {
  return new Command(`npm run -s ${name} --`)
    .description(description)
    .showHelpAfterError("(for help: --help)")
    .exitOverride();
}
