/** One source file as the rules of tidy-rules.ts read it. */
export type Source = {
  readonly path: string;
  readonly text: string;
  /** The text with comments, strings, templates' text and regular expressions blanked, lines kept. */
  readonly code: string;
  readonly imports: readonly Import[];
};
type Import = {
  /** As written: `./shared/id.ts`, `hono`. */
  readonly from: string;
  /** What stands between `import` or `export` and `from`. */
  readonly what: string;
};

const IMPORT =
  /^(?:import|export)\s+(?:([^;"']*?)\s+from\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;
/** After one of these a slash begins a regular expression, not a division. */
const BEFORE_REGEXP = /(?:^|[=(,:[!&|?{};+\-*%<>~^]|\breturn|\btypeof|\bcase)\s*$/;

export function readSource(path: string, text: string): Source {
  const { code, withoutComments } = blank(text);
  const imports = [...withoutComments.matchAll(IMPORT)].map(
    ([, what = "", from = "", dynamic = ""]) => ({ what, from: from === "" ? dynamic : from }),
  );
  return { path, text, code, imports };
}

/** The path that a relative import names, seen from the file that imports; null for a package. */
export function resolveImport(path: string, from: string): string | null {
  if (!from.startsWith(".")) return null;
  const parts = path.split("/").slice(0, -1);
  for (const part of from.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

type Span = { readonly end: number; readonly kind: "code" | "comment" | "text" };

function blank(text: string): { code: string; withoutComments: string } {
  let code = "";
  let withoutComments = "";
  // Depths of the open `${`: a `}` at that depth goes back to the template's text.
  const templates: number[] = [];
  let depth = 0;
  for (let at = 0; at < text.length;) {
    const character = text.charAt(at);
    const closesHole = character === "}" && templates.at(-1) === depth;
    if (closesHole) templates.pop();
    const isTemplate = closesHole || character === "`";
    const span = spanAt(text, at, isTemplate, code);
    const piece = text.slice(at, span.end);
    if (isTemplate && piece.endsWith("${")) templates.push(depth);
    if (span.kind === "code") depth += { "{": 1, "}": -1 }[piece] ?? 0;
    code += span.kind === "code" ? piece : blanked(piece);
    withoutComments += span.kind === "comment" ? blanked(piece) : piece;
    at = span.end;
  }
  return { code, withoutComments };
}

function spanAt(text: string, at: number, inTemplate: boolean, codeBefore: string): Span {
  const rest = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.exec(text) === null ? text.length : pattern.lastIndex;
  };
  if (inTemplate) return { kind: "text", end: rest(/[`}](?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{)/gy) };
  const two = text.slice(at, at + 2);
  if (two === "//") return { kind: "comment", end: rest(/[^\n]*/gy) };
  if (two === "/*") return { kind: "comment", end: rest(/\/\*[^]*?\*\//gy) };
  const one = text.charAt(at);
  if (one === '"') return { kind: "text", end: rest(/"(?:[^"\\\n]|\\[^])*"/gy) };
  if (one === "'") return { kind: "text", end: rest(/'(?:[^'\\\n]|\\[^])*'/gy) };
  if (one === "/" && BEFORE_REGEXP.test(codeBefore.slice(-20))) {
    return { kind: "text", end: rest(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/gy) };
  }
  return { kind: "code", end: at + 1 };
}

/** Keeps the lines, and every character its place. */
function blanked(piece: string): string {
  return piece.replace(/[^\n]/g, " ");
}
