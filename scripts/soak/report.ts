import { textTable } from "../table.ts";
import type { Healed } from "./evidence.ts";
import type { Done } from "./faults.ts";
import { seconds } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";

const CASES_SHOWN = 10;

/** What a run was. */
export type Report = {
  readonly seed: number;
  readonly loadMs: number;
  /** Requests that were not sent, because too many were under way. */
  readonly leftOut: number;
  readonly traces: readonly Trace[];
  readonly done: Done;
  readonly healed: Healed;
  readonly events: ReadonlyMap<string, number>;
  readonly remarkable: readonly string[];
  readonly verdicts: readonly Verdict[];
};

/** Nothing is broken, as far as it could be judged. */
export function isIntact({ verdicts }: Report): boolean {
  return verdicts.every(({ broken }) => broken.length === 0);
}

/** Why something could not be judged on this machine; undefined when all was. */
export function notJudged({ verdicts }: Report): string | undefined {
  return verdicts.find((verdict) => verdict.notJudged !== undefined)?.notJudged;
}

/** The whole report for a terminal. */
export function textOf(report: Report): string {
  const { verdicts, healed, leftOut, traces, loadMs, seed, done } = report;
  const time = seconds(healed.tookMs);
  const perSecond = (traces.length / loadMs) * 1000;
  return [
    `${Math.round(loadMs / 1000)} s of load, ${perSecond.toFixed(1)} requests/s, seed ${seed}; ${leftOut} left out`,
    `requests: ${listOf(countBy(traces, ({ kind }) => kind))}`,
    `answers: ${listOf(countBy(traces, statusOf))}`,
    `ends: ${listOf(countBy(traces, ({ fate }) => fate))}`,
    `faults: ${listOf(done)}`,
    healed.waitingFor === "" ? `healed in ${time}` : `NOT healed in ${time}: ${healed.waitingFor}`,
    `log: ${listOf(Object.fromEntries([...report.events].toSorted(([, a], [, b]) => b - a)))}`,
    ...report.remarkable.map((line) => `  ${line}`),
    "",
    textTable(
      [{ title: "invariant" }, { title: "" }, { title: "measured" }],
      verdicts.map((verdict) => [verdict.promise, wordFor(verdict), verdict.figure]),
    ),
    ...verdicts.filter(({ broken }) => broken.length > 0).map(casesOf),
    "",
    conclusion(report),
  ].join("\n");
}

function statusOf({ status, type, code, fate }: Trace): string {
  if (status === null) return fate === "left" ? "left unanswered" : "no answer";
  return status === 200 ? "200" : `${status} ${code ?? type ?? "cut short"}`;
}

function wordFor({ broken, notJudged: why }: Verdict): string {
  if (why !== undefined) return "not judged";
  return broken.length === 0 ? "intact" : `BROKEN ${broken.length}x`;
}

function conclusion(report: Report): string {
  if (!isIntact(report)) return "an invariant is BROKEN";
  const why = notJudged(report);
  if (why === undefined) return "every invariant is intact";
  return `not judged: ${why}; what was judged is intact`;
}

function casesOf({ promise, broken }: Verdict): string {
  const shown = broken.slice(0, CASES_SHOWN).map((one) => `  ${one}`);
  if (broken.length > CASES_SHOWN) shown.push(`  and ${broken.length - CASES_SHOWN} more`);
  return `\n${promise}:\n${shown.join("\n")}`;
}

/** How many there are of each, the most first. */
export function countBy<T>(all: readonly T[], name: (one: T) => string): Record<string, number> {
  const counts = [...Map.groupBy(all, name)].map(([one, some]) => [one, some.length] as const);
  return Object.fromEntries(counts.toSorted(([, a], [, b]) => b - a));
}

/** Such counts as a line. */
export function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}
