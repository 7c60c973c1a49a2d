import { NO_USAGE } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { eventTooLargeFailure, failureEvents } from "./failed-usage.ts";
import { END_EVENT, retry } from "./frame-reader.ts";
import type { StreamReader } from "./http-provider.ts";
import { parsePlainObject } from "./json-value.ts";
import { isFailure } from "./provider.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "./provider.ts";

const REST_MAX = 1024 * 1024;
const TEXT_MAX = 16 * 1024;
const LINE_MAX = 64;
const QUOTE = 34;
const BACKSLASH = 92;
const PICTURE = /"(?:b64_json|data|audio_data)"\s*:\s*"$/;
const PARTIAL = /"type"\s*:\s*"[\w.]*partial_image"/;

type PictureFacts = { readonly usage: Usage | null; readonly fields: JsonObject };
export type ReadImageFacts = (
  raw: JsonObject,
  pictureCount: number,
) => PictureFacts | ProviderFailure;

/**
 * Reads images from JSON, or from server-sent events with one image each. Passes base64 on in
 * pieces, so that any size fits into memory.
 */
export class ImageReader implements StreamReader {
  readonly #facts: ReadImageFacts;
  readonly #isImage: boolean;
  readonly #decoder = new TextDecoder();
  #rest: string[] | null = null;
  #length = 0;
  #tail = "";
  #line = "";
  #depth = 0;
  #state: "plain" | "text" | "picture" = "plain";
  #isEscaped = false;
  #textAt = 0;
  #textLength = 0;
  #isPartial = false;
  #count = 0;
  #responseCount = 0;
  ended = false;

  constructor(facts: ReadImageFacts, isImage = true) {
    this.#facts = facts;
    this.#isImage = isImage;
  }

  get kept(): number {
    return this.#length;
  }

  /**
   * Passes on bytes within an image without decoding them, because decoding large images would
   * block other requests.
   */
  push(bytes: Uint8Array): StreamEvent[] {
    if (this.#isWithinImage(bytes)) return [this.#pieceOf(bytes)];
    return this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  #isWithinImage(bytes: Uint8Array): boolean {
    if (!this.#isImage || this.#state !== "picture" || this.#isEscaped) return false;
    return !bytes.includes(QUOTE) && !bytes.includes(BACKSLASH);
  }

  #pieceOf(text: string | Uint8Array): StreamEvent {
    return { kind: "piece", index: this.#count, text, isPartial: this.#isPartial };
  }

  flush(): StreamEvent[] {
    return [];
  }

  #read(text: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    let at = 0;
    while (at < text.length && !this.ended) {
      if (this.#rest === null) at = this.#between(text, at);
      else if (this.#state === "plain") at = this.#structure(text, at, events);
      else at = this.#string(text, at, events);
      if (this.kept > REST_MAX) this.#fail(events, eventTooLargeFailure(REST_MAX));
    }
    return events;
  }

  #between(text: string, from: number): number {
    for (let at = from; at < text.length; at += 1) {
      const one = text[at] ?? "";
      if (one === "\n") this.#line = "";
      else if (one === "{" && /^(?:data:)?\s*$/.test(this.#line)) {
        this.#rest = [];
        this.#depth = 0;
        this.#responseCount = 0;
        return at;
      } else if (this.#line.length < LINE_MAX) this.#line += one;
    }
    return text.length;
  }

  #structure(text: string, from: number, events: StreamEvent[]): number {
    for (let at = from; at < text.length; at += 1) {
      const one = text[at];
      if (one === "{") this.#depth += 1;
      else if (one === "}") this.#depth -= 1;
      if (one !== '"' && this.#depth > 0) continue;
      this.#keep(text.slice(from, at + 1));
      if (one === '"') this.#open();
      else this.#close(events);
      return at + 1;
    }
    this.#keep(text.slice(from));
    return text.length;
  }

  #keep(text: string): void {
    this.#rest?.push(text);
    this.#length += text.length;
    this.#tail = (this.#tail + text).slice(-LINE_MAX);
  }

  #open(): void {
    this.#textAt = this.#rest?.length ?? 0;
    this.#textLength = 0;
    const isPicture = PICTURE.test(this.#tail);
    this.#state = isPicture ? "picture" : "text";
    if (!isPicture) return;
    // Checked once per response, because the check joins all text except the images.
    if (this.#responseCount === 0) this.#isPartial = PARTIAL.test(this.#rest?.join("") ?? "");
    this.#responseCount += 1;
    if (!this.#isPartial) this.#count += 1;
  }

  #string(text: string, from: number, events: StreamEvent[]): number {
    let end = from;
    if (this.#isEscaped) end += 1;
    this.#isEscaped = false;
    for (;;) {
      const quote = text.indexOf('"', end);
      const backslash = text.slice(end, quote === -1 ? text.length : quote).indexOf("\\");
      if (backslash === -1) {
        const hasEnded = quote !== -1;
        this.#take(text.slice(from, hasEnded ? quote : text.length), events);
        if (!hasEnded) return text.length;
        this.#keep('"');
        this.#state = "plain";
        return quote + 1;
      }
      end += backslash + 2;
      if (end > text.length) {
        this.#isEscaped = true;
        this.#take(text.slice(from), events);
        return text.length;
      }
    }
  }

  #take(text: string, events: StreamEvent[]): void {
    if (text === "") return;
    if (this.#state === "picture") {
      events.push(this.#pieceOf(text));
      return;
    }
    const before = Math.min(this.#textLength, TEXT_MAX);
    this.#textLength += text.length;
    if (this.#textLength <= TEXT_MAX) return this.#keep(text);
    if ((this.#rest?.length ?? 0) > this.#textAt) this.#length -= before;
    this.#rest?.splice(this.#textAt);
    this.#tail = "";
  }

  #close(events: StreamEvent[]): void {
    const raw = parsePlainObject(this.#rest?.join("") ?? "");
    this.#rest = null;
    this.#length = 0;
    this.#line = "";
    if (raw === null) return this.#fail(events, retry("bad_json"));
    if (this.#isPartial) {
      this.#isPartial = false;
      events.push(nativeEvent(raw), { kind: "thinking" });
      return;
    }
    const facts = this.#facts(raw, this.#count);
    if (isFailure(facts)) return this.#fail(events, facts);
    if (this.#count === 0) return this.#fail(events, retry("no_image"));
    events.push(nativeEvent(facts.fields));
    const images = { ...(facts.usage ?? NO_USAGE), image: this.#count };
    const usage = this.#isImage ? images : facts.usage;
    if (usage !== null) events.push({ kind: "usage", usage });
    events.push(END_EVENT);
    this.ended = true;
  }

  #fail(events: StreamEvent[], failure: ProviderFailure): void {
    this.ended = true;
    events.push(...failureEvents(failure, failure.spent?.usage));
  }
}

export function decodePiece(piece: string | Uint8Array): string {
  return typeof piece === "string" ? piece : new TextDecoder().decode(piece);
}

function nativeEvent(event: JsonObject): StreamEvent {
  return { kind: "native", event, text: "", finish: null };
}
