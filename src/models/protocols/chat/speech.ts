import { fromBase64 } from "../../core/base64.ts";
import { hasError } from "../../core/chat-message.ts";
import { failureEvents } from "../../core/failed-usage.ts";
import { END, FrameReader, retry } from "../../core/frame-reader.ts";
import type { StreamReader } from "../../core/http-provider.ts";
import { textOf } from "../../core/json-value.ts";
import { PictureReader, textIn } from "../../core/picture-reader.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { voiceOf } from "../../core/speech.ts";
import { sseReader } from "../../core/sse-reader.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { PlainCall } from "./profile.ts";

export const SPEAKING: PlainCall<"speech"> = {
  path: "/audio/speech",
  request: ({ body: { stream_format: _format, ...body }, upstreamId }) => {
    return { ...body, model: upstreamId };
  },
  answer: () => null,
  pieces: (secret, headers) => {
    const type = headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) return new AudioInJson(secret);
    if (type.startsWith("text/event-stream")) return sseReader(new AudioEvents(secret));
    return new AudioFile();
  },
};

export const MISTRAL_SPEAKING: PlainCall<"speech"> = {
  ...SPEAKING,
  request: ({ body, upstreamId }) => ({
    model: upstreamId,
    input: body.input,
    voice_id: voiceOf(body),
    response_format: body.response_format,
    stream: body.stream_format === "sse",
  }),
};

const NO_AUDIO = retry("no_audio");

class AudioFile implements StreamReader {
  readonly ended = false;
  #isEmpty = true;

  push(bytes: Uint8Array): StreamEvent[] {
    this.#isEmpty = false;
    return [{ kind: "audio", bytes: bytes.slice() }]; // the next read overwrites them
  }

  flush(): StreamEvent[] {
    return this.#isEmpty ? failureEvents(NO_AUDIO) : [END];
  }
}

class AudioInJson implements StreamReader {
  readonly #json: PictureReader;
  #text = "";
  #hasAudio = false;
  #isBroken = false;

  constructor(secret: string | undefined) {
    this.#json = new PictureReader(
      (raw, files) => (hasError(raw) || files === 0 ? failureIn(raw, secret) : NO_FACTS),
      false,
    );
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
    if (event.kind === "piece") return this.#decoded(this.#text + textIn(event.text), 4);
    if (event.kind === "native") return []; // would count as the first output
    if (event.kind !== "end") return [event];
    const last = this.#decoded(this.#text, 1);
    if (this.#isBroken) return last;
    return this.#hasAudio ? [...last, event] : failureEvents(NO_AUDIO);
  }

  #decoded(text: string, unit: number): StreamEvent[] {
    const whole = text.length - (text.length % unit);
    this.#text = text.slice(whole);
    const events = audioOf(text.slice(0, whole));
    this.#isBroken = events.some(({ kind }) => kind === "error");
    this.#hasAudio ||= events.length > 0;
    return events;
  }
}

const NO_FACTS = { usage: null, fields: {} };

function failureIn(raw: JsonObject, secret: string | undefined) {
  return hasError(raw) ? streamFailure(raw, secret) : NO_AUDIO;
}

function audioOf(base64: string): StreamEvent[] {
  if (base64 === "") return [];
  try {
    return [{ kind: "audio", bytes: fromBase64(base64) }];
  } catch {
    return failureEvents(retry("bad_audio"));
  }
}

/** Reads `speech.audio.*` events: Mistral's `audio_data` or OpenAI's `audio`. */
class AudioEvents extends FrameReader {
  readonly #secret: string | undefined;
  #hasAudio = false;
  #isDone = false;

  constructor(secret: string | undefined) {
    super();
    this.#secret = secret;
  }

  protected get isFinished(): boolean {
    return this.#isDone;
  }

  protected frame(raw: JsonObject): StreamEvent[] {
    const { type, audio_data: data, audio } = raw;
    if (hasError(raw)) return failureEvents(streamFailure(raw, this.#secret));
    if (type === "speech.audio.delta") {
      const events = audioOf(textOf(data) || textOf(audio));
      this.#hasAudio ||= events.length > 0;
      return events;
    }
    if (type !== "speech.audio.done") return [];
    this.#isDone = true;
    return this.#hasAudio ? [END] : failureEvents(NO_AUDIO);
  }
}
