const NAME_MAX = 32;

/**
 * Copies JSON text that arrives in pieces, replacing the values of some fields by null. Copies
 * invalid JSON unchanged.
 */
export class JsonFieldBlanker {
  readonly #skippedNames: ReadonlySet<string>;
  #isInString = false;
  #isEscaped = false;
  #name = "";
  #isSkipping = false;
  #depth = 0;

  constructor(skippedNames: ReadonlySet<string>) {
    this.#skippedNames = skippedNames;
  }

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
        from = isWithin ? at + 1 : at; // a number ends before this character, other values with it
      } else if (this.#beginsValue(character)) {
        this.#isSkipping = true;
        copy += `${text.slice(from, at + 1)}null`;
      }
    }
    return this.#isSkipping ? copy : copy + text.slice(from);
  }

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
    return character === ":" && this.#skippedNames.has(this.#name);
  }

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
