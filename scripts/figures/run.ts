import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { watchOthers } from "../bench/figure.ts";
import { ROWS } from "./rows.ts";
import type { Row, Source, Values } from "./rows.ts";

export const ROOT = path.join(import.meta.dirname, "../..");
const BINARIES = path.join(ROOT, "node_modules/.bin");
const SAMPLE_MS = 500;
/** Below it, what the system itself does. */
const BUSY_FROM = 0.2;

/** What a source said: each figure, of tests one entry a test; and how many tests failed of how many. */
export type Seen = {
  readonly figures: readonly (readonly [name: string, value: number])[];
  readonly tests: number;
  readonly failed: number;
};
/** How a row came out. `isBad`: an exact target is missed, or there is no figure at all. */
export type Finding = { readonly words: string; readonly isBad: boolean };

/** Measures rows by their numbers, one after the other; rows of the same source share its run. */
export async function measure(
  numbers: readonly number[],
  scratch: string,
  tell: (line: string) => void,
): Promise<ReadonlyMap<number, Finding>> {
  const done = new Map<string, Promise<Seen>>();
  const seenOf = (source: Source): Promise<Seen> => {
    const key = JSON.stringify(source);
    const seen = done.get(key) ?? run(source, path.join(scratch, `report-${done.size}.json`));
    done.set(key, seen);
    return seen;
  };
  const findings = new Map<number, Finding>();
  for (const number of numbers) {
    const row = ROWS[number - 1];
    if (row === undefined) continue;
    tell(`${number}. ${row.figure}`);
    const before = await busyCores();
    const seen: Seen[] = [];
    const finding = await inTurn(row.sources, async (source) => seen.push(await seenOf(source)))
      .then(async () => findingOf(row, seen, (before + (await busyCores())) / 2))
      .catch((error: unknown) => unmeasured(String(error)));
    findings.set(number, finding);
    tell(`   ${finding.words}`);
  }
  return findings;
}

/** What a row's sources come to: its target is met only if all their tests passed. */
export function findingOf(row: Row, seen: readonly Seen[], cores: number): Finding {
  const sum = (of: (one: Seen) => number): number => seen.reduce((all, one) => all + of(one), 0);
  const [tests, failed] = [sum((one) => one.tests), sum((one) => one.failed)];
  const figures = seen.flatMap((one) => one.figures);
  const missing = new Set<string>();
  const valueOf: Values = (name) => {
    if (name === "tests") return tests;
    const values = figures.filter(([one]) => one === name).map(([, value]) => value);
    if (values.length === 0) missing.add(name);
    return values.length === 0 ? NaN : values.reduce((all, one) => all + one, 0);
  };
  const isMet = row.isMet(valueOf);
  const words = row.words(valueOf);
  if (missing.size > 0) return unmeasured(`nothing said ${[...missing].join(", ")}`);
  const isMissed = isMet === false || failed > 0;
  const failures = failed === 0 ? "" : `; ${failed} of ${tests} tests failed`;
  const others =
    row.isTimed === true && cores >= BUSY_FROM
      ? ` (other programs kept ${cores.toFixed(1)} cores busy)`
      : "";
  return {
    words: `${isMissed ? "MISSED: " : ""}${words}${failures}${others}`,
    isBad: isMissed && row.isAim !== true,
  };
}

function unmeasured(why: string): Finding {
  return { words: `not measured: ${why.replaceAll(/\s+/g, " ").slice(0, 200)}`, isBad: true };
}

async function busyCores(): Promise<number> {
  const others = watchOthers();
  await sleep(SAMPLE_MS);
  return others().value;
}

async function inTurn<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  for (const one of all) await work(one);
}

/** Runs what measures, its report in `file`. Throws when it said nothing. */
async function run(source: Source, file: string): Promise<Seen> {
  if ("bench" in source) {
    // one that ends with 1 has missed its own budget: it is read all the same
    const printed = await child("npm", ["run", "-s", "bench", "--", ...source.bench, "--json"]);
    return benchSeen(printed);
  }
  const { tests, named, inFull } = source;
  const pattern = named === undefined ? [] : ["--testNamePattern", named];
  const output = ["--reporter=json", `--outputFile=${file}`];
  const said = await child("vitest", ["run", tests, ...output, ...pattern], {
    TURNPIKE_LONG: inFull === true ? "1" : "",
    TMPDIR: path.dirname(file),
  });
  try {
    return reportSeen(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`${String(error)}: ${said.slice(-200)}`, { cause: error });
  }
}

const printed = z.object({
  figures: z.array(z.object({ name: z.string(), value: z.nullable(z.number()) })),
});

/** What the bench printed with `--json`. Throws when it is none. */
export function benchSeen(text: string): Seen {
  const { figures } = printed.parse(JSON.parse(text));
  return {
    figures: figures.map(({ name, value }) => [name, value ?? NaN] as const),
    tests: 0,
    failed: 0,
  };
}

const report = z.object({
  testResults: z.array(
    z.object({
      status: z.string(),
      assertionResults: z.array(
        z.object({
          status: z.string(),
          meta: z.optional(z.object({ measured: z.optional(z.record(z.string(), z.number())) })),
        }),
      ),
    }),
  ),
});

/** The tests that ran, of vitest's JSON report; a file that could not be loaded is one that failed. Throws for none. */
export function reportSeen(text: string): Seen {
  const ran = report.parse(JSON.parse(text)).testResults.flatMap(({ status, assertionResults }) => {
    const tests = assertionResults.filter((one) => ["passed", "failed"].includes(one.status));
    return tests.length === 0 && status === "failed" ? [{ status, meta: {} }] : tests;
  });
  if (ran.length === 0) throw new Error("no test ran");
  return {
    figures: ran.flatMap(({ meta }) => Object.entries(meta?.measured ?? {})),
    tests: ran.length,
    failed: ran.filter(({ status }) => status === "failed").length,
  };
}

/** What a program printed, with the tools of `node_modules` first in its PATH, to its end; it ends with this process. */
function child(
  command: string,
  parameters: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const tools = `${BINARIES}${path.delimiter}${process.env["PATH"] ?? ""}`; // this repository's Node first
    const env = { ...process.env, PATH: tools, ...variables };
    const program = spawn(command, parameters, { cwd: ROOT, env, stdio: [...stdio] });
    const end = (): void => void program.kill();
    process.once("exit", end);
    let said = "";
    program.stdout?.setEncoding("utf8").on("data", (part: string) => (said += part));
    program.on("error", reject);
    program.on("close", () => {
      process.off("exit", end);
      resolve(said);
    });
  });
}
