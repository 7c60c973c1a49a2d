import { ROWS } from "./rows.ts";
import type { Finding } from "./rows.ts";

const BEGIN = "<!-- figures: begin -->";
const END = "<!-- figures: end -->";
const TITLES = ["", "figure", "measured", "target", "date", "commit", "command"];
const NOT_YET = "not measured yet";

/** When and of what a row was measured. */
export type Stamp = {
  /** YYYY-MM-DD, UTC. */
  readonly date: string;
  /** Short, with a + for changes that were not committed. */
  readonly commit: string;
};

/** The cells of a row that a run replaces. */
type Cells = { readonly measured: string; readonly date: string; readonly commit: string };

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
