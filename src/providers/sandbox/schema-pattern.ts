/** More characters than this are not made for a pattern, whatever its quantifiers ask. */
const CHARACTERS_MAX = 10_000;
/** Groups within groups, deeper than any sensible pattern. */
const DEPTH_MAX = 50;

/**
 * A text that matches a regular expression, or null when it uses what is not known here (lookaround,
 * back references, rare escapes). The pattern is read, never run: it is the client's, and running it
 * could take for ever. Takes the first alternative and the fewest repetitions, and more of the first
 * open-ended one where `least` characters are not reached. Variants pick other characters of a class.
 */
export function patternText(pattern: string, least: number, variant: number): string | null {
  const shortest = read(pattern, { extra: 0, variant });
  if (shortest === null || shortest.length >= least) return shortest;
  const longer = read(pattern, { extra: least - shortest.length, variant });
  if (longer === null || longer.length >= least || pattern.endsWith("$")) return longer;
  return longer + "x".repeat(Math.min(least, CHARACTERS_MAX) - longer.length);
}

type Wish = { readonly extra: number; readonly variant: number };
type Range = readonly [from: number, to: number];

function read(pattern: string, wish: Wish): string | null {
  const reader = new PatternReader(Array.from(pattern), wish);
  try {
    const text = reader.alternatives(0);
    return reader.atEnd() ? text : null;
  } catch (error) {
    if (error instanceof UnknownPattern) return null;
    throw error;
  }
}

class UnknownPattern extends Error {}

/** Reads a pattern from left to right and writes a match on the way. */
class PatternReader {
  #at = 0;
  #extra: number;
  readonly #characters: readonly string[];
  readonly #variant: number;

  constructor(characters: readonly string[], wish: Wish) {
    this.#characters = characters;
    this.#extra = wish.extra;
    this.#variant = wish.variant;
  }

  atEnd(): boolean {
    return this.#at === this.#characters.length;
  }

  /** The first of `a|b|c`; the others are read and dropped. */
  alternatives(depth: number): string {
    if (depth > DEPTH_MAX) throw new UnknownPattern();
    const first = this.#sequence(depth);
    const extra = this.#extra;
    while (this.#take("|")) this.#sequence(depth);
    this.#extra = extra;
    return first;
  }

  #sequence(depth: number): string {
    let text = "";
    while (!this.atEnd() && this.#peek() !== "|" && this.#peek() !== ")") {
      text += this.#repeated(this.#atom(depth));
      if (text.length > CHARACTERS_MAX) throw new UnknownPattern();
    }
    return text;
  }

  #atom(depth: number): string {
    const character = this.#next();
    if (character === "^" || character === "$") return "";
    if (character === ".") return this.#pick(LETTERS);
    if (character === "[") return this.#characterClass();
    if (character === "\\") return this.#escape();
    if (character !== "(") return character;
    if (this.#take("?") && !this.#take(":")) this.#groupName();
    const text = this.alternatives(depth + 1);
    if (!this.#take(")")) throw new UnknownPattern();
    return text;
  }

  #groupName(): void {
    const isName = this.#take("<") && this.#peek() !== "=" && this.#peek() !== "!";
    if (!isName) throw new UnknownPattern();
    while (this.#next() !== ">");
  }

  #escape(): string {
    const character = this.#next();
    if (character === "b" || character === "B") return "";
    const negated = NEGATED.get(character);
    if (negated !== undefined) return negated;
    return this.#pick(this.#escapedRanges(character));
  }

  #escapedRanges(character: string): readonly Range[] {
    const known = CLASSES.get(character);
    if (known !== undefined) return known;
    if (character === "x") return [this.#hex(2)];
    if (character === "u") return [this.#hex(4)];
    if (/[0-9A-Za-z]/.test(character)) throw new UnknownPattern();
    return [rangeOf(character, character)];
  }

  #hex(length: number): Range {
    const digits = this.#characters.slice(this.#at, this.#at + length).join("");
    if (digits.length < length || !/^[0-9A-Fa-f]+$/.test(digits)) throw new UnknownPattern();
    this.#at += length;
    return [parseInt(digits, 16), parseInt(digits, 16)];
  }

