import { NO_USAGE } from "../../shared/usage.ts";
import type { Usage, UnitCounts } from "../../shared/usage.ts";
import {
  createEventTooLargeFailure,
  createFailureEvents,
  STREAM_END_EVENT,
  createRetryableFailure,
} from "./frame-reader.ts";
import type { StreamReader } from "./frame-reader.ts";
import { parsePlainObject, textOf } from "./json-value.ts";
import { isProviderFailure } from "./provider.ts";
import type { JsonObject, ProviderFailure, StreamEvent, ProviderResponse } from "./provider.ts";
import { fromBase64 } from "./data-url.ts";

const OTHER_CHARACTERS_MAX = 1024 * 1024;
const STRING_CHARACTERS_MAX = 16 * 1024;
const TAIL_CHARACTERS_MAX = 64;
const QUOTE = 34;
const BACKSLASH = 92;
const IMAGE_FIELD = /"(?:b64_json|data|audio_data)"\s*:\s*"$/;
const PARTIAL_IMAGE_TYPE = /"type"\s*:\s*"[\w.]*partial_image"/;

type PictureFacts = { readonly usage: Usage | null; readonly fields: JsonObject };
type ReadImageFacts = (raw: JsonObject, pictureCount: number) => PictureFacts | ProviderFailure;

/**
 * Reads images from JSON, or from server-sent events with one image each. Forwards base64 in
 * pieces, because whole images don't fit into memory.
 */
export class ImageReader implements StreamReader {
  readonly #facts: ReadImageFacts;
  readonly #isImage: boolean;
  readonly #decoder = new TextDecoder();
  #otherParts: string[] | null = null;
  kept = 0;
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

  /** Forwards an image's bytes without decoding, because decoding would block other requests. */
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
      if (this.#otherParts === null) at = this.#skipToObject(text, at);
      else if (this.#state === "plain") at = this.#readStructure(text, at, events);
      else at = this.#readString(text, at, events);
      if (this.kept > OTHER_CHARACTERS_MAX) {
        this.#fail(events, createEventTooLargeFailure(OTHER_CHARACTERS_MAX));
      }
    }
    return events;
  }

  #skipToObject(text: string, from: number): number {
    for (let at = from; at < text.length; at += 1) {
      const one = text[at] ?? "";
      if (one === "\n") this.#line = "";
      else if (one === "{" && /^(?:data:)?\s*$/.test(this.#line)) {
        this.#otherParts = [];
        this.#depth = 0;
        this.#responseCount = 0;
        return at;
      } else if (this.#line.length < TAIL_CHARACTERS_MAX) this.#line += one;
    }
    return text.length;
  }

  #readStructure(text: string, from: number, events: StreamEvent[]): number {
    for (let at = from; at < text.length; at += 1) {
      const one = text[at];
      if (one === "{") this.#depth += 1;
      else if (one === "}") this.#depth -= 1;
      if (one !== '"' && this.#depth > 0) continue;
      this.#keepText(text.slice(from, at + 1));
      if (one === '"') this.#openString();
      else this.#closeObject(events);
      return at + 1;
    }
    this.#keepText(text.slice(from));
    return text.length;
  }

  #keepText(text: string): void {
    this.#otherParts?.push(text);
    this.kept += text.length;
    this.#tail = (this.#tail + text).slice(-TAIL_CHARACTERS_MAX);
  }

