type Value = string | number | boolean | null;

/** What a spreadsheet would run is given a leading apostrophe. */
const FORMULA = /^(?:[=+@\t\r]|-(?!\d+(?:\.\d+)?$))/;

/** Rows as CSV of RFC 4180. Numbers are as they are, text that begins as a formula is disarmed. */
export function csvOf(rows: readonly (readonly Value[])[]): string {
  return rows.map((row) => `${row.map(cellOf).join(",")}\r\n`).join("");
}

function cellOf(value: Value): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
