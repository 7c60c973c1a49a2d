/** Values that differ from run to run, with their placeholders. The longest must come first. */
const VARIABLE: readonly (readonly [RegExp, string])[] = [
  [/svc_(?:sk|st)_[a-z_]*live_\w+/g, "<key>"],
  [/\b(req|key|alert|evt|whk|dlv|chatcmpl|cmpl|embd|msg|resp)[_-][0-9A-Za-z]{24}\b/g, "<$1>"],
  [/\bses_[0-9A-Za-z]{40}\b/g, "<ses>"],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "<uuid>"],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>"],
  [/\b\d{4}-\d\d-\d\d\b/g, "<date>"],
  [/-{3,}/g, "---"],
  [/\s+/g, " "],
];
const STATUS = /\b(?:200|201|400|401|402|403|404|409|422|429|502|503)\b/;
const NUMBER = /-?\d+(?:\.\d+)?/g;
const HEADER = /^[A-Za-z-]+: /;
const JSON_LINES_MAX = 200;

/** Stands in an output for any number of lines. */
const ELLIPSIS = "...";

/**
 * Returns a program's output without the values that differ between runs, one entry per line
 * without empty lines. A JSON value becomes one line with its names and types. IDs, times and
 * numbers become placeholders, but a status stays.
 */
function shapeOf(printed: string): string[] {
  const lines = printed.split("\n").map((line) => line.trimEnd());
  const shape: string[] = [];
  for (let at = 0; at < lines.length;) {
    const { text, used } = jsonAt(lines, at) ?? { text: withoutValues(lines[at] ?? ""), used: 1 };
    if (text !== "") shape.push(text);
    at += used;
  }
  return shape;
}

/** Reports whether an output has the shape of the documented output. */
export function hasShape(printed: string, answer: string): boolean {
  return matches(shapeOf(printed), shapeOf(answer));
}

function matches(lines: readonly string[], pattern: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return lines.length === 0;
  if (first === ELLIPSIS) return lines.concat("").some((_line, i) => matches(lines.slice(i), rest));
  return lines[0] === first && matches(lines.slice(1), rest);
}

/**
 * Returns the JSON value that starts on this line, after an optional `data: `, and its number of
 * lines.
 */
function jsonAt(lines: readonly string[], at: number): { text: string; used: number } | null {
  const [, prefix = "", begin = ""] = /^(data: )?([[{].*)$/.exec(lines[at] ?? "") ?? [];
  if (begin === "") return null;
  for (let used = 1; used <= Math.min(JSON_LINES_MAX, lines.length - at); used++) {
    try {
      const value: unknown = JSON.parse([begin, ...lines.slice(at + 1, at + used)].join("\n"));
      return { text: prefix + JSON.stringify(typesOf(value)), used };
    } catch {
      // The JSON is incomplete so far.
    }
  }
  return null;
}

function typesOf(value: unknown): unknown {
  if (typeof value === "number") return "<number>";
  if (typeof value === "string") return withoutValues(value);
  if (Array.isArray(value)) return value.map(typesOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, typesOf(field)]));
}

function withoutValues(text: string): string {
  const named = VARIABLE.reduce((done, [found, name]) => done.replaceAll(found, name), text).trim();
  return named.replaceAll(NUMBER, (number) =>
    STATUS.test(number) && !HEADER.test(named) ? number : "0",
  );
}
