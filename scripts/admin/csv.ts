import { readFileSync } from "node:fs";
import path from "node:path";
import { WrongUsage } from "./arguments.ts";

/** A line of a table by the names of its columns; `line` is its number in the file, from 1. */
export type CsvLine = { readonly line: number; readonly of: Readonly<Record<string, string>> };

/** A file, or standard input without one. Throws `WrongUsage` where it cannot be read. */
export function readGiven(file: string | undefined): string {
  // npm changes to the package's folder and keeps the caller's in INIT_CWD.
  const folder = process.env["INIT_CWD"] ?? process.cwd();
  try {
    return readFileSync(file === undefined ? 0 : path.resolve(folder, file), "utf8");
  } catch (error) {
    throw new WrongUsage(`It cannot be read: ${error instanceof Error ? error.message : ""}`);
  }
}

/**
 * Lines of values with commas between, the first with the names of the columns, of which each must be `known`. Empty
 * lines and those that begin with # are left out. Throws `WrongUsage` with the line that is wrong.
 */
export function csvLines(text: string, known: readonly string[]): readonly CsvLine[] {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line, index) => ({ line: index + 1, cells: line.split(",").map(bare) }))
    .filter(
      ({ cells: [first = "", ...more] }) => !first.startsWith("#") && first + more.join("") !== "",
    );
  const [head, ...rows] = lines;
  if (head === undefined) {
    throw new WrongUsage("Nothing was given: the first line names the columns.");
  }
  const names = head.cells;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new WrongUsage(`No column is '${unknown}': there are ${known.join(", ")}.`);
  }
  return rows.map(({ line, cells }) => {
    if (cells.length > names.length) throw new WrongUsage(`Line ${line} has too many values.`);
    const filled = names.map((name, index) => [name, cells[index] ?? ""] as const);
    return { line, of: Object.fromEntries(filled.filter(([, value]) => value !== "")) };
  });
}

/** A number of a line, as it may be sent; undefined where its column is empty. */
export function numberIn({ line, of }: CsvLine, name: string): number | undefined {
  const text = of[name];
  if (text === undefined) return undefined;
  if (!/^-?\d+(\.\d+)?$/.test(text)) {
    throw new WrongUsage(`Line ${line}: ${name} must be a number.`);
  }
  return Number(text);
}

function bare(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, "$1");
}
