const DEPTH_MAX = 64;

/**
 * Parses a JSON body independently of the code, by RFC 8259 and the gateway's rules: one object, at
 * most 64 levels, no duplicate name, no lone surrogate, no number beyond a double. Returns
 * undefined if it is invalid.
 */
export function strictObject(text: string): object | undefined {
  const reader = new Reader(text);
  try {
    const value = reader.document();
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch (error) {
    if (error instanceof NotTaken) return undefined;
    throw error;
  }
}

class NotTaken extends Error {}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// oxlint-disable-next-line no-control-regex -- a string may not hold them
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORDS = new Map<string, unknown>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

class Reader {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  document(): unknown {
    const value = this.#value(0);
    if (this.#at !== this.#text.length) throw new NotTaken();
    return value;
  }

  #value(depth: number): unknown {
    this.#space();
    const value = this.#bare(depth);
    this.#space();
    return value;
  }

  #bare(depth: number): unknown {
    if (this.#takes("{")) return this.#members(depth + 1);
    if (this.#takes("[")) return this.#items(depth + 1);
    if (this.#text[this.#at] === '"') return this.#string();
    for (const [word, value] of WORDS) if (this.#takes(word)) return value;
    const number = Number(this.#match(NUMBER));
    if (!Number.isFinite(number)) throw new NotTaken();
    return number;
  }

  #members(depth: number): object {
    const members = new Map<string, unknown>();
    this.#deep(depth);
    this.#space();
    if (this.#takes("}")) return {};
    do {
      this.#space();
      const name = this.#string();
      this.#space();
      if (members.has(name) || !this.#takes(":")) throw new NotTaken();
      members.set(name, this.#value(depth));
    } while (this.#takes(","));
    if (!this.#takes("}")) throw new NotTaken();
    return Object.fromEntries(members);
  }

  #items(depth: number): unknown[] {
    const items: unknown[] = [];
    this.#deep(depth);
    this.#space();
    if (this.#takes("]")) return items;
    do items.push(this.#value(depth));
    while (this.#takes(","));
    if (!this.#takes("]")) throw new NotTaken();
    return items;
  }

  #string(): string {
    const value = JSON.parse(this.#match(STRING)) as string;
    if (/\p{Surrogate}/u.test(value)) throw new NotTaken();
    return value;
  }

  #deep(depth: number): void {
    if (depth > DEPTH_MAX) throw new NotTaken();
  }

  #space(): void {
    while (" \t\r\n".includes(this.#text[this.#at] ?? "x")) this.#at++;
  }

  #takes(token: string): boolean {
    const found = this.#text.startsWith(token, this.#at);
    if (found) this.#at += token.length;
    return found;
  }

  #match(pattern: RegExp): string {
    const sticky = new RegExp(pattern);
    sticky.lastIndex = this.#at;
    const [found] = sticky.exec(this.#text) ?? [];
    if (found === undefined) throw new NotTaken();
    this.#at += found.length;
    return found;
  }
}
