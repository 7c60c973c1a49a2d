import { NO_USAGE } from "../../shared/usage.ts";
import type { UnitCounts } from "../../shared/usage.ts";
import { fromBase64 } from "./base64.ts";
import { failureEvents } from "./failed-usage.ts";
import { END_EVENT, retryFailure } from "./frame-reader.ts";
import type { StreamReader } from "./http-provider.ts";
import { ImageReader, decodePiece } from "./picture-reader.ts";
import type { ReadImageFacts } from "./picture-reader.ts";
import type { StreamEvent } from "./provider.ts";

export const NO_AUDIO = retryFailure("no_audio");

/** Passes on an audio file. `counts` has the units that the provider billed, if it reports them. */
export class AudioFileReader implements StreamReader {
  readonly ended = false;
  readonly #counts: UnitCounts | null;
  #isEmpty = true;

  constructor(counts: UnitCounts | null = null) {
    this.#counts = counts;
  }

  push(bytes: Uint8Array): StreamEvent[] {
    this.#isEmpty = false;
    return [{ kind: "audio", bytes: bytes.slice() }]; // the next read overwrites them
  }

  flush(): StreamEvent[] {
    if (this.#isEmpty) return failureEvents(NO_AUDIO);
    if (this.#counts === null) return [END_EVENT];
    return [{ kind: "usage", usage: { ...NO_USAGE, ...this.#counts } }, END_EVENT];
  }
}

/** Reads audio in base64 from a JSON response. `facts` reads the other fields. */
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
    if (event.kind === "piece") return this.#decode(this.#text + decodePiece(event.text), 4);
    if (event.kind === "native") return []; // would count as the first output
    if (event.kind === "usage") this.#usage = [event];
    if (event.kind === "usage") return [];
    if (event.kind !== "end") return [...this.#usage, event];
    const last = this.#decode(this.#text, 1);
    if (this.#isBroken) return last;
    return this.#hasAudio ? [...last, ...this.#usage, event] : failureEvents(NO_AUDIO);
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
    return failureEvents(retryFailure("bad_audio"));
  }
}

/** Samples per second of OpenAI's `pcm`, which has 16 bits per sample and one channel. */
const PCM_RATE = 24_000;
const PCM_BYTES = 2;

/** Puts the header of a WAV file before PCM audio. */
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

/** Returns a WAV header with unknown sizes, like OpenAI's, because the audio is streamed. */
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
