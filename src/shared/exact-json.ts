/**
 * Details that JSON parsing in JavaScript loses: digits beyond 53 bits, and the order of integer
 * keys. `JSON.stringify` restores them.
 */

type LostDetails = {
  /** The source texts, by key or index, of numbers that JavaScript would write differently. */
  readonly numbers: ReadonlyMap<PropertyKey, string>;
  readonly order: readonly string[] | null;
};

const LOST_DETAILS = new WeakMap<object, LostDetails>();
const DEPTH_MAX = 128;

const QUOTE = 34;
const PLUS = 43;
const MINUS = 45;
const DECIMAL_POINT = 46;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const E_BIG = 69;
const BRACKET_OPEN = 91;
const BACKSLASH = 92;
const BRACKET_CLOSE = 93;
const E_SMALL = 101;
const BRACE_OPEN = 123;
const BRACE_CLOSE = 125;

/**
 * Parses JSON like `JSON.parse`, but `JSON.stringify` restores the numbers and key order of `text`.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return losesDetails(text) ? new ExactJsonReader(text).read() : value;
}

/**
 * Copies the details that `parseJson` recorded for `original` to its edited copy. Returns the copy.
 */
export function copyExactJson<T extends object>(original: object, copy: T): T {
  const lostDetails = LOST_DETAILS.get(original);
  return lostDetails === undefined ? copy : attachLostDetails(copy, lostDetails);
}

function attachLostDetails<T extends object>(value: T, lostDetails: LostDetails): T {
  if (Object.hasOwn(value, "toJSON")) return value; // a client's field named `toJSON` must stay
  LOST_DETAILS.set(value, lostDetails);
  return Object.defineProperty(value, "toJSON", { value: toExactJson, configurable: true });
}

function toExactJson(this: object): unknown {
  const lostDetails = LOST_DETAILS.get(this);
  if (lostDetails === undefined) return this;
  const { numbers, order } = lostDetails;
  if (Array.isArray(this)) {
    return this.map((item, index) => toExactNumber(item, numbers.get(index)));
  }
  const copy = Object.fromEntries(
    Object.entries(this).map(([key, value]) => [key, toExactNumber(value, numbers.get(key))]),
  );
  if (order === null) return copy;
  const keys = [
    ...new Set([...order.filter((key) => Object.hasOwn(copy, key)), ...Object.keys(copy)]),
  ];
  return new Proxy(copy, { ownKeys: () => keys });
}

function toExactNumber(value: unknown, source: string | undefined): unknown {
  if (source === undefined || !Object.is(value, Number(source))) return value;
  return JSON.rawJSON?.(source) ?? value;
}

declare global {
  interface JSON {
    /** A method of ECMAScript 2026 that Node 20 lacks. */
    rawJSON?(text: string): object;
  }
}

function losesDetails(text: string): boolean {
  let depth = 0;
  let losesDetail = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = findClosingQuote(text, at);
      losesDetail ||= isIndexKey(text, at, end);
      at = end;
    } else if (isNumberStart(code)) {
      const end = numberEnd(text, at);
      losesDetail ||= !isPlainNumber(text, at, end);
      at = end - 1;
    } else if (code === BRACE_OPEN || code === BRACKET_OPEN) {
      if (++depth > DEPTH_MAX) return false;
    } else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) depth--;
  }
  return losesDetail;
}

function isNumberStart(code: number): boolean {
  return code === MINUS || isDigit(code);
}

function isIndexKey(text: string, open: number, end: number): boolean {
  const code = text.charCodeAt(open + 1);
  if (!isDigit(code) || end - open > 11) return false;
  return INDEX.test(text.slice(open + 1, end)) && /^\s*:/.test(text.slice(end + 1, end + 64));
}

const INDEX = /^(?:0|[1-9]\d*)$/;
const SAFE_DIGITS = 15;

function isPlainNumber(text: string, start: number, end: number): boolean {
  if (end - start <= SAFE_DIGITS && isPlainDecimal(text, start, end)) return true;
  const source = text.slice(start, end);
  return String(Number(source)) === source && source !== "-0";
}

