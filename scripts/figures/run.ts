import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { watchOthers } from "../bench/figure.ts";
import { removeDirectory, temporaryDirectory } from "../tmpfs.ts";
import { FROM_BENCH } from "./from-bench.ts";
import { FROM_TESTS } from "./from-tests.ts";
import { MODEL_AND_MUTANTS } from "./mutants.ts";
import { commandOf, missed, ROWS, unmeasured, withFindings } from "./table.ts";
import type { Finding, Producer, Stamp } from "./table.ts";

const TICK_MS = 5000;
const WHY_CHARACTERS = 200;
const SAMPLE_MS = 500;
/** Below it, what the system itself does. */
const NOTED_FROM = 0.2;

/** Everything that measures, in the order of the rows; every row has one. */
export const PRODUCERS: readonly Producer[] = [
  MODEL_AND_MUTANTS,
  ...FROM_TESTS,
  ...FROM_BENCH,
].toSorted((a, b) => (a.rows[0] ?? 0) - (b.rows[0] ?? 0));

export type RunOptions = {
  /** The rows to measure. */
  readonly rows: readonly number[];
  /** The file whose table is written; null leaves every file alone. */
  readonly readme: string | null;
  /** Where the figures go as JSON; null for nowhere. */
  readonly json: string | null;
  readonly stamp: Stamp;
  /** How many cores are busy now, between two measurements. */
  readonly busyCores: () => Promise<number>;
  /** Takes each line for the terminal. */
  readonly tell: (line: string) => void;
};

/**
 * Measures the rows one producer after the other, and writes them. Answers with the exit code: 1 when an
 * exact target is missed, or any row could not be measured.
 */
export async function runFigures(
  producers: readonly Producer[],
  options: RunOptions,
): Promise<0 | 1> {
  const { rows, readme, json, stamp, tell } = options;
  // a page that cannot take the table is no reason to measure for minutes first
  if (readme !== null) withFindings(readFileSync(readme, "utf8"), [], stamp);
  const wanted = producers.filter((producer) => producer.rows.some((row) => rows.includes(row)));
  const scratch = temporaryDirectory(`turnpike-figures-${process.pid}-`);
  const sweep = (): void => removeDirectory(scratch);
  process.once("exit", sweep); // also after Ctrl-C
  const findings: Finding[] = [];
  for (const [i, producer] of wanted.entries()) {
    tell(`[${i + 1}/${wanted.length}] ${producer.what}, about ${producer.seconds} s`);
    const directory = path.join(scratch, String(i));
    mkdirSync(directory);
    const before = await options.busyCores();
    const found = await findingsOf(producer, directory, tell);
    const cores = (before + (await options.busyCores())) / 2;
    for (const one of found.filter(({ row }) => rows.includes(row))) {
      const finding = besideOthers(one, cores);
      findings.push(finding);
      tell(`  ${inWords(finding)}`);
    }
  }
  sweep();
  process.off("exit", sweep);
  findings.sort((a, b) => a.row - b.row);
  const bad = missed(findings);
  if (readme !== null) {
    writeFileSync(readme, withFindings(readFileSync(readme, "utf8"), findings, stamp));
  }
  if (json !== null) writeFileSync(json, `${JSON.stringify(asJson(findings, stamp), null, 2)}\n`);
  if (bad.length === 0) return 0;
  tell(`missed though the target is exact, or not measured: ${bad.join(", ")}`);
  return 1;
}

/** What a producer found for each of its rows; a throw is said in all their cells. */
async function findingsOf(
  { rows, produce }: Producer,
  scratch: string,
  tell: (line: string) => void,
): Promise<readonly Finding[]> {
  const began = performance.now();
  let doing = "";
  const seconds = (): string => `${Math.round((performance.now() - began) / 1000)} s`.padStart(7);
  const say = (what: string): void => {
    doing = what;
    tell(`${seconds()}  ${what}`);
  };
  const timer = setInterval(() => tell(`${seconds()}  ${doing === "" ? "..." : doing}`), TICK_MS);
  try {
    const found = await produce({ scratch, say });
    const absent = rows.filter((row) => !found.some((one) => one.row === row));
    return [...found, ...absent.map((row) => unmeasured(row, "nothing was found"))];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return rows.map((row) => unmeasured(row, why.replaceAll(/\s+/g, " ").slice(0, WHY_CHARACTERS)));
  } finally {
    clearInterval(timer);
  }
}

/** A finding that was timed says what the machine had to do besides. */
function besideOthers(finding: Finding, cores: number): Finding {
  const isTimed = ROWS.some((row) => row.number === finding.row && row.isTimed === true);
  if (!isTimed || Object.keys(finding.values).length === 0) return finding;
  const values = { ...finding.values, busyCores: cores };
  return { ...finding, measured: withBusyCores(finding.measured, cores), values };
}

function inWords({ row, measured, isMet }: Finding): string {
  const figure = ROWS.find(({ number }) => number === row)?.figure ?? "";
  return `${row}. ${figure}: ${isMet === false ? "MISSED: " : ""}${measured}`;
}

function asJson(findings: readonly Finding[], stamp: Stamp): object {
  const rows = findings.map((finding) => {
    const { figure = "", target = "" } = ROWS.find(({ number }) => number === finding.row) ?? {};
    return { ...finding, figure, target, command: commandOf(finding.row) };
  });
  return { ...stamp, rows };
}

/** How many cores other programs keep busy. */
export async function busyCores(): Promise<number> {
  const others = watchOthers();
  await sleep(SAMPLE_MS);
  return others().value;
}

/** A timed figure's text, with the cores that other programs kept busy, if that is worth a word. */
export function withBusyCores(text: string, cores: number): string {
  if (cores < NOTED_FROM) return text;
  return `${text} (other programs kept ${cores.toFixed(1)} cores busy)`;
}
