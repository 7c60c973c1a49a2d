import {
  AudioFileReader,
  JsonAudioReader,
  toAudioEvents,
  NO_AUDIO,
} from "../../core/audio-reader.ts";
import { hasErrorField } from "../../core/chat-message.ts";
import { failureEvents } from "../../core/failed-usage.ts";
import { END_EVENT, FrameReader } from "../../core/frame-reader.ts";
import { textOf } from "../../core/json-value.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { speechVoiceOf } from "../../core/speech.ts";
import { sseReader } from "../../core/sse-reader.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { CallProtocol } from "./profile.ts";

export const SPEECH_CALL: CallProtocol<"speech"> = {
  path: "/audio/speech",
  request: ({ body: { stream_format: _format, ...body }, upstreamId }) => {
    return { ...body, model: upstreamId };
  },
  convertResponse: () => null,
  pieces: (secret, headers) => {
    const type = headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) {
      return new JsonAudioReader((raw, files) => {
        if (hasErrorField(raw)) return streamFailure(raw, secret);
        return files === 0 ? NO_AUDIO : NO_USAGE_OR_FIELDS;
      });
    }
    if (type.startsWith("text/event-stream")) return sseReader(new AudioEvents(secret));
    return new AudioFileReader();
  },
};

export const MISTRAL_SPEECH_CALL: CallProtocol<"speech"> = {
  ...SPEECH_CALL,
  request: ({ body, upstreamId }) => ({
    model: upstreamId,
    input: body.input,
    voice_id: speechVoiceOf(body),
    response_format: body.response_format,
    stream: body.stream_format === "sse",
  }),
};

const NO_USAGE_OR_FIELDS = { usage: null, fields: {} };

/** Reads the `speech.audio.*` events of Mistral (field `audio_data`) and OpenAI (field `audio`). */
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

  protected convertFrame(raw: JsonObject): StreamEvent[] {
    const { type, audio_data: data, audio } = raw;
    if (hasErrorField(raw)) return failureEvents(streamFailure(raw, this.#secret));
    if (type === "speech.audio.delta") {
      const events = toAudioEvents(textOf(data) || textOf(audio));
      this.#hasAudio ||= events.length > 0;
      return events;
    }
    if (type !== "speech.audio.done") return [];
    this.#isDone = true;
    return this.#hasAudio ? [END_EVENT] : failureEvents(NO_AUDIO);
  }
}