function isPlainDecimal(text: string, start: number, end: number): boolean {
  let point = -1;
  for (let at = text.charCodeAt(start) === MINUS ? start + 1 : start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === DECIMAL_POINT) point = at;
    else if (!isDigit(code)) return false;
  }
  if (point === -1) return text.charCodeAt(start) !== MINUS;
  // JavaScript would write 1.0 as 1, and 0.0000001 as 1e-7.
  return text.charCodeAt(end - 1) !== DIGIT_0 && !text.startsWith("00000", point + 1);
}

function isDigit(code: number): boolean {
  return code >= DIGIT_0 && code <= DIGIT_9;
}

function numberEnd(text: string, start: number): number {
  let at = start + 1;
  while (isDigit(text.charCodeAt(at)) || isNumberSign(text.charCodeAt(at))) at++;
  return at;
}

function isNumberSign(code: number): boolean {
  return (
    code === DECIMAL_POINT || code === MINUS || code === PLUS || code === E_SMALL || code === E_BIG
  );
}

export function findClosingQuote(text: string, open: number): number {
  let at = text.indexOf('"', open + 1);
  while (at !== -1 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at === -1 ? text.length : at;
}

/**
 * Reports whether the character at `at` is escaped. The total time is linear, because runs of
 * backslashes don't overlap.
 */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}

class ExactJsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    switch (this.#next()) {
      case BRACE_OPEN:
        return this.#object();
      case BRACKET_OPEN:
        return this.#array();
      case QUOTE:
        return this.#string();
      default:
        return JSON.parse(this.#word());
    }
  }

  #object(): object {
    const entries: [string, unknown][] = [];
    const numbers = new Map<string, string>();
    let isInOrder = true;
    this.#at++;
    while (this.#next() !== BRACE_CLOSE) {
      const key = this.#string();
      this.#next();
      this.#at++;
      const source = this.#lossyNumber();
      if (source === null) numbers.delete(key); // for duplicate keys, the last value counts
      else numbers.set(key, source);
      entries.push([key, source === null ? this.read() : Number(source)]);
      isInOrder &&= !INDEX.test(key);
      this.#comma();
    }
    this.#at++;
    const object = Object.fromEntries(entries);
    if (isInOrder && numbers.size === 0) return object;
    return attachLostDetails(object, {
      numbers,
      order: isInOrder ? null : entries.map(([key]) => key),
    });
  }

  #array(): unknown[] {
    const items: unknown[] = [];
    const numbers = new Map<number, string>();
    this.#at++;
    while (this.#next() !== BRACKET_CLOSE) {
      const source = this.#lossyNumber();
      if (source !== null) numbers.set(items.length, source);
      items.push(source === null ? this.read() : Number(source));
      this.#comma();
    }
    this.#at++;
    return numbers.size === 0 ? items : attachLostDetails(items, { numbers, order: null });
  }

  #lossyNumber(): string | null {
    const code = this.#next();
    if (!isNumberStart(code)) return null;
    const end = numberEnd(this.#text, this.#at);
    if (isPlainNumber(this.#text, this.#at, end)) return null;
    const source = this.#text.slice(this.#at, end);
    this.#at = end;
    return source;
  }

  #string(): string {
    const open = this.#at;
    const end = findClosingQuote(this.#text, open);
    this.#at = end + 1;
    const stringText = this.#text.slice(open + 1, end);
    return stringText.includes("\\") ? String(JSON.parse(`"${stringText}"`)) : stringText;
  }

  #word(): string {
    const start = this.#at;
    while (!WORD_ENDS.has(this.#text.charAt(this.#at))) this.#at++;
    return this.#text.slice(start, this.#at);
  }

  #comma(): void {
    if (this.#text.charAt(this.#at) !== "" && this.#next() === COMMA) this.#at++;
  }

  #next(): number {
    while (this.#text.charCodeAt(this.#at) <= SPACE) this.#at++;
    return this.#text.charCodeAt(this.#at);
  }
}

const COMMA = 44;
const SPACE = 32;
const WORD_ENDS: ReadonlySet<string> = new Set(["", ",", "}", "]", " ", "\n", "\r", "\t"]);
