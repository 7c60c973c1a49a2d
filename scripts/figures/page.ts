import { ROWS } from "./rows.ts";

const BEGIN = "<!-- figures: begin -->";
const END = "<!-- figures: end -->";
const TITLES = ["", "figure", "measured", "target", "date", "commit"];

/** The UTC day (YYYY-MM-DD) and short commit of a measurement, with + for uncommitted changes. */
type Stamp = { readonly date: string; readonly commit: string };

/**
 * Returns the page with measured rows in its table and other rows unchanged. Throws unless both
 * markers are present in order.
 */
export function withMeasured(
  page: string,
  measured: ReadonlyMap<number, string>,
  { date, commit }: Stamp,
): string {
  const [before = "", table, after, ...more] = page.split(new RegExp(`${BEGIN}|${END}`));
  const isSound = page.indexOf(BEGIN) < page.indexOf(END) && more.length === 0;
  if (table === undefined || after === undefined || !isSound) {
    throw new Error(`the page must have ${BEGIN} and, below it, ${END}, once each`);
  }
  const lines = ROWS.map(({ figure, target }, i) => {
    const number = i + 1;
    const line = table.split("\n").find((one) => one.startsWith(`| ${number} `)) ?? "";
    const [, , , value = "not measured yet", , day = "", of = ""] = line.split(/ *\| */);
    const found = measured.get(number);
    const [cell, on, from] = found === undefined ? [value, day, of] : [cellOf(found), date, commit];
    return [String(number), figure, cell, target, on, from];
  });
  const rule = TITLES.map(() => "---");
  return `${before}${BEGIN}\n\n${[TITLES, rule, ...lines].map(tableText).join("\n")}\n\n${END}${after}`;
}

const tableText = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

/** Replaces bars, line breaks and non-ASCII characters, which don't fit into a table cell. */
function cellOf(text: string): string {
  const printable = text.replaceAll("|", "/").replaceAll(/[^\x20-\x7e]/g, " ");
  return printable.replaceAll(/ {2,}/g, " ").trim();
}
