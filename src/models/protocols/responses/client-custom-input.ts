const INPUT_PREFIX = /^\s*\{\s*"input"\s*:\s*"/;
const PREFIX_CHARACTERS_MAX = 64;
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
    const rest = this.#unread;
    let piece = "";
    let at = 0;
    while (at < rest.length) {
      const specialAt = indexOfSpecial(rest, at);
      piece += rest.slice(at, specialAt);
      at = specialAt;
      if (at >= rest.length) break;
      if (rest.charAt(at) === '"') {
        this.#state = "after";
        this.#unread = "";
        return piece;
      }
      const escape = escapeAt(rest, at);
      if (escape === null) break;
      piece += escape.character;
      at += escape.length;
    }
    this.#unread = rest.slice(at);
    return this.#withoutHalfSurrogate(piece);
  }

  #withoutHalfSurrogate(piece: string): string {
    const last = piece.charCodeAt(piece.length - 1);
    if (!(last >= 0xd800 && last <= 0xdbff)) return piece;
    this.#unread = `\\u${last.toString(16)}${this.#unread}`;
    return piece.slice(0, -1);
  }
}

function indexOfSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"' || character === "\\") return at;
  }
  return text.length;
}

function escapeAt(text: string, at: number): { character: string; length: number } | null {
  const letter = text.charAt(at + 1);
  if (letter === "") return null;
  if (letter !== "u") return { character: ESCAPES[letter] ?? letter, length: 2 };
  const digits = text.slice(at + 2, at + 6);
  if (digits.length < 4) return null;
  return { character: String.fromCharCode(Number.parseInt(digits, 16) || 0), length: 6 };
}
