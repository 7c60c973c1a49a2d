import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod/mini";
import { watchOthers } from "../bench/figure.ts";
import type { Row, Source } from "./rows.ts";

export const ROOT = path.join(import.meta.dirname, "../..");
/**
 * Number of cores in use by other programs from which the machine counts as busy. The system itself
 * uses less.
 */
const BUSY_FROM = 0.2;

/**
 * A source's results. `figures` has one entry for each test. `isMissed`: a test failed or a budget
 * was exceeded.
 */
export type SourceResult = {
  readonly figures: readonly (readonly [name: string, value: number])[];
  readonly tests: number;
  readonly isMissed: boolean;
};
/** A row's result. `isBad`: it misses its target or has no figure. */
type Finding = { readonly words: string; readonly isBad: boolean };

/**
 * Measures one row. Rows with the same source share its run in `done`. `scratch` is a folder for
 * reports.
 */
export async function measure(
  row: Row,
  done: Map<string, Promise<SourceResult>>,
  scratch: string,
): Promise<Finding> {
  const others = watchOthers();
  const seen: SourceResult[] = [];
  try {
    for (const source of row.sources) {
      const key = JSON.stringify(source);
      const run = done.get(key) ?? runSource(source, path.join(scratch, `${done.size}.json`));
      done.set(key, run);
      seen.push(await run);
    }
    return findingOf(row, seen, others().value);
  } catch (error) {
    const why = String(error).replaceAll(/\s+/g, " ").slice(0, 200);
    return { words: `not measured: ${why}`, isBad: true };
  }
}

/**
 * Returns a row's text with figures from its sources. Throws if a figure is missing. `cores` is the
 * number of cores that other programs used.
 */
export function findingOf(
  { words, sources }: Row,
  seen: readonly SourceResult[],
  cores: number,
): Finding {
  const tests = seen.reduce((all, one) => all + one.tests, 0);
  const figures = [...seen.flatMap((one) => one.figures), ["tests", tests] as const];
  const filled = words.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const values = figures.filter(([one]) => one === name).map(([, value]) => value);
    if (values.length === 0) throw new Error(`no test reported ${name}`);
    return written(values.reduce((all, one) => all + one, 0));
  });
  const isBad = seen.some(({ isMissed }) => isMissed);
  const isTimed = sources.some((one) => "bench" in one || one.inFull === true);
  const busy =
    isTimed && cores >= BUSY_FROM ? ` (other programs kept ${cores.toFixed(1)} cores busy)` : "";
  return { words: `${isBad ? "MISSED: " : ""}${filled}${busy}`, isBad };
}

function written(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 1);
}

/** Runs a source that writes its report to `file`. Throws without a report. */
async function runSource(source: Source, file: string): Promise<SourceResult> {
  if ("bench" in source) {
    return parseBench(
      await runProgramText("npm", ["run", "-s", "bench", "--", ...source.bench, "--json"], {}),
    );
  }
  const { tests, named, inFull } = source;
  const words = ["run", tests, "--reporter=json", `--outputFile=${file}`];
  if (named !== undefined) words.push("--testNamePattern", named);
  const TURNPIKE_LONG = inFull === true ? "1" : "";
  await runProgramText("vitest", words, { TURNPIKE_LONG, TMPDIR: path.dirname(file) });
  return parseReport(readFileSync(file, "utf8"));
}

const benchOutput = z.object({
  figures: z.array(z.object({ name: z.string(), value: z.nullable(z.number()), mark: z.string() })),
});

/** Parses the bench's `--json` output. Throws if it is invalid. */
export function parseBench(text: string): SourceResult {
  const { figures } = benchOutput.parse(JSON.parse(text));
  return {
    figures: figures.map(({ name, value }) => [name, value ?? NaN] as const),
    tests: 0,
    isMissed: figures.some(({ mark }) => mark === "OVER"),
  };
}

const report = z.object({
  success: z.boolean(),
  testResults: z.array(
    z.object({
      assertionResults: z.array(
        z.object({
          status: z.string(),
          meta: z.optional(z.object({ measured: z.optional(z.record(z.string(), z.number())) })),
        }),
      ),
    }),
  ),
});

/** Parses vitest's JSON report. Throws if no test ran. */
export function parseReport(text: string): SourceResult {
  const { success, testResults } = report.parse(JSON.parse(text));
  const all = testResults.flatMap(({ assertionResults }) => assertionResults);
  const ran = all.filter(({ status }) => status === "passed" || status === "failed");
  if (ran.length === 0) throw new Error("no test ran");
  const figures = ran.flatMap(({ meta }) => Object.entries(meta?.measured ?? {}));
  return { figures, tests: ran.length, isMissed: !success };
}

/**
 * Returns a program's output. Its PATH starts with the tools in `node_modules`. The program ends
 * with this process.
 */
function runProgramText(
  command: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    // This repository's Node comes first in PATH.
    const tools = path.join(ROOT, "node_modules/.bin") + path.delimiter;
    const env = { ...process.env, PATH: tools + (process.env["PATH"] ?? ""), ...variables };
    const program = spawn(command, words, { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
    const end = (): void => void program.kill();
    process.once("exit", end);
    let output = "";
    program.stdout.setEncoding("utf8").on("data", (part: string) => (output += part));
    program.on("error", reject);
    program.on("close", () => {
      process.off("exit", end);
      resolve(output);
    });
  });
}
