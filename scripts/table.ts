/** A column of a terminal table. Align numbers `right`. */
export type Column = {
  readonly title: string;
  readonly align?: "left" | "right";
  /** The minimum width, which aligns separately printed pages. */
  readonly least?: number;
};

export function figureColumns(words: string, ...figures: readonly string[]): readonly Column[] {
  return [{ title: words }, ...figures.map((title) => ({ title, align: "right" }) as const)];
}

/** Control and text direction characters, which could change the terminal's output. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const CHARACTERS = new Intl.Segmenter();

/** Returns rows as aligned text. Adds titles and a rule unless `head` is false. */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  head = true,
): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = columns.map(({ title, least = 0 }, i) =>
    Math.max(least, title.length, ...cells.map((row) => lengthOf(row[i] ?? ""))),
  );
  const line = (row: readonly string[]): string =>
    columns
      .map(({ align }, i) => {
        const cell = row[i] ?? "";
        const blank = " ".repeat((widths[i] ?? 0) - lengthOf(cell));
        return align === "right" ? blank + cell : cell + blank;
      })
      .join("  ")
      .trimEnd();
  const titles = line(columns.map(({ title }) => title));
  return [...(head ? [titles, "-".repeat(titles.length)] : []), ...cells.map(line)].join("\n");
}

export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, "\ufffd");
}

function lengthOf(text: string): number {
  return [...CHARACTERS.segment(text)].length;
}
