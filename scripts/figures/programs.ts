import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod/mini";

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

const test = z.object({
  fullName: z.string(),
  title: z.string(),
  status: z.string(),
  meta: z.optional(z.object({ measured: z.optional(z.record(z.string(), z.number())) })),
});
const report = z.object({
  testResults: z.array(
    z.object({ name: z.string(), status: z.string(), assertionResults: z.array(test) }),
  ),
});

/** A test that ran: its figures are those that it kept with `measured`. */
export type RanTest = {
  readonly file: string;
  readonly fullName: string;
  readonly title: string;
  readonly hasPassed: boolean;
  readonly measured: Readonly<Record<string, number>>;
};

/** The tests that ran, of vitest's JSON report; a file that could not be loaded is one that failed. */
export function readReport(text: string): readonly RanTest[] {
  return report
    .parse(JSON.parse(text))
    .testResults.flatMap(({ name, status, assertionResults }) => {
      const ran = assertionResults.filter(
        (one) => one.status === "passed" || one.status === "failed",
      );
      if (ran.length === 0 && status === "failed") {
        return [{ file: name, fullName: name, title: name, hasPassed: false, measured: {} }];
      }
      return ran.map(({ fullName, title, status: how, meta }) => ({
        file: name,
        fullName,
        title,
        hasPassed: how === "passed",
        measured: meta?.measured ?? {},
      }));
    });
}

/** Sum of a figure over tests. */
export function sumOf(tests: readonly RanTest[], name: string): number {
  return tests.reduce((sum, one) => sum + (one.measured[name] ?? 0), 0);
}

/**
 * Runs test files, with more `parameters` for vitest, and answers with all tests that ran. The temporary files
 * are in `scratch`. Throws when nothing ran.
 */
export async function runTests(
  scratch: string,
  files: readonly string[],
  options: ChildOptions & { readonly parameters?: readonly string[] } = {},
): Promise<readonly RanTest[]> {
  const { parameters = [], variables, ...child } = options;
  const output = path.join(scratch, `report-${process.hrtime.bigint()}.json`);
  const ended = await runChild(
    "vitest",
    ["run", ...files, "--reporter=json", `--outputFile=${output}`, ...parameters],
    { ...child, variables: { TMPDIR: scratch, ...variables } },
  );
  let text: string;
  try {
    text = readFileSync(output, "utf8");
  } catch {
    throw new Error(`vitest wrote no report: ${lastWords(ended)}`);
  }
  const tests = readReport(text);
  if (tests.length === 0) throw new Error(`no test ran of ${files.join(" ")}`);
  return tests;
}
