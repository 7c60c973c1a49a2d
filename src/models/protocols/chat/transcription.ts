import type { FormField } from "../../../shared/http/form.ts";
import { hasErrorField } from "../../core/chat-message.ts";
import { failureEvents } from "../../core/failed-usage.ts";
import { FrameReader } from "../../core/frame-reader.ts";
import { objectOf, textOf } from "../../core/json-value.ts";
import { RequestForm } from "../../core/outgoing-body.ts";
import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { sseReader } from "../../core/sse-reader.ts";
import { usageOfSeconds } from "../../core/transcription.ts";
import { transcriptEvents } from "../../core/transcript-events.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { CallProtocol } from "./profile.ts";

type TranscriptionOptions = {
  readonly format?: "json" | "verbose_json";
  readonly canStream?: true;
  readonly secondsMin?: number;
  readonly acceptsPrompt?: true;
};

export function transcriptionCall(options: TranscriptionOptions): CallProtocol<"transcription"> {
  const { format, canStream: streams, secondsMin: least = 0, acceptsPrompt: prompts } = options;
  return {
    path: "/audio/transcriptions",
    request: ({ body, upstreamId, stream, onDropped }) => {
      const { file, language, prompt, temperature } = body;
      if (prompt !== undefined && prompts !== true) onDropped?.(["prompt"]);
      const fields: Readonly<Record<string, FormField[1] | undefined>> = {
        model: upstreamId,
        response_format: format,
        language,
        prompt: prompts === true ? prompt : undefined,
        temperature: temperature?.toString(),
        stream: stream && streams === true ? "true" : undefined,
        file,
      };
      return new RequestForm(
        Object.entries(fields).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, value] as const],
        ),
      );
    },
    convertResponse: (raw) => {
      const { text } = raw;
      return typeof text === "string" ? { body: { text }, usage: readSeconds(raw, least) } : null;
    },
    events: transcriptEvents,
    reader: (secret) => sseReader(new TranscriptStream(secret)),
  };
}

function readSeconds({ usage, duration }: JsonObject, secondsMin: number) {
  const { seconds, prompt_audio_seconds: audio } = objectOf(usage);
  return usageOfSeconds(seconds ?? audio ?? duration, secondsMin);
}

class TranscriptStream extends FrameReader {
  readonly #secret: string | undefined;
  #isDone = false;

  constructor(secret: string | undefined) {
    super();
    this.#secret = secret;
  }

  protected get isFinished(): boolean {
    return this.#isDone;
  }

  protected convertFrame(raw: JsonObject): StreamEvent[] {
    const { type, delta, text } = raw;
    if (hasErrorField(raw)) return failureEvents(streamFailure(raw, this.#secret));
    if (type === "transcript.text.delta") return [deltaEvent(textOf(delta))];
    if (type === "transcription.text.delta") return [deltaEvent(textOf(text))];
    if (type !== "transcript.text.done" && type !== "transcription.done") return [];
    this.#isDone = true;
    return transcriptEvents({ body: { text }, usage: readSeconds(raw, 0) }).slice(1);
  }
}

function deltaEvent(delta: string): StreamEvent {
  const event = { type: "transcript.text.delta", delta };
  return { kind: "native", event, text: delta, finish: null };
}
