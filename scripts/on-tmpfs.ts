// node scripts/on-tmpfs.ts COMMAND [ARGUMENTS...] Runs a command with TMPDIR in memory, if there is
// a tmpfs, and removes the directory afterwards.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import path from "node:path";
import { removeDirectory, temporaryDirectory } from "./tmpfs.ts";

const [command, ...commandArguments] = process.argv.slice(2);
if (command === undefined) {
  console.error("usage: node scripts/on-tmpfs.ts COMMAND [ARGUMENTS...]");
  process.exit(2);
}

const directory = temporaryDirectory("turnpike-");
process.on("exit", () => removeDirectory(directory));
const binaries = path.join(import.meta.dirname, "../node_modules/.bin");
const child = spawn(command, commandArguments, {
  stdio: "inherit",
  env: {
    ...process.env,
    PATH: `${binaries}${path.delimiter}${process.env["PATH"] ?? ""}`,
    TMPDIR: directory,
    NODE_COMPILE_CACHE: path.join(directory, "compiled"), // speeds up programs that start often
  },
});
// Ctrl-C in a terminal also reaches the child. A signal sent only to this process doesn't.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`${command}: ${error.message}`);
  process.exitCode = 127;
});
child.on("exit", (code, signal) => {
  process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
});
