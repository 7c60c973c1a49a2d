import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod/mini";
import { lastWords, runChild } from "./child.ts";
import type { ChildOptions } from "./child.ts";

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

/** How many tests failed. */
export function failuresOf(tests: readonly RanTest[]): number {
  return tests.filter((one) => !one.hasPassed).length;
}

/** A figure's text, with the tests that failed while it was taken. */
export function withFailures(text: string, tests: readonly RanTest[]): string {
  const failures = failuresOf(tests);
  return failures === 0 ? text : `${text}; ${failures} of ${tests.length} tests failed`;
}

/** As `npm run test:long` runs a file: with all that it can try. */
export const IN_FULL = { variables: { TURNPIKE_LONG: "1" } } as const;

/**
 * Runs test files (and, with `name`, only the tests whose name matches) and answers with all that ran. The
 * temporary files are in `scratch`. Throws when nothing ran.
 */
export async function runTests(
  scratch: string,
  files: readonly string[],
  {
    name,
    parameters = [],
    ...options
  }: ChildOptions & {
    readonly name?: string;
    readonly parameters?: readonly string[];
  } = {},
): Promise<readonly RanTest[]> {
  const isLong = files.some((file) => file.includes(".long."));
  const output = path.join(scratch, `report-${process.hrtime.bigint()}.json`);
  const ended = await runChild(
    "vitest",
    [
      "run",
      ...files,
      ...(name === undefined ? [] : ["--testNamePattern", name]),
      "--reporter=json",
      `--outputFile=${output}`,
      ...parameters,
    ],
    {
      ...options,
      variables: { TMPDIR: scratch, TURNPIKE_LONG: isLong ? "1" : "", ...options.variables },
    },
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
