import { printable, textTable } from "../table.ts";

const MICROS_PER_DOLLAR = 1_000_000n;
const UNKNOWN = "unknown";

/** A JSON object from the region. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Texts for null by field. Other fields show `none`, or nothing in a table. */
const ABSENT: Readonly<Record<string, string>> = {
  credits_micro: UNKNOWN,
  held_micro: UNKNOWN,
  open_holds: UNKNOWN,
  waiting: UNKNOWN,
  dead: UNKNOWN,
  parked: UNKNOWN,
  oldest_ms: UNKNOWN,
  last_used_at: "never",
  types: "all",
  rpm_limit: "no limit",
  group: "(none)",
  expected: "nothing",
  found: "nothing",
};
const LABELS: Readonly<Record<string, string>> = {
  rpm_limit: "requests per minute",
  tpm_limit: "tokens per minute",
  revoked: "state",
};

/** Converts micro-credits to exact dollars with 6 decimals. */
export function dollars(micros: number): string {
  const whole = BigInt(Math.abs(micros));
  const decimals = String(whole % MICROS_PER_DOLLAR).padStart(6, "0");
  return `${micros < 0 ? "-" : ""}${whole / MICROS_PER_DOLLAR}.${decimals}`;
}

/**
 * Returns a record's fields as lines. `columns` are separated by commas; `*` means all others.
 * Missing fields are skipped.
 */
export function fields(answer: JsonRecord, columns = "*"): string {
  const named = columns.split(", ");
  const others = Object.keys(answer).filter((name) => !named.includes(name));
  const names = named.flatMap((name) => (name === "*" ? others : [name]));
  const rows = names
    .filter((name) => name in answer)
    .map((name) => [labelOf(name), textOf(name, answer[name])]);
  return textTable([{ title: "" }, { title: "" }], rows, false);
}

/**
 * The layout of a table. `widths` are minimum column widths, which align separate pages. `head`
 * false omits the titles.
 */
type Layout = { readonly widths?: readonly number[]; readonly head?: boolean };

/**
 * Returns a list as a table. Columns are separated by commas. Each is a field, optionally followed
 * by a title. `reference|generation_id` uses the first field that is present. A leading `>` aligns
 * right, and `=` prints the value unchanged.
 */
export function table(
  list: readonly JsonRecord[],
  columns: string,
  { widths = [], head = true }: Layout = {},
): string {
  const shown = columns.split(", ").map((column) => {
    const [, marks = "", names = "", title = ""] = /^([>=]*)(\S+) ?(.*)$/.exec(column) ?? [];
    return {
      names: names.split("|"),
      title,
      isRight: marks.includes(">"),
      isRaw: marks.includes("="),
    };
  });
  const titles = shown.map(({ names: [name = ""], title, isRight, isRaw }, i) => ({
    title: title || (isRaw ? name.replaceAll("_", " ") : labelOf(name)),
    align: isRight ? ("right" as const) : ("left" as const),
    least: widths[i] ?? 0,
  }));
  const rows = list.map((row) =>
    shown.map(({ names, isRaw }) => {
      const name = names.find((one) => row[one] !== null) ?? names[0] ?? "";
      return isRaw ? textOf("", row[name]) : textOf(name, row[name], true);
    }),
  );
  return textTable(titles, rows, head);
}

/** Replaces every `{field}` or `{record.field}` in a text with its value. */
export function fillIn(text: string, answer: JsonRecord): string {
  return text.replaceAll(/\{([\w.]+)\}/g, (_, at: string) => {
    const names = at.split(".");
    const value = names.reduce<unknown>(
      (part, name) => (part as JsonRecord | null)?.[name],
      answer,
    );
    return printable(textOf(names.at(-1) ?? "", value));
  });
}

function labelOf(name: string): string {
  return LABELS[name] ?? name.replaceAll(/^is_|_(?:at|id|micro)$/g, "").replaceAll("_", " ");
}

/**
 * Returns a field's text. Times end in seconds and amounts are in dollars, outside of tables also
 * in micro-credits.
 */
export function textOf(name: string, value: unknown, isCell = false): string {
  if (value === null || value === undefined) return ABSENT[name] ?? (isCell ? "" : "none");
  if (typeof value === "object") {
    const parts = Object.values(value).map((one) => textOf("", one));
    return parts.join(Array.isArray(value) ? "," : ":");
  }
  return scalarText(name, value, isCell);
}

function scalarText(name: string, value: unknown, isCell: boolean): string {
  if (typeof value === "boolean") return boolText(name, value);
  if (typeof value === "number" && name.endsWith("_micro")) {
    return isCell ? dollars(value) : `${dollars(value)} dollars (${value} micros)`;
  }
  if (typeof value !== "string") return JSON.stringify(value);
  return name.endsWith("_at") ? value.replace(/\.\d+Z$/, "Z") : value;
}

function boolText(name: string, value: boolean): string {
  if (name === "revoked") return value ? "revoked" : "live";
  if (name.startsWith("is_")) return value ? "yes" : "no";
  return String(value);
}