  #openString(): void {
    this.#textAt = this.#otherParts?.length ?? 0;
    this.#textLength = 0;
    const isPicture = IMAGE_FIELD.test(this.#tail);
    this.#state = isPicture ? "picture" : "text";
    if (!isPicture) return;
    // Checked once per response, because the check joins all text except the images.
    if (this.#responseCount === 0) {
      this.#isPartial = PARTIAL_IMAGE_TYPE.test(this.#otherParts?.join("") ?? "");
    }
    this.#responseCount += 1;
    if (!this.#isPartial) this.#count += 1;
  }

  #readString(text: string, from: number, events: StreamEvent[]): number {
    let end = from;
    if (this.#isEscaped) end += 1;
    this.#isEscaped = false;
    for (;;) {
      const quote = text.indexOf('"', end);
      const backslash = text.slice(end, quote === -1 ? text.length : quote).indexOf("\\");
      if (backslash === -1) {
        const hasEnded = quote !== -1;
        this.#addText(text.slice(from, hasEnded ? quote : text.length), events);
        if (!hasEnded) return text.length;
        this.#keepText('"');
        this.#state = "plain";
        return quote + 1;
      }
      end += backslash + 2;
      if (end > text.length) {
        this.#isEscaped = true;
        this.#addText(text.slice(from), events);
        return text.length;
      }
    }
  }

  #addText(text: string, events: StreamEvent[]): void {
    if (text === "") return;
    if (this.#state === "picture") {
      events.push(this.#pieceOf(text));
      return;
    }
    const before = Math.min(this.#textLength, STRING_CHARACTERS_MAX);
    this.#textLength += text.length;
    if (this.#textLength <= STRING_CHARACTERS_MAX) return this.#keepText(text);
    if ((this.#otherParts?.length ?? 0) > this.#textAt) this.kept -= before;
    this.#otherParts?.splice(this.#textAt);
    this.#tail = "";
  }

  #closeObject(events: StreamEvent[]): void {
    const raw = parsePlainObject(this.#otherParts?.join("") ?? "");
    this.#otherParts = null;
    this.kept = 0;
    this.#line = "";
    if (raw === null) return this.#fail(events, createRetryableFailure("bad_json"));
    if (this.#isPartial) {
      this.#isPartial = false;
      events.push(nativeEvent(raw), { kind: "thinking" });
      return;
    }
    const facts = this.#facts(raw, this.#count);
    if (isProviderFailure(facts)) return this.#fail(events, facts);
    if (this.#count === 0) return this.#fail(events, createRetryableFailure("no_image"));
    events.push(nativeEvent(facts.fields));
    const images = { ...(facts.usage ?? NO_USAGE), image: this.#count };
    const usage = this.#isImage ? images : facts.usage;
    if (usage !== null) events.push({ kind: "usage", usage });
    events.push(STREAM_END_EVENT);
    this.ended = true;
  }

  #fail(events: StreamEvent[], failure: ProviderFailure): void {
    this.ended = true;
    events.push(...createFailureEvents(failure, failure.spent?.usage));
  }
}

export function toPieceText(piece: string | Uint8Array): string {
  return typeof piece === "string" ? piece : new TextDecoder().decode(piece);
}

function nativeEvent(event: JsonObject): StreamEvent {
  return { kind: "native", event, text: "", finish: null };
}

/** The failure of a provider that returned no audio. Another provider may succeed. */
export const NO_AUDIO_FAILURE = createRetryableFailure("no_audio");

/** Forwards an audio file. `counts` contains the billed units that the provider reports. */
export class AudioFileReader implements StreamReader {
  readonly ended = false;
  readonly #counts: UnitCounts | null;
  #isEmpty = true;

  constructor(counts: UnitCounts | null = null) {
    this.#counts = counts;
  }

  push(bytes: Uint8Array): StreamEvent[] {
    this.#isEmpty = false;
    return [{ kind: "audio", bytes: bytes.slice() }]; // A copy, because the next read overwrites the bytes.
  }

  flush(): StreamEvent[] {
    if (this.#isEmpty) return createFailureEvents(NO_AUDIO_FAILURE);
    if (this.#counts === null) return [STREAM_END_EVENT];
    return [{ kind: "usage", usage: { ...NO_USAGE, ...this.#counts } }, STREAM_END_EVENT];
  }
}

/** Reads base64 audio from a JSON response. `facts` reads the other fields. */
export class JsonAudioReader implements StreamReader {
  readonly #json: ImageReader;
  #usage: readonly StreamEvent[] = [];
  #text = "";
  #hasAudio = false;
  #isBroken = false;

  constructor(facts: ReadImageFacts) {
    this.#json = new ImageReader(facts, false);
  }

  get ended(): boolean {
    return this.#isBroken || this.#json.ended;
  }

  push(bytes: Uint8Array): StreamEvent[] {
    return this.#json.push(bytes).flatMap((event) => this.#read(event));
  }

  flush(): StreamEvent[] {
    return [];
  }

  #read(event: StreamEvent): readonly StreamEvent[] {
    if (this.#isBroken) return [];
    if (event.kind === "piece") return this.#decode(this.#text + toPieceText(event.text), 4);
    if (event.kind === "native") return []; // Dropped, because it would count as the first output.
    if (event.kind === "usage") this.#usage = [event];
    if (event.kind === "usage") return [];
    if (event.kind !== "end") return [...this.#usage, event];
    const last = this.#decode(this.#text, 1);
    if (this.#isBroken) return last;
    return this.#hasAudio
      ? [...last, ...this.#usage, event]
      : createFailureEvents(NO_AUDIO_FAILURE);
  }

  #decode(text: string, unit: number): StreamEvent[] {
    const completeLength = text.length - (text.length % unit);
    this.#text = text.slice(completeLength);
    const events = toAudioEvents(text.slice(0, completeLength));
    this.#isBroken = events.some(({ kind }) => kind === "error");
    this.#hasAudio ||= events.length > 0;
    return events;
  }
}

export function toAudioEvents(base64: string): StreamEvent[] {
  if (base64 === "") return [];
  try {
    return [{ kind: "audio", bytes: fromBase64(base64) }];
  } catch {
    return createFailureEvents(createRetryableFailure("bad_audio"));
  }
}

/** Samples per second of OpenAI's format `pcm`, which has 16 bits and one channel. */
const PCM_RATE = 24_000;
const PCM_BYTES = 2;

/** Adds the header of a WAV file to PCM audio. */
export class WavReader implements StreamReader {
  readonly #pcm: StreamReader;
  #hasBegun = false;

  constructor(pcm: StreamReader) {
    this.#pcm = pcm;
  }

  get ended(): boolean {
    return this.#pcm.ended;
  }

  push(bytes: Uint8Array): StreamEvent[] {
    return this.#addHeader(this.#pcm.push(bytes));
  }

  flush(): StreamEvent[] {
    return this.#addHeader(this.#pcm.flush());
  }

  #addHeader(events: StreamEvent[]): StreamEvent[] {
    const first = events.findIndex(({ kind }) => kind === "audio");
    if (this.#hasBegun || first === -1) return events;
    this.#hasBegun = true;
    return events.toSpliced(first, 0, { kind: "audio", bytes: wavHeader() });
  }
}

/** Returns a WAV header with unknown sizes, because the audio is streamed. OpenAI does the same. */
function wavHeader(): Uint8Array {
  const bytes = new Uint8Array(44);
  const view = new DataView(bytes.buffer);
  for (const [at, text] of [
    [0, "RIFF"],
    [8, "WAVEfmt "],
    [36, "data"],
  ] as const) {
    bytes.set(new TextEncoder().encode(text), at);
  }
  for (const [at, size] of [
    [4, 2 ** 32 - 1],
    [16, 16],
    [24, PCM_RATE],
    [28, PCM_RATE * PCM_BYTES],
    [40, 2 ** 32 - 1],
  ] as const) {
    view.setUint32(at, size, true);
  }
  for (const [at, size] of [
    [20, 1],
    [22, 1],
    [32, PCM_BYTES],
    [34, PCM_BYTES * 8],
  ] as const) {
    view.setUint16(at, size, true);
  }
  return bytes;
}

export function toTranscriptionEvents({ body, usage }: ProviderResponse): StreamEvent[] {
  const { text: transcript } = body;
  const text = textOf(transcript);
  const delta = { type: "transcript.text.delta", delta: text };
  const doneEvent = { type: "transcript.text.done", text };
  return [
    { kind: "native", event: delta, text, finish: null },
    ...(usage === null ? [] : [{ kind: "usage", usage } as const]),
    { kind: "native", event: doneEvent, text: "", finish: "stop" },
    STREAM_END_EVENT,
  ];
}