  #characterClass(): string {
    const negated = this.#take("^");
    const ranges: Range[] = [];
    while (!this.#take("]")) ranges.push(...this.#classMember());
    if (!negated) return this.#pick(ranges);
    const free = CANDIDATES.split("").find(
      (candidate) => !ranges.some((r) => within(candidate, r)),
    );
    if (free === undefined) throw new UnknownPattern();
    return free;
  }

  #classMember(): readonly Range[] {
    const from = this.#classCharacter();
    const isRange = this.#peek() === "-" && this.#characters[this.#at + 1] !== "]";
    const [single] = from;
    if (!isRange || from.length !== 1 || single === undefined) return from;
    this.#next();
    const [to] = this.#classCharacter();
    if (to === undefined || to[1] < single[0]) throw new UnknownPattern();
    return [[single[0], to[1]]];
  }

  #classCharacter(): readonly Range[] {
    const character = this.#next();
    return character === "\\" ? this.#escapedRanges(this.#next()) : [rangeOf(character, character)];
  }

  #repeated(text: string): string {
    const [least, most] = this.#quantifier();
    if (least * text.length > CHARACTERS_MAX) throw new UnknownPattern();
    let times = least;
    if (most > least && text !== "" && this.#extra > 0) {
      times += Math.min(most - least, Math.ceil(this.#extra / text.length));
      this.#extra -= (times - least) * text.length;
    }
    return text.repeat(times);
  }

  #quantifier(): readonly [least: number, most: number] {
    const [whole, least, comma, most] = BRACES.exec(this.#ahead()) ?? [];
    let bounds: readonly [number, number] = [1, 1];
    if (this.#take("*")) bounds = [0, CHARACTERS_MAX];
    else if (this.#take("+")) bounds = [1, CHARACTERS_MAX];
    else if (this.#take("?")) bounds = [0, 1];
    else if (whole !== undefined) {
      this.#at += whole.length;
      const open = most === "" ? CHARACTERS_MAX : Number(most);
      bounds = [Number(least), comma === undefined ? Number(least) : open];
    } else return bounds;
    this.#take("?"); // lazy or greedy: the same texts match
    return bounds;
  }

  /** What a quantifier in braces can span. */
  #ahead(): string {
    return this.#peek() === "{" ? this.#characters.slice(this.#at, this.#at + 20).join("") : "";
  }

  #pick(ranges: readonly Range[]): string {
    const range = ranges[this.#variant % Math.max(1, ranges.length)];
    if (range === undefined) throw new UnknownPattern();
    const [from, to] = range;
    return String.fromCodePoint(from + (this.#variant % (to - from + 1)));
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #next(): string {
    const character = this.#characters[this.#at];
    if (character === undefined) throw new UnknownPattern();
    this.#at++;
    return character;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }
}

const BRACES = /^\{(\d{1,6})(?:(,)(\d{0,6}))?\}/;
/** Tried in this order for a class such as [^a-z]. */
const CANDIDATES = "aA0_- .~é";
const LETTERS: readonly Range[] = [rangeOf("a", "z")];
const CLASSES: ReadonlyMap<string, readonly Range[]> = new Map([
  ["d", [rangeOf("0", "9")]],
  ["w", [rangeOf("a", "z"), rangeOf("A", "Z"), rangeOf("0", "9"), rangeOf("_", "_")]],
  ["s", [rangeOf(" ", " "), rangeOf("\t", "\r")]],
  ["n", [rangeOf("\n", "\n")]],
  ["r", [rangeOf("\r", "\r")]],
  ["t", [rangeOf("\t", "\t")]],
  ["f", [rangeOf("\f", "\f")]],
  ["v", [rangeOf("\v", "\v")]],
  ["0", [rangeOf("\0", "\0")]],
]);
const NEGATED: ReadonlyMap<string, string> = new Map([
  ["D", "a"],
  ["W", "-"],
  ["S", "a"],
]);

function rangeOf(from: string, to: string): Range {
  return [from.codePointAt(0) ?? 0, to.codePointAt(0) ?? 0];
}

function within(character: string, range: Range): boolean {
  const code = character.codePointAt(0) ?? 0;
  return code >= range[0] && code <= range[1];
}
