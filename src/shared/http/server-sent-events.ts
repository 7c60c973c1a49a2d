import { Utf8PieceDecoder } from "./bounded-body.ts";

type ServerSentEvent = { readonly name: string; readonly data: string };

/** Maximum UTF-16 units of an event. */
export const EVENT_LENGTH_MAX = 4 * 1024 * 1024;
const FOREIGN_LENGTH_MAX = 64 * 1024;
// A line with an empty field name is a comment.
const FIELD_NAMES: ReadonlySet<string> = new Set(["", "data", "event", "id", "retry"]);

/**
 * Decodes server-sent events (WHATWG HTML 9.2.6) from bytes that are split anywhere. In overlong
 * lines, replaces the fields `skippedNames` with null. If an event is still too long, sets
 * `overflowed` and stops.
 */
export class SseDecoder {
  overflowed = false;
  /** Lines that aren't SSE fields, such as Google's errors. */
  foreign = "";
  readonly #text = new Utf8PieceDecoder();
  readonly #lengthMax: number;
  readonly #skippedNames: ReadonlySet<string> | null;
  #fieldBlanker: JsonFieldBlanker | null = null;
  #line = "";
  #name = "";
  #data: string | null = null;
  #skipLineFeed = false;

  constructor(lengthMax = EVENT_LENGTH_MAX, skippedNames: ReadonlySet<string> | null = null) {
    this.#lengthMax = lengthMax;
    this.#skippedNames = skippedNames;
  }

  push(bytes: Uint8Array): string[] {
    return this.events(bytes).map((event) => event.data);
  }

  flush(): string[] {
    return this.flushEvents().map((event) => event.data);
  }

  events(bytes: Uint8Array): ServerSentEvent[] {
    return this.#decode(this.#text.decode(bytes));
  }

  flushEvents(): ServerSentEvent[] {
    return this.#decode(`${this.#text.end()}\n\n`);
  }

  #decode(text: string): ServerSentEvent[] {
    const singleEvent = this.#singleEvent(text);
    if (singleEvent !== null) return [singleEvent];
    const events: ServerSentEvent[] = [];
    const lineEnds = new LineEnds(text);
    let start = 0;
    while (!this.overflowed && start < text.length) {
      if (this.#skipLineFeed) {
        this.#skipLineFeed = false;
        if (text.startsWith("\n", start)) start++;
        continue;
      }
      const end = lineEnds.from(start);
      this.#appendToLine(text.slice(start, end));
      this.overflowed = this.#isTooLong();
      if (end === text.length || this.overflowed) break;
      this.#skipLineFeed = text[end] === "\r";
      start = end + 1;
      const event = this.#endLine();
      if (event !== null) events.push(event);
    }
    return events;
  }

  #appendToLine(text: string): void {
    this.#line += this.#fieldBlanker === null ? text : this.#fieldBlanker.push(text);
    if (this.#fieldBlanker !== null || this.#skippedNames === null || !this.#isTooLong()) return;
    this.#fieldBlanker = new JsonFieldBlanker(this.#skippedNames);
    this.#line = this.#fieldBlanker.push(this.#line);
  }

  #isTooLong(): boolean {
    return this.#line.length + (this.#data?.length ?? 0) > this.#lengthMax;
  }

  #singleEvent(text: string): ServerSentEvent | null {
    const isBetweenEvents = this.#line === "" && this.#data === null && this.#name === "";
    if (!isBetweenEvents || this.#skipLineFeed || text.length > this.#lengthMax) return null;
    const isSingleEvent = text.startsWith("data: ") && text.indexOf("\n") === text.length - 2;
    if (!isSingleEvent || !text.endsWith("\n") || text.includes("\r")) return null;
    return { name: "message", data: text.slice("data: ".length, -2) };
  }

  #endLine(): ServerSentEvent | null {
    const line = this.#line;
    this.#line = "";
    this.#fieldBlanker = null;
    if (line === "") return this.#endEvent();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    else if (field === "event") this.#name = value;
    else if (!FIELD_NAMES.has(field) && this.foreign.length < FOREIGN_LENGTH_MAX) {
      this.foreign += `${line.slice(0, FOREIGN_LENGTH_MAX)}\n`;
    }
    return null;
  }

  #endEvent(): ServerSentEvent | null {
    const [name, data] = [this.#name, this.#data];
    this.#name = "";
    this.#data = null;
    return data === null ? null : { name: name === "" ? "message" : name, data };
  }
}

/**
 * Finds the ends of a text's lines. Searches for LF and CR separately, because a joint search would
 * take quadratic time.
 */
class LineEnds {
  readonly #text: string;
  #lineFeed = -1;
  #carriageReturn = -1;

  constructor(text: string) {
    this.#text = text;
  }

  from(start: number): number {
    if (this.#lineFeed < start) this.#lineFeed = this.#next("\n", start);
    if (this.#carriageReturn < start) this.#carriageReturn = this.#next("\r", start);
    return Math.min(this.#lineFeed, this.#carriageReturn);
  }

  #next(end: string, start: number): number {
    const at = this.#text.indexOf(end, start);
    return at === -1 ? this.#text.length : at;
  }
}

const NAME_MAX = 32;

/**
 * Copies JSON text from pieces, with the values of some fields replaced by null. Copies invalid
 * JSON unchanged.
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
        from = isWithin ? at + 1 : at; // all values except numbers include this character
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
