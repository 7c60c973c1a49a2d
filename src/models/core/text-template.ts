/**
 * Most chunks of a stream are the chunk before with another text. The template of one such payload is
 * what stands before and after its text, to the letter, so that the next is recognized by comparing
 * and needs no parsing: `{"id":"x",...,"delta":{"content":` + `"a word"` + `},...}`.
 */
export type TextTemplate = {
  readonly before: string;
  readonly after: string;
  readonly index: number;
};

/** Where the text of such a payload begins; `"content"` may be written with or without a space. */
const CONTENT = /"delta":\s?\{"content":\s?/;

/** A host whose payloads differ in more than their text is not compared for ever. */
const MISSES_MAX = 8;

/** Payloads of one stream that are the one before with another text; `at`: where the text begins. */
export class RepeatedText {
  readonly #at: RegExp;
  #template: TextTemplate | null = null;
  #misses = 0;

  constructor(at = CONTENT) {
    this.#at = at;
  }

  /** The text alone; null for every other payload, which must be read, and then learned or forgotten. */
  read(payload: string): { kind: "text"; index: number; json: string } | null {
    if (this.#template === null) return null;
    const json = textOf(payload, this.#template);
    this.#misses = json === null ? this.#misses + 1 : 0;
    return json === null ? null : { kind: "text", index: this.#template.index, json };
  }

  /** The payload says nothing but this text. */
  learn(payload: string, index: number, text: string): void {
    this.#template =
      this.#misses < MISSES_MAX ? textTemplate(payload, index, text, this.#at) : null;
  }

  forget(): void {
    this.#template = null;
  }
}

/**
 * The template of a payload whose one choice says nothing but text, or null. `content` is that text as
 * it was parsed: writing it back must give the payload again, so that nothing can hide behind it.
 */
export function textTemplate(
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

/** The JSON string literal in a payload that fits the template, or null. */
export function textOf(payload: string, template: TextTemplate): string | null {
  const { before, after } = template;
  if (!payload.startsWith(before) || !payload.endsWith(after)) return null;
  const end = payload.length - after.length;
  // Ending anywhere else, the text would reach into what follows it, or the payload be cut short.
  if (literalEnd(payload, before.length) !== end) return null;
  return payload.slice(before.length, end);
}

/* oxlint-disable no-control-regex -- JSON forbids control characters in a string */
/** A backslash, or a control character. */
const SPECIAL = /\\|[\u0000-\u001f]/;
/** RFC 8259 section 7. */
const LITERAL = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/;
/* oxlint-enable no-control-regex */

/** The index after the string literal that begins at `start`, or -1 when none does. */
function literalEnd(payload: string, start: number): number {
  if (payload.charCodeAt(start) !== 0x22) return -1;
  const quote = payload.indexOf('"', start + 1);
  if (quote === -1) return -1;
  const plain = payload.slice(start, quote + 1);
  if (!SPECIAL.test(plain)) return quote + 1;
  const literal = LITERAL.exec(payload.slice(start));
  return literal === null ? -1 : start + literal[0].length;
}
