const INPUT_PREFIX = /^\s*\{\s*"input"\s*:\s*"/;
const PREFIX_CHARACTERS_MAX = 64;
/** Matches a string's characters up to its end or an incomplete escape. */
const COMPLETE_CHARACTERS = /^(?:[^"\\]+|\\u[^]{4}|\\[^u])*/;
const ESCAPE = /\\(?:u([^]{4})|([^u]))/g;
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Decodes `{"input":"..."}` piece by piece. Keeps incomplete escapes and surrogate pairs for the
 * next piece.
 */
export class CustomInputReader {
  text = "";
  #unread = "";
  #state: "head" | "text" | "after" | "other" = "head";

  next(json: string): string {
    if (this.#state === "after" || this.#state === "other") return "";
    this.#unread += json;
    if (this.#state === "head" && !this.#readHead()) return "";
    const piece = this.#readText();
    this.text += piece;
    return piece;
  }

  /** Returns the rest of `whole` after the text already returned. */
  end(whole: string): string {
    if (this.#state === "after" || !whole.startsWith(this.text)) return "";
    if (this.#state === "text") return "";
    const piece = whole.slice(this.text.length);
    this.text = whole;
    return piece;
  }

  #readHead(): boolean {
    const [head] = INPUT_PREFIX.exec(this.#unread.slice(0, PREFIX_CHARACTERS_MAX)) ?? [];
    if (head === undefined) {
      if (this.#unread.length >= PREFIX_CHARACTERS_MAX) this.#state = "other";
      return false;
    }
    this.#state = "text";
    this.#unread = this.#unread.slice(head.length);
    return true;
  }

  #readText(): string {
    const [literal = ""] = COMPLETE_CHARACTERS.exec(this.#unread) ?? [];
    const piece = literal.replaceAll(ESCAPE, decodeEscape);
    this.#unread = this.#unread.slice(literal.length);
    if (!this.#unread.startsWith('"')) return this.#withoutHalfSurrogate(piece);
    this.#state = "after";
    this.#unread = "";
    return piece;
  }

  #withoutHalfSurrogate(piece: string): string {
    const last = piece.charCodeAt(piece.length - 1);
    if (!(last >= 0xd800 && last <= 0xdbff)) return piece;
    this.#unread = `\\u${last.toString(16)}${this.#unread}`;
    return piece.slice(0, -1);
  }
}

function decodeEscape(_: string, digits: string | undefined, letter = ""): string {
  if (digits === undefined) return ESCAPES[letter] ?? letter;
  return String.fromCharCode(Number.parseInt(digits, 16) || 0);
}
