/**
 * The JSON before and after a chunk's text. Most chunks differ only in their text, so the gateway
 * compares this JSON instead of parsing.
 */
type TextTemplate = { readonly before: string; readonly after: string; readonly index: number };

const CONTENT = /"delta":\s?\{"content":\s?/;

const MISSES_MAX = 8;

/** Reads chunks that differ from an earlier chunk only in their text, without JSON parsing. */
export class RepeatedTextReader {
  readonly #at: RegExp;
  #template: TextTemplate | null = null;
  #misses = 0;

  constructor(at = CONTENT) {
    this.#at = at;
  }

  read(payload: string): { kind: "text"; index: number; json: string } | null {
    if (this.#template === null) return null;
    const json = matchTemplateText(payload, this.#template);
    this.#misses = json === null ? this.#misses + 1 : 0;
    return json === null ? null : { kind: "text", index: this.#template.index, json };
  }

  setTemplate(payload: string, index: number, text: string): void {
    this.#template =
      this.#misses < MISSES_MAX ? createTextEventTemplate(payload, index, text, this.#at) : null;
  }

  clearTemplate(): void {
    this.#template = null;
  }
}

export function createTextEventTemplate(
  payload: string,
  index: number,
  content: string,
  at = CONTENT,
): TextTemplate | null {
  const match = at.exec(payload);
  if (match === null) return null;
  const start = match.index + match[0].length;
  const end = literalEnd(payload, start);
  if (end === -1 || JSON.parse(payload.slice(start, end)) !== content) return null;
  return { before: payload.slice(0, start), after: payload.slice(end), index };
}

export function matchTemplateText(payload: string, template: TextTemplate): string | null {
  const { before, after } = template;
  if (!payload.startsWith(before) || !payload.endsWith(after)) return null;
  const end = payload.length - after.length;
  if (literalEnd(payload, before.length) !== end) return null;
  return payload.slice(before.length, end);
}

/* oxlint-disable no-control-regex -- JSON forbids control characters in a string */
const ESCAPE_OR_CONTROL = /\\|[\u0000-\u001f]/;
const LITERAL = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/;
/* oxlint-enable no-control-regex */

function literalEnd(payload: string, start: number): number {
  if (payload.charCodeAt(start) !== 0x22) return -1;
  const quote = payload.indexOf('"', start + 1);
  if (quote === -1) return -1;
  const plain = payload.slice(start, quote + 1);
  if (!ESCAPE_OR_CONTROL.test(plain)) return quote + 1;
  const literal = LITERAL.exec(payload.slice(start));
  return literal === null ? -1 : start + literal[0].length;
}
