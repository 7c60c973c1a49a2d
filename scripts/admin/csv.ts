import { readFileSync } from "node:fs";
import path from "node:path";
import { WrongUsage } from "./arguments.ts";

/** A row of a CSV file by column name. `line` starts at 1. */
export type CsvLine = { readonly line: number; readonly of: Readonly<Record<string, string>> };

/** Reads a file, or standard input if none is given. Throws `WrongUsage` if it can't be read. */
export function readInput(file: string | undefined): string {
  // npm changes the working directory and sets INIT_CWD to the caller's.
  const folder = process.env["INIT_CWD"] ?? process.cwd();
  try {
    return readFileSync(file === undefined ? 0 : path.resolve(folder, file), "utf8");
  } catch (error) {
    throw new WrongUsage(`Can't read the file: ${error instanceof Error ? error.message : ""}`);
  }
}

/**
 * Parses comma-separated lines. The first line has the column names, which must all be `known`.
 * Skips empty lines and lines that start with #. Throws `WrongUsage` with the line number.
 */
export function csvLines(text: string, known: readonly string[]): readonly CsvLine[] {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line, index) => ({ line: index + 1, cells: line.split(",").map(unquoted) }))
    .filter(
      ({ cells: [first = "", ...more] }) => !first.startsWith("#") && first + more.join("") !== "",
    );
  const [head, ...rows] = lines;
  if (head === undefined) {
    throw new WrongUsage("The input is empty. The first line must contain the column names.");
  }
  const names = head.cells;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new WrongUsage(`Unknown column '${unknown}'. Columns: ${known.join(", ")}.`);
  }
  return rows.map(({ line, cells }) => {
    if (cells.length > names.length) throw new WrongUsage(`Line ${line} has too many values.`);
    const filled = names.map((name, index) => [name, cells[index] ?? ""] as const);
    return { line, of: Object.fromEntries(filled.filter(([, value]) => value !== "")) };
  });
}

/**
 * Returns the number in a column, or undefined if it is empty. Throws `WrongUsage` for other text.
 */
export function numberIn({ line, of }: CsvLine, name: string): number | undefined {
  const text = of[name];
  if (text === undefined) return undefined;
  if (!/^-?\d+(\.\d+)?$/.test(text)) {
    throw new WrongUsage(`Line ${line}: ${name} must be a number.`);
  }
  return Number(text);
}

function unquoted(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, "$1");
}
