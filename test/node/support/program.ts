import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../../..");

export type Program = {
  readonly child: ChildProcess;
  /** Returns stdout and stderr so far. */
  readonly output: () => string;
  /** Waits until the output contains a text. Returns false if the program exits first. */
  readonly says: (text: string) => Promise<boolean>;
  /** The exit code after all output was written, or null if a signal killed it. */
  readonly ended: Promise<number | null>;
};

/** Starts a Node program of the repository with these variables. */
export function startProgram(
  programArguments: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Program {
  const child = spawn(process.execPath, programArguments, {
    cwd: ROOT,
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      child.emit("output");
    });
  }
  const ended = once(child, "close").then(() => {
    child.emit("output");
    return child.exitCode;
  });
  return {
    child,
    output: () => output,
    says: async (text) => {
      const isRunning = () => child.exitCode === null && child.signalCode === null;
      while (!output.includes(text) && isRunning()) await once(child, "output");
      if (!output.includes(text)) await ended; // the last output can still arrive
      return output.includes(text);
    },
    ended,
  };
}
