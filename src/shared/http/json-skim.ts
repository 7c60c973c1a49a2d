/** A field's name that is looked for is no longer than this. */
const NAME_MAX = 32;

/**
 * Copies a JSON text that comes in pieces, cut anywhere, with null in place of the values of some fields, wherever
 * these stand. What is no JSON is copied as it is.
 */
export class JsonSkim {
  readonly #left: ReadonlySet<string>;
  #isInString = false;
  #isEscaped = false;
  /** The text that was read last, or its beginning: a name, if a colon follows. */
  #name = "";
  #isSkipping = false;
  /** Objects and lists that are open in the value that is skipped. */
  #depth = 0;

  /** `left`: the names of the fields. */
  constructor(left: ReadonlySet<string>) {
    this.#left = left;
  }

  /** The copy of the next piece. */
  push(text: string): string {
    let copy = "";
    let from = 0;
    for (let at = 0; at < text.length; at++) {
      const character = text[at] ?? "";
      if (this.#isSkipping) {
        const isWithin = this.#isInString || character === '"' || this.#depth > 0;
        if (!this.#endsValue(character)) continue;
        this.#isSkipping = false;
        this.#depth = 0;
        from = isWithin ? at + 1 : at; // a number ends before what follows it
      } else if (this.#beginsValue(character)) {
        this.#isSkipping = true;
        copy += `${text.slice(from, at + 1)}null`;
      }
    }
    return this.#isSkipping ? copy : copy + text.slice(from);
  }

  /** Whether the value of a field that is left out follows this character. */
  #beginsValue(character: string): boolean {
    if (this.#isInString) {
      const isOpen = this.#staysInString(character);
      if (isOpen && this.#name.length < NAME_MAX) this.#name += character;
      return false;
    }
    if (character === '"') {
      this.#isInString = true;
      this.#name = "";
    }
    return character === ":" && this.#left.has(this.#name);
  }

  /** Whether the value that is skipped is over with this character, or, where it is a number or a word, before it. */
  #endsValue(character: string): boolean {
    if (this.#isInString) return !this.#staysInString(character) && this.#depth === 0;
    if (character === '"') this.#isInString = true;
    else if (character === "{" || character === "[") this.#depth++;
    else if (character === "}" || character === "]") return --this.#depth <= 0;
    return character === "," && this.#depth === 0;
  }

  #staysInString(character: string): boolean {
    const isEnd = character === '"' && !this.#isEscaped;
    this.#isEscaped = character === "\\" && !this.#isEscaped;
    this.#isInString = !isEnd;
    return !isEnd;
  }
}
