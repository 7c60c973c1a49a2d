import { textTable } from "../table.ts";
import { quantile } from "../quantile.ts";
import type { Healed } from "./evidence.ts";
import type { Done } from "./faults.ts";
import { seconds } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";

const KINDS = ["json", "stream", "embeddings", "read", "forged", "wrong"] as const;
const CASES_SHOWN = 10;

export type Ran = {
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
export type Report = Readonly<ReturnType<typeof reportOf>>;

/** What a run was, in figures, as `--json` has it. */
export function reportOf({ traces, loadMs, done, events, ...ran }: Ran) {
  return {
    ...ran,
    seconds: Math.round(loadMs / 1000),
    perSecond: Math.round((traces.length / loadMs) * 10_000) / 10,
    kinds: KINDS.map((kind) => figuresOf(kind, traces)),
    statuses: countBy(traces, statusOf),
    fates: countBy(traces, ({ fate }) => fate),
    faults: { ...done },
    events: Object.fromEntries([...events].toSorted(([, a], [, b]) => b - a)),
    /** Nothing is broken, as far as it could be judged. */
    isIntact: ran.verdicts.every(({ broken }) => broken.length === 0),
    isJudged: ran.verdicts.every(({ notJudged }) => notJudged === undefined),
  };
}

function statusOf({ status, type, code, fate }: Trace): string {
  if (status === null) return fate === "left" ? "left unanswered" : "no answer";
  return status === 200 ? "200" : `${status} ${code ?? type ?? "cut short"}`;
}

/** Times in ms from when a request was to be sent; NaN, in JSON null, of none. */
function figuresOf(kind: string, traces: readonly Trace[]) {
  const some = traces.filter((trace) => trace.kind === kind);
  const isAnswer = ({ fate, status }: Trace): boolean =>
    fate === "whole" && (status === 200 || kind === "forged" || kind === "wrong");
  const whole = some.filter(isAnswer);
  const timed = whole.filter(({ isSlow }) => !isSlow);
  const first = timed.map(({ firstByteMs, endedMs, dueMs }) => (firstByteMs ?? endedMs) - dueMs);
  const total = timed.map(({ endedMs, dueMs }) => endedMs - dueMs);
  return {
    kind,
    sent: some.length,
    whole: whole.length,
    firstByteP50: quantile(first, 0.5),
    firstByteP99: quantile(first, 0.99),
    p50: quantile(total, 0.5),
    p99: quantile(total, 0.99),
  };
}

/** The whole report for a terminal. */
export function textOf(report: Report): string {
  const { verdicts, healed, leftOut } = report;
  const time = seconds(healed.tookMs);
  return [
    `${report.seconds} s of load, ${report.perSecond} requests/s, seed ${report.seed}; ${leftOut} left out`,
    kindTable(report.kinds),
    "Times count from when a request was to be sent; answers read whole, without slow readers and slow upstreams.",
    `answers: ${listOf(report.statuses)}`,
    `ends: ${listOf(report.fates)}`,
    `faults: ${listOf(report.faults)}`,
    healed.isQuiet ? `healed in ${time}` : `NOT healed in ${time}: ${healed.waitingFor}`,
    `log: ${listOf(report.events)}`,
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

function wordFor({ broken, notJudged }: Verdict): string {
  if (notJudged !== undefined) return "not judged";
  return broken.length === 0 ? "intact" : `BROKEN ${broken.length}x`;
}

function conclusion({ isIntact, isJudged, verdicts }: Report): string {
  if (!isIntact) return "an invariant is BROKEN";
  if (isJudged) return "every invariant is intact";
  const why = verdicts.find(({ notJudged }) => notJudged !== undefined)?.notJudged ?? "";
  return `not judged: ${why}; what was judged is intact`;
}

function kindTable(kinds: Report["kinds"]): string {
  const titles = ["kind", "sent", "answered", "first byte p50", "p99", "whole p50", "p99"];
  return textTable(
    titles.map((title, i) => ({ title, align: i === 0 ? "left" : "right" })),
    kinds.map((one) => {
      const times = [one.firstByteP50, one.firstByteP99, one.p50, one.p99].map(milliseconds);
      return [one.kind, String(one.sent), String(one.whole)].concat(times);
    }),
  );
}

function casesOf({ promise, broken }: Verdict): string {
  const shown = broken.slice(0, CASES_SHOWN).map((one) => `  ${one}`);
  if (broken.length > CASES_SHOWN) shown.push(`  and ${broken.length - CASES_SHOWN} more`);
  return `\n${promise}:\n${shown.join("\n")}`;
}

/** How many there are of each, the most first. */
export function countBy<T>(all: readonly T[], name: (one: T) => string): Record<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(name(one), (counts.get(name(one)) ?? 0) + 1);
  return Object.fromEntries([...counts].toSorted(([, a], [, b]) => b - a));
}

/** Such counts as a line. */
export function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

function milliseconds(value: number): string {
  return Number.isNaN(value) ? "-" : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}
