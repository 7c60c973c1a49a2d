import { textTable } from "../../scripts/table.ts";
import type { Healed } from "./evidence.ts";
import { seconds } from "./trace.ts";
import type { Evidence, Trace, Verdict } from "./trace.ts";

const CASES_SHOWN = 10;

export type Report = Pick<Evidence, "traces" | "done" | "load"> & {
  readonly seed: number;
  readonly healed: Healed;
  readonly events: ReadonlyMap<string, number>;
  readonly remarkable: readonly string[];
  readonly verdicts: readonly Verdict[];
};

/** Returns the exit code: 1 for a broken invariant, 3 if this machine was too slow for a check. */
export function exitCodeOf({ verdicts }: Pick<Report, "verdicts">): number {
  if (verdicts.some(({ broken }) => broken.length > 0)) return 1;
  return verdicts.some(({ notJudged }) => notJudged !== undefined) ? 3 : 0;
}

/** Returns the whole report for a terminal. */
export function textOf(report: Report): string {
  const { verdicts, healed, traces, seed, done, load } = report;
  const loadMs = load.untilMs - load.fromMs;
  const perSecond = ((traces.length / loadMs) * 1000).toFixed(1);
  const time = seconds(healed.tookMs);
  return [
    `${Math.round(loadMs / 1000)} s of load, ${perSecond} requests/s, seed ${seed}; ${load.leftOut} left out`,
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
  const code = exitCodeOf(report);
  if (code === 1) return "an invariant is BROKEN";
  if (code === 0) return "every invariant is intact";
  const why = report.verdicts.find(({ notJudged }) => notJudged !== undefined)?.notJudged;
  return `not judged: ${why}; what was judged is intact`;
}

function casesOf({ promise, broken }: Verdict): string {
  const shown = broken.slice(0, CASES_SHOWN).map((one) => `  ${one}`);
  if (broken.length > CASES_SHOWN) shown.push(`  and ${broken.length - CASES_SHOWN} more`);
  return `\n${promise}:\n${shown.join("\n")}`;
}

/** Counts items by name, the most frequent first. */
export function countBy<T>(all: readonly T[], name: (one: T) => string): Record<string, number> {
  const counts = [...Map.groupBy(all, name)].map(([one, some]) => [one, some.length] as const);
  return Object.fromEntries(counts.toSorted(([, a], [, b]) => b - a));
}

/** Formats counts as a line. */
export function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}
