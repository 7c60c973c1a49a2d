import { execFile, execFileSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

/** Matches pip's errors without a network. */
const UNREACHED = /connection|timed? ?out|name resolution|unreachable|proxy/i;
const run = promisify(execFile);

/**
 * Creates a Python environment with packages. Returns the reason why that is impossible here, or
 * "".
 */
export async function makeEnvironment(
  directory: string,
  packages: readonly string[],
): Promise<string> {
  if (!hasPython()) return "python3 with venv is not on this machine";
  await run("python3", ["-m", "venv", directory]);
  return pipInstall(directory, packages);
}

/**
 * Installs packages with pip. Returns the reason if there is no network. Throws for any other
 * error.
 */
export async function pipInstall(directory: string, packages: readonly string[]): Promise<string> {
  const pip = path.join(directory, "bin/pip");
  try {
    await run(pip, ["install", "--quiet", "--no-compile", ...packages]);
    return "";
  } catch (error) {
    const { stderr } = error as { stderr: string };
    if (!UNREACHED.test(stderr)) throw error;
    return `pip reaches no registry: ${stderr.trim().split("\n").at(-1)}`;
  }
}

function hasPython(): boolean {
  try {
    execFileSync("python3", ["-c", "import venv, ensurepip"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
