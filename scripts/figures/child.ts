import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import path from "node:path";

export const ROOT = path.join(import.meta.dirname, "../..");
const BINARIES = path.join(ROOT, "node_modules/.bin");
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

/** How a child process ended; a signal is null. */
export type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};
export type ChildOptions = {
  readonly directory?: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Then it is ended with SIGTERM. */
  readonly timeoutMs?: number;
};

/** Runs a program with the tools of `node_modules` first in its PATH, to its end; its output is kept. */
export function runChild(
  command: string,
  parameters: readonly string[],
  { directory = ROOT, variables = {}, timeoutMs = 600_000 }: ChildOptions = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, parameters, {
      cwd: directory,
      timeout: timeoutMs,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        PATH: `${BINARIES}${path.delimiter}${process.env["PATH"] ?? ""}`,
        ...variables,
      },
    });
    running.add(child);
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code) => {
      running.delete(child);
      resolve({ code, stdout, stderr });
    });
  });
}

/** What a program that failed said of it, for an error's message. */
export function lastWords({ stdout, stderr }: Ended): string {
  const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => line.trim() !== "");
  const line = lines.findLast((one) => /error/i.test(one)) ?? lines.at(-1) ?? "it said nothing";
  return line.trim().slice(0, 200);
}
