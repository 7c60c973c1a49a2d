const HEAD = /^\s*\{\s*"input"\s*:\s*"/;
const HEAD_MAX = 64;
const ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/**
 * Decodes the text in `{"input":"..."}` as it arrives. Incomplete escapes and surrogate pairs wait
 * for the next piece.
 */
export class CustomInputReader {
  text = "";
  #rest = "";
  #where: "head" | "text" | "after" | "other" = "head";

  next(json: string): string {
    if (this.#where === "after" || this.#where === "other") return "";
    this.#rest += json;
    if (this.#where === "head" && !this.#readHead()) return "";
    const piece = this.#readText();
    this.text += piece;
    return piece;
  }

  /**
   * Returns the part of `whole` that hasn't been returned yet. Text that was already returned can't
   * change.
   */
  end(whole: string): string {
    if (this.#where === "after" || !whole.startsWith(this.text)) return "";
    if (this.#where === "text") return "";
    const piece = whole.slice(this.text.length);
    this.text = whole;
    return piece;
  }

  #readHead(): boolean {
    const [head] = HEAD.exec(this.#rest.slice(0, HEAD_MAX)) ?? [];
    if (head === undefined) {
      if (this.#rest.length >= HEAD_MAX) this.#where = "other";
      return false;
    }
    this.#where = "text";
    this.#rest = this.#rest.slice(head.length);
    return true;
  }

  #readText(): string {
    const rest = this.#rest;
    let piece = "";
    let at = 0;
    while (at < rest.length) {
      const stop = nextSpecial(rest, at);
      piece += rest.slice(at, stop);
      at = stop;
      if (at >= rest.length) break;
      if (rest.charAt(at) === '"') {
        this.#where = "after";
        this.#rest = "";
        return piece;
      }
      const escape = escapeAt(rest, at);
      if (escape === null) break;
      piece += escape.character;
      at += escape.length;
    }
    this.#rest = rest.slice(at);
    return this.#withoutHalf(piece);
  }

  #withoutHalf(piece: string): string {
    const last = piece.charCodeAt(piece.length - 1);
    if (!(last >= 0xd800 && last <= 0xdbff)) return piece;
    this.#rest = `\\u${last.toString(16)}${this.#rest}`;
    return piece.slice(0, -1);
  }
}

function nextSpecial(text: string, from: number): number {
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
