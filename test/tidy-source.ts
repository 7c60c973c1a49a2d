/** One source file as the rules of tidy-rules.ts read it. */
export type Source = {
  readonly path: string;
  readonly text: string;
  /** The text without comments, strings, template text and regular expressions. Lines stay. */
  readonly code: string;
  readonly imports: readonly Import[];
};
type Import = {
  /** As in the source: `./shared/id.ts`, `hono`. */
  readonly from: string;
  /** The text between `import` or `export` and `from`. */
  readonly what: string;
};

const IMPORT =
  /^(?:import|export)\s+(?:([^;"']*?)\s+from\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;
/** After one of these, a slash starts a regular expression instead of a division. */
const BEFORE_REGEXP = /(?:^|[=(,:[!&|?{};+\-*%<>~^]|\breturn|\btypeof|\bcase)\s*$/;

export function readSource(path: string, text: string): Source {
  const { code, withoutComments } = blank(text);
  const imports = [...withoutComments.matchAll(IMPORT)].map(
    ([, what = "", from = "", dynamic = ""]) => ({ what, from: from === "" ? dynamic : from }),
  );
  return { path, text, code, imports };
}

/** Returns the path of a relative import, or null for a package. */
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
  // Depths of open `${`. A `}` at such a depth returns to the template's text.
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

/** Replaces a text by spaces, so that lines and positions stay. */
function blanked(piece: string): string {
  return piece.replace(/[^\n]/g, " ");
}
