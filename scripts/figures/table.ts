const BEGIN = "<!-- figures: begin -->";
const END = "<!-- figures: end -->";
const TITLES = ["", "figure", "measured", "target", "date", "commit", "command"];
const NOT_YET = "not measured yet";

/** One line of the table of figures, whatever its last measurement was. */
export type Row = {
  readonly number: number;
  readonly figure: string;
  /** What it is to be; "" where nothing was promised. */
  readonly target: string;
  /** Whether a miss of the target is said and no more; any other makes the command fail, as having no figure does. */
  readonly isAim?: true;
  /** Whether other programs on the machine change the figure. */
  readonly isTimed?: true;
};

/** What a run found for a row. */
export type Finding = {
  readonly row: number;
  /** The figure in words, with what it was taken from. */
  readonly measured: string;
  /** Whether the target is met; null where there is no target, or no figure. */
  readonly isMet: boolean | null;
  /** The figures alone, by name, for `--json`; times in ms, money in micros. */
  readonly values: Readonly<Record<string, number>>;
};

/** What a producer works with. */
export type Bench = {
  /** An empty directory of its own, in memory where there is a tmpfs. */
  readonly scratch: string;
  /** Says on the terminal what is being done. */
  readonly say: (what: string) => void;
};

/** What measures some rows; a throw is a figure that could not be measured, with its message as the reason. */
export type Producer = {
  readonly rows: readonly number[];
  readonly what: string;
  /** How long it takes on two cores, roughly. */
  readonly seconds: number;
  readonly produce: (bench: Bench) => Promise<readonly Finding[]>;
};

export const ROWS: readonly Row[] = [
  {
    number: 1,
    figure: "runs of the ledger's model without a violation; variants without a guard found",
    target: "all; all",
  },
  { number: 2, figure: "overspend in last-credit races", target: "0 micros" },
  { number: 3, figure: "duplicate settlements on a line that doubles and reorders", target: "0" },
  {
    number: 4,
    figure: "ledger against balance; wallet against D1, after a mixed load",
    target: "0; 0 micros",
  },
  { number: 5, figure: "most admissions in any 60 s, over the limit", target: "1.00" },
  {
    number: 6,
    figure: "admissions while the wallet is evicted again and again, limit 60",
    target: "60",
  },
  {
    number: 7,
    figure: "revocation: admitted after DELETE has answered; notice at the peer",
    target: "0; p99 1 s",
    isTimed: true,
  },
  {
    number: 8,
    figure: "clients that leave: settled at every byte; billed against true tokens",
    target: "100 %",
    isTimed: true,
  },
  { number: 9, figure: "invalid keys: object calls and D1 queries", target: "0" },
  {
    number: 10,
    figure: "added latency against the upstream asked directly",
    target: "first byte p50 3 ms",
    isAim: true,
    isTimed: true,
  },
  { number: 11, figure: "knee on 2 cores", target: "", isAim: true, isTimed: true },
  { number: 12, figure: "fuzzed inputs; 500s", target: "0" },
  {
    number: 13,
    figure: "answered requests whose charge was lost when their region was killed",
    target: "0",
  },
  { number: 14, figure: "cells of the fault matrix that hold", target: "all" },
  { number: 15, figure: "shortfall and charges by estimate, mixed load", target: "0 micros" },
  {
    number: 16,
    figure: "others' p99 beside one hot organisation",
    target: "+ 20 %",
    isAim: true,
    isTimed: true,
  },
];

/** A finding for a row that nothing could be measured for: the cell says why. */
export function unmeasured(row: number, why: string): Finding {
  return { row, measured: `not measured: ${why}`, isMet: null, values: {} };
}

/** Whether a run with these findings has failed: an exact target is missed, or there is no figure at all. */
export function missed(findings: readonly Finding[]): readonly number[] {
  return findings
    .filter(({ row, isMet, values }) => {
      const isAim = ROWS.some((one) => one.number === row && one.isAim === true);
      return (!isAim && isMet !== true) || Object.keys(values).length === 0;
    })
    .map(({ row }) => row);
}

/** When and of what a row was measured. */
export type Stamp = {
  /** YYYY-MM-DD, UTC. */
  readonly date: string;
  /** Short, with a + for changes that were not committed. */
  readonly commit: string;
};

/** The cells of a row that a run replaces. */
type Cells = Stamp & { readonly measured: string };

/** The command that measures one row. */
export function commandOf(row: number): string {
  return `npm run figures -- --only ${row}`;
}

/**
 * The page with these findings in its table, which is written as a whole; rows that were not measured
 * keep what they said. Throws when the two markers are not there, once each and in order.
 */
export function withFindings(readme: string, findings: readonly Finding[], stamp: Stamp): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  const isOnce = begin === readme.lastIndexOf(BEGIN) && end === readme.lastIndexOf(END);
  if (begin === -1 || end < begin || !isOnce) {
    throw new Error(`the page must have ${BEGIN} and, below it, ${END}, once each`);
  }
  const known = knownCells(readme.slice(begin, end));
  for (const { row, measured, isMet } of findings) {
    known.set(row, {
      measured: cell(isMet === false ? `MISSED: ${measured}` : measured),
      ...stamp,
    });
  }
  return `${readme.slice(0, begin)}${BEGIN}\n\n${tableOf(known)}\n\n${readme.slice(end)}`;
}

/** The table as it stands between the markers, in the form that the formatter leaves alone. */
function tableOf(known: ReadonlyMap<number, Cells>): string {
  const lines = ROWS.map(({ number, figure, target }) => {
    const { measured, date, commit } = known.get(number) ?? {
      measured: NOT_YET,
      date: "",
      commit: "",
    };
    const command = `\`${commandOf(number)}\``;
    return [String(number), figure, measured, target, date, commit, command];
  });
  const widths = TITLES.map((title, i) =>
    Math.max(3, title.length, ...lines.map((line) => line[i]?.length ?? 0)),
  );
  const drawn = (cells: readonly string[]): string =>
    `| ${cells.map((text, i) => text.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  return [drawn(TITLES), drawn(rule), ...lines.map(drawn)].join("\n");
}

function knownCells(table: string): Map<number, Cells> {
  const known = new Map<number, Cells>();
  for (const line of table.split("\n")) {
    const cells = line.split("|").map((text) => text.trim());
    const [, number = "", , measured = "", , date = "", commit = ""] = cells;
    if (/^\d+$/.test(number)) known.set(Number(number), { measured, date, commit });
  }
  return known;
}

/** Text that stays within its cell: no bars, no line ends, printable ASCII alone. */
function cell(text: string): string {
  const printable = text.replaceAll("|", "/").replaceAll(/[^\x20-\x7e]/g, " ");
  return printable.replaceAll(/ {2,}/g, " ").trim();
}
